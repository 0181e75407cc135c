"""A knowledge base that takes paths and gives answers which show themselves."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator
from html import escape
from itertools import chain, islice
from pathlib import Path
from typing import Any, overload

from kept.doors.library.selected import Explanation, Selected
from kept.errors import InputError, SettingsError
from kept.explain.explanations import why_not
from kept.explain.render import why_not_lines
from kept.ingest.ingestion import Handed
from kept.ingest.ports import Crew
from kept.ingest.receipts import Receipt
from kept.ingest.sources import Handing
from kept.kernel.filters import Filters
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import Settings
from kept.knowledge_base.wiring import fetch_limits_of
from kept.search.answer.ask import Asked
from kept.search.observers import Watch
from kept.search.retrieve import Request
from kept.stores.addresses import told

Names = str | Path | Iterable[str | Path]


class ReceiptList(list[Receipt]):
    """What became of everything that was handed in, counted when it is shown."""

    def __repr__(self) -> str:
        counts = Counter(receipt.status for receipt in self)
        told = ", ".join(f"{count} {status}" for status, count in counts.items())
        texts = "1 text" if len(self) == 1 else f"{len(self)} texts"
        return f"{texts}: {told}" if self else "nothing was handed in"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(r.source_uri)}</td><td>{escape(r.status)}</td>"
            f"<td>{r.chunks}</td><td>{escape(r.error or r.rule or '')}</td></tr>"
            for r in self
        )
        head = "<tr><th>source</th><th>status</th><th>chunks</th><th></th></tr>"
        return f"<p>{escape(repr(self))}</p><table>{head}{rows}</table>"


class Base(KnowledgeBase):
    """A knowledge base for people.

    >>> import kept
    >>> kb = kept.open(folder, embedder="hash")
    >>> kb.add("Employees have 28 days of leave.", title="Leave")
    1 text: 1 created
    >>> kb.search("How many days of leave do employees have?")
    1 passage for 'How many days of leave do employees have?': Leave
    >>> kb.close()
    """

    def __repr__(self) -> str:
        where = told(self.settings.store)
        return f"<the knowledge base {where!r} of the tenant {self.tenant!r}>"

    @overload
    def ingest(
        self, handed: Names, *, as_given: bool = False, by: Crew | None = None
    ) -> ReceiptList: ...

    @overload
    def ingest(
        self,
        handed: Iterable[Handed],
        *,
        as_given: bool = False,
        by: Crew | None = None,
    ) -> Iterable[Receipt]: ...

    def ingest(
        self,
        handed: Any,
        *,
        as_given: bool = False,
        by: Crew | None = None,
    ) -> Iterable[Receipt]:
        """Take in files, folders or pages by their names, and return the receipts.

        Texts that are handed in one by one are taken in as they are asked for.
        """
        first, items = _peeked(handed)
        if isinstance(first, Handed):
            return super().ingest(items, as_given=as_given, by=by)
        handing = Handing(limits=fetch_limits_of(self.settings))
        named = handing([_name(item) for item in items])
        return ReceiptList(super().ingest(named, as_given=as_given, by=by))

    def add(self, text: str, **fields: Any) -> ReceiptList:  # noqa: ANN401 -- a draft's
        """Take one text in; *fields* are those of a draft, such as title and tags."""
        return ReceiptList(super().add(text, **fields))

    def search(  # noqa: PLR0913 -- a question has as many sides
        self,
        question: str,
        *,
        k: int | None = None,
        filters: Filters | None = None,
        intent: str = "other",
        item: str | None = None,
        pinned: Iterable[str] = (),
    ) -> Selected:
        """Return the passages that deserve to be cited, or a refusal."""
        found = super().search(
            question, k=k, filters=filters, intent=intent, item=item, pinned=pinned
        )
        return Selected.of(found)

    def why_not(self, document: str, question: str) -> Explanation:
        """Tell why a document or chunk is not in the answer to a question."""
        request = Request(question=question, tenant=self.tenant)
        return Explanation(tuple(why_not_lines(why_not(self, document, request))))

    async def asearch(self, question: str, **sides: Any) -> Selected:  # noqa: ANN401 -- those of search
        """Search without holding up an event loop."""
        return await asyncio.to_thread(self.search, question, **sides)

    async def aask(self, question: str, **sides: Any) -> Asked:  # noqa: ANN401 -- those of ask
        """Ask without holding up an event loop."""
        return await asyncio.to_thread(self.ask, question, **sides)

    async def aingest(self, names: Names) -> ReceiptList:
        """Take in by names without holding up an event loop."""
        return await asyncio.to_thread(self.ingest, names)


def _peeked(handed: object) -> tuple[object, Iterator[Any]]:
    """Return the first of what is handed in, and all of it."""
    if not isinstance(handed, Iterable) or isinstance(handed, str | bytes):
        handed = (handed,)
    rest = iter(handed)
    begun = list(islice(rest, 1))
    return (begun or (None,))[0], chain(begun, rest)


def _name(item: object) -> str:
    """Return *item* as a name, unless it is something else."""
    if isinstance(item, str | Path):
        return str(item)
    msg = (
        f"{item!r} was handed in; expected the name of a file, a folder or a page. "
        "A text is taken in by add"
    )
    raise InputError(msg)


def open_base(
    folder: str | Path = "./.kept",
    *,
    watch: Watch | None = None,
    **settings: Any,  # noqa: ANN401 -- checked by the settings
) -> Base:
    """Open the knowledge base in *folder*, making it if it is not there.

    *settings* are those of `Settings`, such as ``tenant``; a *watch* sees all.
    """
    if not isinstance(folder, str | Path):
        msg = f"the folder is {folder!r}; expected a path, or the URL of a store"
        raise SettingsError(msg)
    return Base(Settings.of({"store": str(folder), **settings}), watch=watch)
