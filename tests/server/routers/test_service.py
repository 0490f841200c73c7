"""Health, metrics, and the description of the API."""


# What is made once takes long: one process makes it for all.


def test_health_metrics_and_descriptions(client):
    assert client.get("/healthz").json()["status"] == "ok"
    client.get("/api/v1/tags/sky")
    text = client.get("/metrics").text
    assert 'pictopic_requests_total{method="GET",route="/api/v1/tags/{name:path}",status="200"}' in text
    assert "pictopic_pictures 96.0" in text
    document = client.get("/openapi.json").json()
    assert set(document["paths"]["/api/v1/search"]) == {"get", "post"}
    assert "multipart/form-data" in document["paths"]["/api/v1/annotate"]["post"]["requestBody"]["content"]
    page = client.get("/docs").text
    assert "POST /api/v1/annotate" in page
    assert "http://" not in page.replace("http://127.0.0.1", "")
    assert "https://" not in page
