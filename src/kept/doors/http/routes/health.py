"""Operation: is it alive, can it answer, and how does it do."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from kept.http.callers import service_of
from kept.http.problems import Problem
from kept.stores.access import Key, Role

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"

router = APIRouter(tags=["operation"])


@router.get("/health", responses={200: {"content": {"application/json": {}}}})
async def health() -> dict[str, str]:
    """Tell that the process is alive."""
    return {"status": "ok"}


@router.get("/ready")
async def ready(request: Request) -> dict[str, Any]:
    """Tell whether questions can be answered; if not, what is missing."""
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
    """Show the numbers of the service to Prometheus; no tenant is named in them."""
    service = service_of(request)
    key: Key | None = request.state.key
    open_to_all = service.limits.public_metrics
    if not open_to_all and (key is None or key.tenant or key.role is not Role.ADMIN):
        raise Problem("forbidden", "metrics are for those who administer all tenants")
    return Response(service.metrics.text(), media_type=PROMETHEUS)
