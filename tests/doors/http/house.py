"""A running service for tests: its client, its clock, and keys of every role."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from starlette.testclient import TestClient

from kept.doors.http.service import Service
from kept.stores.service.keys import Role

Response = Any
OpenHouse = Callable[..., "House"]


@dataclass
class Hands:
    """A clock that moves only when a test moves it."""

    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


@dataclass
class House:
    """A running app, its clock, and clients with keys of their own."""

    client: TestClient
    service: Service
    hands: Hands
    keys: dict[tuple[str, str | None], str] = field(default_factory=dict)

    def key(self, role: str = "admin", tenant: str | None = "default") -> str:
        """Return a key of this role for a tenant; none means every tenant."""
        if (role, tenant) not in self.keys:
            _, token = self.service.access.create(f"{role}s", Role(role), tenant)
            self.keys[(role, tenant)] = token
        return self.keys[(role, tenant)]

    def ask(
        self,
        method: str,
        path: str,
        *,
        role: str = "admin",
        tenant: str | None = "default",
        headers: dict[str, str] | None = None,
        **given: Any,  # noqa: ANN401 -- of the client
    ) -> Response:
        """Send a request with a key of this role and tenant."""
        bearer = {"authorization": f"Bearer {self.key(role, tenant)}"}
        return self.client.request(
            method, path, headers={**bearer, **(headers or {})}, **given
        )

    def add(self, text: str, *, tenant: str = "default", **fields: object) -> Response:
        """Take a text in, and return its receipt."""
        response = self.ask(
            "POST",
            "/v1/documents?wait=60",
            tenant=tenant,
            json={"documents": [{"text": text, **fields}]},
        )
        assert response.status_code == 200, response.text
        [receipt] = response.json()["receipts"]
        return receipt

    def search(
        self, question: str, *, tenant: str = "default", **more: object
    ) -> Response:
        """Search, and return the response."""
        body = {"question": question, **more}
        return self.ask("POST", "/v1/search", tenant=tenant, json=body)

    def audit(self, **more: str) -> list[dict[str, Any]]:
        """Return the latest rows of the audit."""
        rows: list[dict[str, Any]] = self.ask("GET", "/v1/audit", params=more).json()[
            "audit"
        ]
        return rows


def problem(response: Response, status: int, code: str) -> dict[str, Any]:
    """Return the problem that a response holds, which must be this one."""
    assert response.headers["content-type"] == "application/problem+json", response.text
    body: dict[str, Any] = response.json()
    assert (response.status_code, body["code"]) == (status, code), body
    assert body["status"] == status
    assert body["type"] == f"urn:kept:problem:{code}"
    assert body["instance"].endswith(response.headers["x-request-id"])
    assert "Traceback" not in response.text
    return body
