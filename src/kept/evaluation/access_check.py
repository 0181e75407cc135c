"""Access check: whether a service shows its callers what they may not read.

Documents for a group that nobody else is in are planted in a running service, and
outsiders of every role ask for them through every route and page, before and after:

* whatever answers a question, lists or explains must be the same before and after, so
  that no count, score or weight of a word gives away that there is more;
* nothing may hold a word of the planted texts that was never asked for, nor their
  titles, sources and ids;
* a member of the group must find them, or the check has shown nothing.

Documents and keys of the check are taken away again.
"""

import json
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol
from urllib.parse import quote

from kept.errors import InputError

NAME = "kept-audit"
WAIT = 60
PAGE = {"accept": "text/html"}
REFUSED = 400
SHOWN = 80
# They differ from one answer to the next, whoever asks.
VOLATILE = frozenset(
    {"at", "created_at", "id", "instance", "rerankMs", "timings", "trace"}
)
_TAGS = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL)
_SPACES = re.compile(r"\s+")
_REQUEST = re.compile(r"\b[0-9a-f]{16}\b")
_LETTERS = "bcdfghklmnprstvz"


class HttpResponse(Protocol):
    """What a service answers."""

    @property
    def status_code(self) -> int:
        """The status."""
        ...

    @property
    def text(self) -> str:
        """The body."""
        ...


@dataclass(frozen=True, slots=True)
class Probe:
    """One request of an outsider; *same* if its answer must not change.

    In the path and the body, ``{id}`` stands for a planted document.
    """

    surface: str
    method: str
    path: str
    body: Mapping[str, Any] | None = field(default=None, hash=False)
    same: bool = True
    page: bool = False


@dataclass(frozen=True, slots=True)
class AccessFinding:
    """Something that an outsider was shown."""

    surface: str
    role: str
    problem: str


@dataclass(frozen=True, slots=True)
class AccessReport:
    """How many requests were tried, and what they showed that they should not."""

    tenant: str
    requests: int
    surfaces: tuple[str, ...]
    findings: tuple[AccessFinding, ...]

    def as_data(self) -> dict[str, Any]:
        """Return the report as JSON."""
        return {
            "tenant": self.tenant,
            "requests": self.requests,
            "surfaces": list(self.surfaces),
            "findings": [
                {"surface": f.surface, "role": f.role, "problem": f.problem}
                for f in self.findings
            ],
        }

    def lines(self) -> Iterator[str]:
        """Yield the report as lines for people."""
        leaking = {finding.surface for finding in self.findings}
        for surface in self.surfaces:
            yield f"{'LEAKS' if surface in leaking else 'fine '}  {surface}"
        for finding in self.findings:
            yield f"{finding.surface}, as {finding.role}: {finding.problem}"
        asked = f"{self.requests} requests in the tenant {self.tenant!r}"
        found = len(self.findings)
        verdict = f"{found} showed too much" if found else "nothing was shown"
        yield f"{asked}: {verdict}"


@dataclass(frozen=True, slots=True)
class Planted:
    """Texts for one group: *asked* words stand in questions, *untold* ones never."""

    asked: tuple[str, ...]
    untold: tuple[str, ...]
    ids: tuple[str, ...] = ()

    @property
    def texts(self) -> list[str]:
        """The texts; two of them are nearly the same, so that there is an alias."""
        one, two, three = self.asked
        first, second, _ = self.untold
        text = (
            f"The {one} of the {two} was moved to the {first} after the {three} had "
            f"closed, and the {second} was told on the same evening by letter."
        )
        return [text, f"{text}\n", f"The {three} costs 4711 euro, says the {first}."]


