"""The OpenAPI is complete, and the service does what it says, whatever is sent."""

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from house import Hands, House
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.testclient import TestClient

from kept.doors.http.app import build, routes_only
from kept.doors.http.schemas import Body
from kept.doors.http.service import Clocks
from kept.doors.http.settings import service_settings
from kept.knowledge_base.settings import Settings

OPENAPI = routes_only().openapi()
NESTING = ("all_of", "any_of", "none_of")


def shallow() -> dict[str, Any]:
    """Return the OpenAPI with filters of two levels, for mazes take long to make."""
    described = deepcopy(OPENAPI)
    schemas = described["components"]["schemas"]
    plain = deepcopy(schemas["FiltersIn"])
    for name in NESTING:
        del plain["properties"][name]
        nested = schemas["FiltersIn"]["properties"][name]
        nested["items"] = {"$ref": "#/components/schemas/PlainFilters"}
    schemas["PlainFilters"] = plain
    return described


schema = schemathesis.openapi.from_dict(shallow())
CHECKS = [
    not_a_server_error,
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
]


@pytest.fixture
def nothing_left_open() -> None:
    """Leave the service open: all tests here ask the same one."""


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Return an app with a document and a key of all tenants."""
    folder: Path = tmp_path_factory.mktemp("openapi")
    hands = Hands()
    app = build(
        Settings.of({"store": str(folder / "kb"), "embedder": "hash"}),
        service_settings(rate_per_minute=1_000_000, runs=str(folder)),
        clocks=Clocks(wall=hands, steady=hands),
    )
    client = TestClient(app, base_url="http://127.0.0.1", follow_redirects=False)
    with client:
        house = House(client, app.state.service, hands)
        house.add("Employees have 28 days of leave a year.", title="Handbook")
        house.key("admin", None)
        yield house


@schema.parametrize()
@settings(
    max_examples=4,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_whatever_is_sent_is_answered_as_documented(
    case: schemathesis.Case, house: House
) -> None:
    """No server error, and every answer has a documented type and shape."""
    case.headers.pop("Kept-Tenant", None)
    sent = case.as_transport_kwargs(
        base_url="http://127.0.0.1",
        headers={"authorization": f"Bearer {house.key('admin', None)}"},
    )
    sent = {k: v for k, v in sent.items() if k != "cookies" and v is not None}
    if isinstance(sent.get("data"), bytes | str):
        sent["content"] = sent.pop("data")

    if "files" in sent:
        sent["files"] = [(name, sendable(part)) for name, part in sent["files"]]

    response = house.client.request(**sent)
    response.request.read()

    case.validate_response(response, checks=CHECKS)


def sendable(part: object) -> object:
    """Return a part of a form as a client can send it: what is no text becomes one."""
    if isinstance(part, tuple):
        name, content, *rest = part
        return (name, sendable(content), *rest)
    return part if isinstance(part, bytes | str) else repr(part)


def test_every_route_is_described() -> None:
    """A sentence, a tag, an answer with a shape, and how it can fail."""
    for path, operations in OPENAPI["paths"].items():
        for method, operation in operations.items():
            where = f"{method} {path}"
            assert operation["description"], where
            assert operation["tags"], where
            assert "default" in operation["responses"], where
            assert any(status.startswith("2") for status in operation["responses"])


def test_bodies_have_examples() -> None:
    """The schema has examples of a question and of a document."""
    schemas = OPENAPI["components"]["schemas"]

    for name in ("SearchIn", "DocumentsIn", "RetrievalIn", "RerankIn", "EmbeddingsIn"):
        assert schemas[name]["examples"], name


def bodies(of: type[Body] = Body) -> Iterator[type[Body]]:
    """Yield everything that clients can send."""
    for body in of.__subclasses__():
        yield body
        yield from bodies(body)


def test_examples_would_be_taken() -> None:
    """Every example is a valid request."""
    schemas = OPENAPI["components"]["schemas"]
    examples = [
        (body, example)
        for body in bodies()
        for example in schemas.get(body.__name__, {}).get("examples", [])
    ]

    for body, example in examples:
        assert body.model_validate(example)

    assert {"WhyIn", "WhyNotIn"} < {body.__name__ for body, _ in examples}


def test_every_schema_is_referenced() -> None:
    """Clients that are generated have no type that nothing answers with."""
    reported = json.dumps(OPENAPI)

    for name in OPENAPI["components"]["schemas"]:
        assert f'#/components/schemas/{name}"' in reported, name


def test_names_of_operations_are_unique() -> None:
    """Clients that are generated have one function for each."""
    names = [
        operation["operationId"]
        for operations in OPENAPI["paths"].values()
        for operation in operations.values()
    ]

    assert len(names) == len(set(names))
