"""The API's description: for programs, and as a page that needs no network."""

from __future__ import annotations

from html import escape
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from pictopic.server.problems import KINDS, MEDIA_TYPE, Problem, WrongParameter


def describe(app: FastAPI, with_token: bool) -> None:
    """Let the OpenAPI document say what errors really look like, and that there is a token."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            found = get_openapi(title=app.title, version=app.version, routes=app.routes)
            schemas = found.setdefault("components", {}).setdefault("schemas", {})
            for model in (Problem, WrongParameter):
                schemas[model.__name__] = model.model_json_schema(ref_template="#/components/schemas/{model}")
                schemas[model.__name__].pop("$defs", None)
            for unused in ("HTTPValidationError", "ValidationError"):
                schemas.pop(unused, None)
            for operations in found["paths"].values():
                for operation in operations.values():
                    _describe_errors(operation)
            if with_token:
                found["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
                found["security"] = [{"token": []}]
            app.openapi_schema = found
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]


def _describe_errors(operation: dict[str, Any]) -> None:
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    operation["responses"].pop("422", None)
    for status in ("4XX", "5XX"):
        operation["responses"][status] = {"description": "A problem, as in RFC 9457.", "content": content}


def page(document: dict[str, Any]) -> str:
    """All operations and kinds of problems as a page, without scripts.

    Examples
    --------
    >>> from pictopic.server.description import page
    >>> operation = {"description": "Whether it is up.", "parameters": [{"name": "k", "in": "query"}]}
    >>> "<h3>GET /healthz</h3><p>Whether it is up.</p>" in page({"paths": {"/healthz": {"get": operation}}})
    True
    """
    schemas = document.get("components", {}).get("schemas", {})
    operations = "".join(
        _operation(f"{method.upper()} {path}", operation, schemas)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    )
    kinds = "".join(f'<dt id="{kind}">{kind}</dt><dd>{escape(text)}</dd>' for kind, text in KINDS.items())
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        '<meta name="color-scheme" content="light dark"><title>pictopic: the API</title><h1>The API</h1>'
        '<p>For programs: <a href="/openapi.json">/openapi.json</a></p>'
        f"<h2>Operations</h2>{operations}<h2>Problems</h2><dl>{kinds}</dl></html>\n"
    )


def _operation(title: str, operation: dict[str, Any], schemas: dict[str, Any]) -> str:
    parameters = "".join(_parameter(own) for own in operation.get("parameters", []))
    forms = operation.get("requestBody", {}).get("content", {}).items()
    for kind, form in forms:
        schema = form["schema"]
        if "$ref" in schema:
            schema = schemas[schema["$ref"].rpartition("/")[2]]
        fields = ", ".join(schema["properties"])
        parameters += f"<li><code>{escape(fields)}</code> in the body ({escape(kind)})</li>"
    listed = f"<ul>{parameters}</ul>" if parameters else ""
    return f"<h3>{escape(title)}</h3><p>{escape(operation.get('description', ''))}</p>{listed}"


def _parameter(parameter: dict[str, Any]) -> str:
    schema = parameter.get("schema", {})
    default = f" [{schema['default']}]" if schema.get("default") not in (None, []) else ""
    text = f"{parameter.get('description', '')}{default}"
    return f"<li><code>{escape(parameter['name'])}</code> in the {escape(parameter['in'])}: {escape(text)}</li>"