class AccessCheck:
    """Checks one tenant of a service with an admin's key that reads everything."""

    def __init__(
        self, request: Callable[..., HttpResponse], key: str, tenant: str | None
    ) -> None:
        # As of a client of httpx whose base is the service.
        self._request = request
        self._sent = 0
        self._run = secrets.token_hex(4)
        self._own = {"authorization": f"Bearer {key}"}
        session = self._json("GET", "/v1/session")
        if session["role"] != "admin" or not session["reads_everything"]:
            msg = "the key is not an admin's that reads everything; use one that is"
            raise InputError(msg)
        self.tenant = tenant or session["tenant"] or f"{NAME}-{self._run}"
        self._own["kept-tenant"] = self.tenant.encode().decode("latin-1")
        self._keys: list[str] = []
        self._documents: list[str] = []

    def __call__(self) -> AccessReport:
        """Plant documents, try every surface, and take the documents away again."""
        self._demand_fit()
        words = tuple(_word() for _ in range(6))
        planted = Planted(words[:3], words[3:])
        probes = tuple(_probes(planted.asked, self.tenant, self._prefix))
        try:
            self._add(["Employees have 28 days of leave a year."], ["everyone"], "open")
            outsiders = {
                role: self._key(role, "outside")
                for role in ("reader", "writer", "admin")
            }
            before = self._asked(outsiders, probes, f"d{secrets.token_hex(12)[1:]}")
            ids = self._add(planted.texts, [self._group("inside")], planted.untold[2])
            planted = replace(planted, ids=ids)
            self._demand_found(planted)
            after = self._asked(outsiders, probes, ids[0])
        finally:
            self._clear()
        findings = [
            AccessFinding(probe.surface, role, problem)
            for (role, probe), answer in after.items()
            for problem in _problems(planted, probe, before[(role, probe)], answer)
        ]
        surfaces = tuple(dict.fromkeys(probe.surface for probe in probes))
        return AccessReport(self.tenant, self._sent, surfaces, tuple(findings))

    @property
    def _prefix(self) -> str:
        return f"{NAME}/{self._run}/"

    def _group(self, name: str) -> str:
        return f"{NAME}-{self._run}-{name}"

    def _demand_fit(self) -> None:
        """Refuse a tenant whose documents need no readers: planting would close it."""
        if self._json("GET", "/v1/settings")["closed"]:
            return
        if self._json("GET", "/v1/documents?limit=1")["documents"]:
            msg = (
                f"the documents of the tenant {self.tenant!r} have no readers, and "
                "would be closed to all by the first that has; name a tenant that is "
                "new, or leave it out with a key of every tenant"
            )
            raise InputError(msg)

    def _add(
        self, texts: Sequence[str], readers: Sequence[str], name: str
    ) -> tuple[str, ...]:
        """Ingest texts for some readers and return the ids of their documents."""
        given = [
            {
                "text": text,
                "title": text.split()[1],
                "source_uri": f"{self._prefix}{name}/{place}",
                "readers": list(readers),
            }
            for place, text in enumerate(texts)
        ]
        job = self._json("POST", f"/v1/documents?wait={WAIT}", {"documents": given})
        ids = [row["document_id"] for row in job["receipts"] if row["document_id"]]
        self._documents += ids
        if len(ids) < len(texts):
            msg = f"the documents of the check were not stored within {WAIT} seconds"
            raise InputError(msg)
        return tuple(dict.fromkeys(ids))

    def _key(self, role: str, group: str) -> dict[str, str]:
        """Make a key of a role and a group; return the headers of its requests."""
        name = self._group(group)
        given = {
            "principal": f"{name}-{role}",
            "role": role,
            "tenant": self.tenant,
            "groups": [name],
        }
        made = self._json("POST", "/v1/keys", given)
        self._keys.append(made["key_id"])
        return {"authorization": f"Bearer {made['key']}"}

    def _demand_found(self, planted: Planted) -> None:
        """Raise unless a member of the group finds the planted documents."""
        member = self._key("reader", "inside")
        question = {"question": _questions(planted.asked)[0]}
        found = self._send("POST", "/v1/search", member, question)
        if planted.untold[0] not in found.text:
            msg = (
                "a member of the group does not find the planted documents, so that "
                f"the check would show nothing; it got {found.text[:200]!r}"
            )
            raise InputError(msg)

    def _asked(
        self,
        outsiders: Mapping[str, Mapping[str, str]],
        probes: Sequence[Probe],
        document: str,
    ) -> dict[tuple[str, Probe], str]:
        """Return what each outsider is answered, with a name in place of an id."""
        return {
            (role, probe): self._answer(probe, headers, document)
            for role, headers in outsiders.items()
            for probe in probes
        }

    def _answer(self, probe: Probe, headers: Mapping[str, str], document: str) -> str:
        body = probe.body
        if body is not None:
            body = json.loads(json.dumps(body).replace("{id}", document))
        if probe.page:
            headers = {**headers, **PAGE}
        path = probe.path.replace("{id}", document)
        answer = self._send(probe.method, path, headers, body)
        text = _seen(answer.text) if probe.page else _plain(answer.text)
        return f"{answer.status_code} {text}".replace(document, "ID")

    def _clear(self) -> None:
        """Delete the planted documents and revoke the keys of the check."""
        for document in dict.fromkeys(self._documents):
            path = f"/v1/documents/{document}?with_aliases=true"
            self._send("DELETE", path, self._own)
        for key in self._keys:
            self._send("DELETE", f"/v1/keys/{key}", self._own)

    def _json(self, method: str, path: str, body: Any = None) -> dict[str, Any]:  # noqa: ANN401 -- JSON
        """Return what an admin's request is answered, which has to succeed."""
        answer = self._send(method, path, self._own, body)
        if not answer.text.startswith("{") or answer.status_code >= REFUSED:
            msg = (
                f"{method} {path} was answered {answer.status_code} "
                f"{answer.text[:200]!r}; expected a service of Kept and an admin's key"
            )
            raise InputError(msg)
        found: dict[str, Any] = json.loads(answer.text)
        return found

    def _send(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: Any = None,  # noqa: ANN401 -- JSON
    ) -> HttpResponse:
        self._sent += 1
        return self._request(method, path, headers=dict(headers), json=body)


def _questions(asked: Sequence[str]) -> tuple[str, ...]:
    one, two, three = asked
    return (
        f"Where was the {one} of the {two} moved after the {three} had closed?",
        "How many days of leave do employees have?",
        three,
    )


