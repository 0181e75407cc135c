"""The OpenAPI: what every route shares is said here once."""

from typing import Any

from fastapi import FastAPI

from kept.http.problems import CODES, MEDIA_TYPE

DESCRIPTION = """\
The retrieval layer for RAG: the passages that deserve to be cited, or a plain
"nothing relevant", and for every candidate why.

Every error is `application/problem+json` with a `code` of a documented list.
"""
TAGS = [
    {"name": "asking", "description": "Search, answers, and why."},
    {"name": "documents", "description": "Documents, jobs, ledger and aliases."},
    {"name": "records", "description": "Traces, audit, evaluation."},
    {"name": "administration", "description": "Keys, sessions, settings."},
    {"name": "compatible", "description": "The APIs of others."},
    {"name": "operation", "description": "Health and metrics."},
]
PROBLEM: dict[str, Any] = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "instance", "code"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "instance": {"type": "string"},
        "code": {"type": "string", "enum": sorted(CODES)},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "at": {"type": "array", "items": {"type": "string"}},
                    "message": {"type": "string"},
                },
            },
        },
    },
}
OPEN = frozenset({"/health", "/ready", "/metrics"})


def described(app: FastAPI) -> None:
    """Let the app's OpenAPI tell how every route can fail."""
    made = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = made()
            schemas = schema["components"]["schemas"]
            schemas["Problem"] = PROBLEM
            for instead in ("HTTPValidationError", "ValidationError"):
                schemas.pop(instead, None)
            for path, operations in schema["paths"].items():
                for operation in operations.values():
                    _add_problems(path, operation)
        return app.openapi_schema or {}

    app.openapi = openapi  # type: ignore[method-assign]  # as FastAPI documents it


def _add_problems(path: str, operation: dict[str, Any]) -> None:
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    responses = operation["responses"]
    responses.pop("422", None)
    statuses = {code.status for code in CODES.values()}
    common = {401, 403, 429, 500, 503} if path not in OPEN else {401, 403, 503}
    for status in sorted(common & statuses):
        responses[str(status)] = {"description": _titles(status), "content": content}
    responses["default"] = {"description": "Any other problem", "content": content}


def _titles(status: int) -> str:
    return "; ".join(code.title for code in CODES.values() if code.status == status)
