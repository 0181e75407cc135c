"""The site that the browser visits: a real service, filled with the handbook."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import yaml

from commands import kept
from kept.doors.http.sessions import COOKIE
from kept.evaluation import examples
from served import HASH, Served, serving

HANDBOOK = Path(examples.__file__).parent / "handbook"
CITED = "How many days may I work from another country in a year?"
LOW = "What is the hotel limit for one night in London?"
FAR = "Who won the football world cup in Brazil?"
CHAT = "hey this is a test message"
RUNS = ("default", "tenant_kb")


@dataclass
class Site:
    """A running service with documents, recorded questions and evaluation runs."""

    served: Served
    key: str
    runs: Path = Path()
    sessions: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """Where it is."""
        return self.served.url

    def client(self, key: str | None = None, tenant: str | None = None) -> httpx.Client:
        """Return a client with a key, the operator's unless another is given."""
        client = self.served.client(key or self.key)
        if tenant is not None:
            client.headers["kept-tenant"] = tenant
        return client

    def new_key(self, principal: str, role: str, **more: Any) -> str:  # noqa: ANN401 -- JSON
        """Make a key and return it."""
        with self.client() as client:
            body = {"principal": principal, "role": role, **more}
            made = client.post("/v1/keys", json=body)
        assert made.status_code == 201, made.text
        return str(made.json()["key"])

    def cookie(self, key: str | None = None) -> str:
        """Return the cookie of a session that was begun with a key."""
        key = key or self.key
        if key not in self.sessions:
            began = httpx.post(f"{self.url}/v1/session", json={"key": key}, timeout=60)
            assert began.is_success, began.text
            self.sessions[key] = began.cookies[COOKIE]
        return self.sessions[key]

    def add(self, text: str, tenant: str | None = None, **fields: object) -> str:
        """Take a text in, and return the id of its document."""
        with self.client(tenant=tenant) as client:
            body = {"documents": [{"text": text, **fields}]}
            response = client.post("/v1/documents?wait=60", json=body)
        assert response.status_code == 200, response.text
        return str(response.json()["receipts"][0]["document_id"])


@contextmanager
def opened(folder: Path) -> Iterator[Site]:
    """Start a service on the handbook; people may keep their questions there."""
    store = folder / "kb"
    assert kept("ingest", HANDBOOK, "--store", store, *HASH, "--json").code == 0
    _evaluated(folder)
    with serving(store, KEPT_SERVE_RUNS=str(folder / "runs")) as served:
        assert served.key is not None
        site = Site(served, served.key, folder / "runs")
        with site.client() as client:
            policy = {"policy": {"keep_questions": True}}
            assert client.patch("/v1/settings", json=policy).is_success
            for question in (CITED, LOW, FAR, CHAT):
                client.post("/v1/search", json={"question": question})
        yield site


def _evaluated(folder: Path) -> None:
    """Evaluate the handbook's questions with two presets."""
    collection = folder / "handbook"
    (collection / "qrels").mkdir(parents=True)
    texts = sorted(HANDBOOK.rglob("*.md"))
    ids = {
        path.relative_to(HANDBOOK).as_posix(): f"d{n}" for n, path in enumerate(texts)
    }
    questions = yaml.safe_load((HANDBOOK.parent / "questions.yaml").read_text())
    asked = [
        (f"q{n}", one["text"], one["expect"])
        for n, one in enumerate(questions)
        if one["expect"] != "refuse" and all(name in ids for name in one["expect"])
    ]
    far = [one["text"] for one in questions if one["expect"] == "refuse"]
    _write(
        folder / "far.jsonl", [{"_id": f"f{n}", "text": t} for n, t in enumerate(far)]
    )
    _write(
        collection / "corpus.jsonl",
        [
            {"_id": ids[p.relative_to(HANDBOOK).as_posix()], "text": p.read_text()}
            for p in texts
        ],
    )
    _write(
        collection / "queries.jsonl", [{"_id": q, "text": text} for q, text, _ in asked]
    )
    rows = [f"{q}\t{ids[name]}\t1" for q, _, names in asked for name in names]
    (collection / "qrels" / "test.tsv").write_text(
        "\n".join(["query-id\tcorpus-id\tscore", *rows]) + "\n"
    )
    for preset in RUNS:
        ran = kept(
            *("eval", "collection", collection, "--preset", preset, *HASH),
            *("--store", folder / "evaluated", "--out", folder / "runs" / preset),
            *("--name", preset, "--traces", "--probe", folder / "far.jsonl", "--json"),
        )
        assert ran.code == 0, ran


def _write(path: Path, rows: list[dict[str, str]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
