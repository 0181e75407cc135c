"""Routes of operation: liveness, readiness and metrics."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from kept.doors.http.callers import service_of
from kept.doors.http.problems import Problem
from kept.stores.service.keys import Key, Role

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"

router = APIRouter(tags=["operation"])


@router.get("/health", responses={200: {"content": {"application/json": {}}}})
async def health() -> dict[str, str]:
    """Return that the process is alive."""
    return {"status": "ok"}


@router.get("/ready")
async def ready(request: Request) -> dict[str, Any]:
    """Return whether questions can be answered, and if not, what is missing."""
    checks = service_of(request).checks()
    if not all(checks.values()):
        raise Problem("not_ready", checks=checks)
    return {"status": "ready", "checks": checks}


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(request: Request) -> Response:
    """Return the metrics of the service for Prometheus; they name no tenant."""
    service = service_of(request)
    key: Key | None = request.state.key
    administers = key and key.tenant is None and key.role is Role.ADMIN
    # They count the documents of all readers.
    if key is None or not administers or key.asker is not None:
        raise Problem("forbidden", "metrics are for keys that administer every tenant")
    return Response(service.metrics.text(), media_type=PROMETHEUS)
