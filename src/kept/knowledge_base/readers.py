"""Assigned readers: who may read a source, whatever it declares itself."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kept.errors import InputError, NotFoundError, UnreadableSourceError
from kept.ingest.cutting import demand_same_cut, revised
from kept.ingest.receipts import KnownSource, Receipt
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.wiring import cutting_of
from kept.text.access import acl_text, reader_name
from kept.text.draft import Draft, readers_of
from kept.text.readers.tables import json_rows, table_rows

ROW = 'expected a source_uri and its readers, as {"source_uri": "a.txt", "readers": []}'


@dataclass(frozen=True, slots=True)
class AssignedReaders:
    """A line of a list: a source and its readers, None to go by what it declares."""

    source_uri: str
    readers: tuple[str, ...] | None


def assignments_in(path: Path) -> Iterator[AssignedReaders]:
    """Yield the lines of a list in JSON lines, or in CSV by its ending."""
    try:
        data = path.read_bytes()
    except OSError as error:
        problem = f"it cannot be opened ({error.strerror or error})"
        raise UnreadableSourceError(str(path), problem, "check its name") from error
    lines = data.decode("utf-8-sig", "replace").splitlines(keepends=True)
    if path.suffix.casefold() == ".csv":
        rows = table_rows(lines, str(path))
    else:
        rows = json_rows(data.splitlines(), str(path), None)
    for row in rows:
        if isinstance(row, InputError):
            raise row
        number, given = row
        place = f"{path}:{number}"
        if not given.get("source_uri") or "readers" not in given:
            raise UnreadableSourceError(place, "the row is incomplete", ROW)
        readers = readers_of(given["readers"], place)
        yield AssignedReaders(str(given["source_uri"]), readers)


def assign_readers(
    base: KnowledgeBase, source: str, readers: Iterable[str] | None
) -> Receipt:
    """Give a source its readers, whatever it declares, now and when it changes.

    None takes the assignment away; the document is then closed until its source is
    ingested again.
    """
    known = base.store.source(base.tenant, source)
    if known is None or not known.live:
        advice = "'kept documents' lists the sources of those that are"
        raise NotFoundError("source", source, advice)
    names = None if readers is None else tuple(sorted(set(map(reader_name, readers))))
    draft = _draft_of(base, known, {"readers": names})
    intake = base.store.intake(base.tenant)
    intake.assign(source, None if names is None else acl_text(names))
    [receipt] = base.declared(draft, source)
    return receipt


def _draft_of(
    base: KnowledgeBase, known: KnownSource, given: Mapping[str, object]
) -> Draft:
    """Return what a source declared as a draft, with what is *given* over it."""
    if known.alias_id is not None:
        alias = base.store.alias(base.tenant, known.alias_id)
        return Draft(**{**alias.draft, "text": alias.text, **given})
    document, text = base.store.document(base.tenant, known.document_id)
    chunks = base.store.chunks(base.tenant, known.document_id)
    draft = revised(document, chunks, dict(given), text)
    demand_same_cut(draft, document, chunks, cutting_of(base.settings))
    return draft