def _probes(asked: Sequence[str], tenant: str, prefix: str) -> Iterator[Probe]:
    """Yield every request that an outsider makes."""
    for question in _questions(asked):
        yield from _asking(question)
    first = _questions(asked)[0]
    store = f"/v1/vector_stores/{quote(tenant, safe='')}"
    yield from (
        Probe("vector stores", "POST", f"{store}/search", {"query": first}),
        Probe("vector stores", "GET", "/v1/vector_stores"),
        Probe("vector stores", "GET", f"{store}/files"),
        Probe("vector stores", "GET", f"{store}/files/{{id}}"),
        *(
            Probe("documents", "GET", f"/v1/documents{rest}")
            for rest in ("", "?all_versions=true", "/{id}", "/{id}/chunks")
        ),
        Probe("deleting", "DELETE", "/v1/documents/{id}"),
        Probe("deleting", "POST", "/v1/documents/prune", {"prefix": f"{prefix}x"}),
        *(
            Probe(name, "GET", f"/v1/{name}")
            for name in ("aliases", "ledger", "similarities", "jobs", "settings")
        ),
        Probe("traces", "GET", "/v1/traces", same=False),
        Probe("audit", "GET", "/v1/audit", same=False),
        Probe("audit", "GET", "/audit.csv", same=False),
        Probe("audit", "GET", "/audit.jsonl", same=False),
        Probe("metrics", "GET", "/metrics"),
        *(
            Probe("pages", "GET", path, page=True)
            for path in (
                *("/documents", f"/documents?containing={asked[0]}"),
                *("/documents/{id}", "/documents/jobs", "/ledger", "/settings"),
            )
        ),
        *(
            Probe("pages", "GET", path, page=True, same=False)
            for path in ("/ask", "/traces", "/thresholds", "/audit", "/keys")
        ),
    )
    preview = {"set": {}, "questions": [first]}
    yield Probe("settings", "POST", "/v1/settings/preview", preview)


def _asking(question: str) -> Iterator[Probe]:
    """Yield every way of asking one question."""
    body = {"question": question}
    passages = [
        {"id": "a", "text": f"{question} Nobody knows.", "score": 0.4},
        {"id": "b", "text": "Employees have 28 days of leave.", "score": 0.5},
    ]
    texts = [one["text"] for one in passages]
    yield from (
        Probe("search", "POST", "/v1/search", body),
        Probe("search", "POST", "/v1/search", {**body, "pinned": ["{id}:0000"]}),
        Probe(
            "search", "POST", "/v1/search", {**body, "filters": {"documents": ["{id}"]}}
        ),
        Probe("ask", "POST", "/v1/ask", {**body, "extractive": True}),
        Probe(
            "select",
            "POST",
            "/v1/select",
            {**body, "passages": passages, "scores": "distance"},
        ),
        Probe("rerank", "POST", "/v1/rerank", {"query": question, "documents": texts}),
        Probe("why", "POST", "/v1/why", {**body, "chunk_id": "{id}:0000"}),
        Probe("why not", "POST", "/v1/why-not", {**body, "named": "{id}"}),
        Probe(
            "why not",
            "POST",
            "/v1/why-not",
            {**body, "named": question.rpartition(" ")[2]},
        ),
        Probe(
            "Dify",
            "POST",
            "/retrieval",
            {
                "knowledge_id": "kept",
                "query": question,
                "retrieval_setting": {"top_k": 5, "score_threshold": 0.0},
            },
        ),
    )


def _problems(planted: Planted, probe: Probe, before: str, after: str) -> Iterator[str]:
    """Yield what an answer shows of the planted documents."""
    for word in (*planted.untold, *planted.ids):
        if word in after:
            yield f"{probe.method} {probe.path} shows {word!r}, which nobody asked for"
            return
    if probe.same and before != after:
        yield (
            f"{probe.method} {probe.path} is answered otherwise since documents were "
            f"planted: {_difference(before, after)}"
        )


def _difference(before: str, after: str) -> str:
    """Return where two answers begin to differ."""
    place = next(
        (
            i
            for i, pair in enumerate(zip(before, after, strict=False))
            if len(set(pair)) > 1
        ),
        min(len(before), len(after)),
    )
    start = max(0, place - SHOWN // 2)
    return f"{before[start : place + SHOWN]!r}, then {after[start : place + SHOWN]!r}"


def _plain(text: str) -> str:
    """Return a JSON answer without what differs every time; another as it is."""
    try:
        return json.dumps(_steady(json.loads(text)), sort_keys=True)
    except ValueError:
        return text


def _steady(value: Any) -> Any:  # noqa: ANN401 -- any JSON
    if isinstance(value, dict):
        return {k: _steady(one) for k, one in value.items() if k not in VOLATILE}
    return [_steady(one) for one in value] if isinstance(value, list) else value


def _seen(page: str) -> str:
    """Return what people see of a page."""
    return _REQUEST.sub("REQUEST", _SPACES.sub(" ", _TAGS.sub(" ", page)))


def _word() -> str:
    """Return a word that no text has."""
    return "".join(secrets.choice(_LETTERS + "aeiou"[i % 5]) for i in range(14))
