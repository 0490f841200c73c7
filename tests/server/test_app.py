import pytest

from pictopic.server.app import create_app
from pictopic.server.settings import Settings


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(ValueError, match="not a"):
        create_app(tmp_path)


def test_all_addresses_but_those_of_the_service_are_below_api_v1(folder):
    app = create_app(folder, Settings(threads=1))
    paths = set(app.openapi()["paths"])
    assert {path for path in paths if not path.startswith("/api/v1/")} == {"/healthz", "/metrics"}
    assert {"/api/v1/annotate", "/api/v1/classify", "/api/v1/search", "/api/v1/topics"} <= paths


def test_only_a_server_with_a_token_says_that_it_wants_one(folder):
    schemes = [
        "securitySchemes" in create_app(folder, Settings(threads=1, token=token)).openapi().get("components", {})
        for token in (None, "x" * 16)
    ]
    assert schemes == [False, True]
