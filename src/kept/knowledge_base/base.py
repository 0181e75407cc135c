"""A knowledge base: ingest documents, search them, and ask questions."""

import asyncio
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, overload

from kept._runtime import Closing, Opener, in_thread
from kept.errors import InputError
from kept.ingest.cutting import demand_same_cut, revised
from kept.ingest.ingestion import Handed, Ingest
from kept.ingest.ports import Crew
from kept.ingest.receipts import Receipt, Source, StoredDocument, histogram
from kept.ingest.sources import Handing, Met, checked_names, peeked
from kept.kernel.calibration import Calibration, calibration_of, known_cosines
from kept.kernel.filters import Filters, filters_given
from kept.kernel.ports import Embedder
from kept.kernel.presets import preset
from kept.kernel.presets.overrides import known
from kept.kernel.presets.plan import Configured, Parts, Plan
from kept.knowledge_base.prepared import PreparedSearch
from kept.knowledge_base.records import RecordedQueries
from kept.knowledge_base.results import Explanation, ReceiptList, SearchResult
from kept.knowledge_base.select import Selecting
from kept.knowledge_base.settings import Settings
from kept.knowledge_base.tenant_settings import TenantSettings
from kept.knowledge_base.wiring import (
    LanguageModels,
    Progress,
    configuration_of,
    cutting_of,
    duplicate_rules_of,
    embedder_of,
    fetch_limits_of,
    process_secret,
    read_options_of,
    recorder_of,
    refuse_misconfigured,
    refuse_unused,
    store_exists,
    store_of,
    watch_of,
)
from kept.models.own import NO_OWN, OwnModels
from kept.search.answer.answer import Answerer
from kept.search.answer.ask import Asked, Ending, StreamedAsk, recorded_ask, tell_answer
from kept.search.observers import Watch
from kept.search.recorded import recorded, sha256_of
from kept.search.retrieve import Found, Request, Retriever
from kept.search.select import Passage
from kept.stores.addresses import whole_address, without_secrets
from kept.stores.ports import ManagedStore
from kept.stores.reembed import Report, reembed, unreported
from kept.text.access import Principal
from kept.text.draft import Draft

SourceNames = str | Path | Iterable[str | Path]


class KnowledgeBase(RecordedQueries, TenantSettings, Closing):
    """One tenant's documents and the way they are searched; `kept.open` returns it.

    >>> import kept
    >>> kb = kept.open(folder, create=True, embedder="hash")
    >>> kb.add("Employees have 28 days of leave.", title="Leave")
    1 text: 1 created
    >>> for passage in kb.search("How many days of leave do employees have?"):
    ...     print(passage.title, "|", passage.text)
    Leave | Employees have 28 days of leave.
    >>> kb.close()
    """

    def __init__(
        self,
        settings: Settings,
        *,
        writable: bool = True,
        progress: Progress | None = None,
        watch: Watch | None = None,
        own: OwnModels = NO_OWN,
    ) -> None:
        refuse_misconfigured(settings)
        refuse_unused(preset(settings.preset), own)
        self.settings = settings
        self.own = own
        self.tenant = settings.tenant
        self.asker: Principal | None = None
        self._progress = progress
        self.watch = watch or watch_of(settings)
        self._opener = Opener(f"the knowledge base {without_secrets(settings.store)!r}")
        self._store = store_of(settings, writable=writable)
        self.models = LanguageModels(settings, self.watch, own)
        self.recorder = recorder_of(settings, self.store)
        self.configurations: dict[tuple[str, str], Configured] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Come through to another process: opened again there, at the same address."""
        address = whole_address(self.settings.store)
        settings = self.settings.changed(store=address)
        return _opened_again, (settings, self.own, self.store.writable)

    def viewed(self, **changes: Any) -> "KnowledgeBase":  # noqa: ANN401 -- settings
        """Return this knowledge base under other settings, such as another tenant's.

        It shares the store, the models and the recorder; close only the original.
        """
        view = object.__new__(type(self))
        view.__dict__.update(self.__dict__)
        view.settings = self.settings.changed(**changes)
        view.tenant = view.settings.tenant
        return view

    def seen_by(
        self, *, user: str | None = None, groups: Iterable[str] = ()
    ) -> "KnowledgeBase":
        """Return this knowledge base as a *user* who is in *groups* may read it.

        What they may not read takes part in nothing that is read here; what is written
        is the same. Close only the original.
        """
        return self.read_as(Principal(user, frozenset(groups)))

    def read_as(self, asker: Principal) -> "KnowledgeBase":
        """Return this knowledge base as *asker* may read it."""
        # Or each view would load a model of its own.
        _ = self.embedder
        view = self.viewed()
        view.asker, view._store = asker, self.store.seen_by(asker)  # noqa: SLF001 -- ours
        return view

    def __repr__(self) -> str:
        where = without_secrets(self.settings.store)
        return f"<the knowledge base {where!r} of the tenant {self.tenant!r}>"

    @property
    def store(self) -> ManagedStore:
        """Where the documents are; a fork of the process that opened it is refused."""
        self._opener.demand()
        return self._store

    def close(self) -> None:
        """Let go of every file, unless they are those of the process we forked from."""
        if self._opener.gone:
            return
        if self.recorder is not None:
            self.recorder.close()
        self.models.close()
        self.store.close()
        self.watch.close()

    @cached_property
    def embedder(self) -> Embedder:
        """What turns text into vectors; refused if the store has another's."""
        own = self.own.embedder
        return self.watch.embedder(own or embedder_of(self.settings, self._progress))

    @overload
    def ingest(
        self,
        handed: SourceNames,
        *,
        prune: bool = False,
        as_given: bool = False,
        by: Crew | None = None,
    ) -> ReceiptList: ...

    @overload
    def ingest(
        self,
        handed: Iterable[Handed],
        *,
        prune: bool = False,
        as_given: bool = False,
        by: Crew | None = None,
    ) -> Iterator[Receipt]: ...

    def ingest(
        self,
        handed: Any,
        *,
        prune: bool = False,
        as_given: bool = False,
        by: Crew | None = None,
    ) -> ReceiptList | Iterator[Receipt]:
        """Ingest files, folders or URLs by their names, and return the receipts.

        A name that does not exist raises before anything is stored. With *prune*,
        documents are retired whose file is gone from the folders. With *as_given*, no
        chunk is left out and only an exact copy is reused. *by* embeds the chunks in
        place of this process.

        Instead of names it takes `Handed` texts, and yields each receipt as it is
        stored.
        """
        first, items = peeked(handed)
        if isinstance(first, Handed):
            return self._ingested(items, as_given=as_given, by=by)
        names = checked_names(items)
        options = read_options_of(self.settings)
        handing = Handing(options=options, limits=fetch_limits_of(self.settings))
        handing.met = Met() if prune else None
        receipts = self._ingested(handing(names), as_given=as_given, by=by)
        # In this order: pruning looks at what the walk has met.
        return ReceiptList([*receipts, *self.pruned(handing)])

    def _ingested(
        self, handed: Iterable[Handed], *, as_given: bool = False, by: Crew | None
    ) -> Iterator[Receipt]:
        self._claim()
        path = self._path(as_given=as_given).helped(by)
        yield from self.watch.ingest(self.tenant, path(handed))

    def add(self, text: str, **fields: Any) -> ReceiptList:  # noqa: ANN401 -- a draft's
        """Ingest one text; *fields* are those of a draft, such as title and metadata.

        A later text of the same *source_uri* replaces the earlier one.
        """
        draft = Draft(text=text, **fields)
        uri = draft.source_uri or f"text:{sha256_of(text)[:16]}"
        return self.declared(draft, uri)

    def update(
        self,
        document_id: str,
        *,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        **fields: Any,  # noqa: ANN401 -- a draft's
    ) -> Receipt:
        """Change a document: its *text*, or what is declared of it, such as its title.

        *metadata* is merged key by key, and None removes a key. Only a new text or
        title is embedded again. Ingesting the document's file again restores what
        the file declares.
        """
        document, stored = self.store.document(self.tenant, document_id)
        chunks = self.store.chunks(self.tenant, document_id)
        whole = stored if text is None else text
        readers = self.store.readers(self.tenant, document_id)
        given = {"readers": readers, **fields, "metadata": metadata}
        draft = revised(document, chunks, given, whole)
        if text is None:
            demand_same_cut(draft, document, chunks, cutting_of(self.settings))
        [receipt] = self.declared(draft, document.source_uri)
        return receipt

    def declared(self, draft: Draft, uri: str) -> ReceiptList:
        """Ingest a draft as what the source *uri* declares now."""
        source = Source(uri=uri, raw_sha256=sha256_of(repr(draft)))
        handed = Handed(source=source, read=lambda: draft)
        return ReceiptList(self._ingested([handed], by=None))

    def pruned(self, handing: Handing) -> Iterator[Receipt]:
        """Retire documents whose file is gone from the folders that *handing* walked.

        Nothing is retired where it did not note the sources that it met.
        """
        if handing.met is None:
            return
        for root in handing.roots:
            yield from self._retired(root, handing.gone)

    def prune(self, prefix: str, keep: Container[str] = ()) -> ReceiptList:
        """Retire documents whose source begins with *prefix* and is not in *keep*."""
        if not prefix:
            msg = "the prefix is empty, which all sources begin with; name a folder"
            raise InputError(msg)
        return ReceiptList(self._retired(prefix, lambda uri: uri not in keep))

    def _retired(self, prefix: str, gone: Callable[[str], bool]) -> Iterator[Receipt]:
        intake = self.store.intake(self.tenant)
        for uri in self.store.sources(self.tenant, prefix):
            if gone(uri):
                yield intake.forget(uri)

    def documents(self, *, all_versions: bool = False) -> list[StoredDocument]:
        """Return the documents, oldest first; with *all_versions* replaced ones too."""
        return self.store.documents(self.tenant, all_versions=all_versions)

    def search(  # noqa: PLR0913 -- a question has as many sides
        self,
        question: str,
        *,
        k: int | None = None,
        filters: Filters | Mapping[str, Any] | None = None,
        intent: str = "other",
        item: str | None = None,
        pinned: Iterable[str] = (),
        context: int = 0,
    ) -> SearchResult:
        """Return the passages that deserve to be cited, or a refusal.

        *filters* are `Filters` or a plain dict, such as ``{"tags": ["leave"]}`` or
        ``{"metadata": {"year": 2025}}``. *pinned* chunks are always part of it. *k* is
        how many are cited at most; *context* is how many of the rest come back beside
        them, best first and not cited.
        """
        request = Request(
            question=question,
            tenant=self.tenant,
            k=k,
            filters=filters_given(filters),
            intent=intent,
            item=item,
            pinned=frozenset(pinned),
            context=context,
        )
        return SearchResult.of(self.answer(request))

    def select(  # noqa: PLR0913 -- as many as decide the answer
        self,
        question: str,
        passages: Iterable[Passage],
        *,
        scores: str | None = None,
        order: str | None = None,
        k: int | None = None,
        filters: Filters | Mapping[str, Any] | None = None,
    ) -> SearchResult:
        """Choose from *passages* found elsewhere, by the words' weights of this base.

        *scores* says what their scores mean, *order* whose order counts; more options
        are in `kept.knowledge_base.select.Selecting`.
        """
        found = Selecting(base=self).select(
            question, passages, scores=scores, order=order, k=k, filters=filters
        )
        return SearchResult.of(found)

    def why_not(self, document: str, question: str) -> Explanation:
        """Explain why a document or chunk is not in the answer to a question."""
        from kept.explain.explanations import why_not  # noqa: PLC0415 -- slow to load
        from kept.explain.render import why_not_lines  # noqa: PLC0415 -- as above

        request = Request(question=question, tenant=self.tenant)
        return Explanation(tuple(why_not_lines(why_not(self, document, request))))

    async def aingest(self, names: SourceNames, *, prune: bool = False) -> ReceiptList:
        """Run `ingest` in a thread, so that an event loop goes on."""
        return await asyncio.to_thread(self.ingest, names, prune=prune)

    def prepared(self, request: Request) -> PreparedSearch:
        """Return what answers *request*, from one read of the tenant's state."""
        state = self.store.tenant_state(request.tenant)
        name = self.settings.preset
        configured = self.configured_by(name, known(preset(name), state.overrides))
        retriever = self.retriever(self.plan(request, configured))
        return PreparedSearch(configured, retriever, state.version)

    def rerun(self, request: Request) -> Found:
        """Return what is found for a request, without recording it."""
        return self.prepared(request).retriever(request)

    def answer(
        self,
        request: Request,
        *,
        trace_id: str = "",
        prepared: PreparedSearch | None = None,
    ) -> Found:
        """Return what is found for a whole request.

        Under a *trace_id* it is recorded with every candidate's path.
        """
        prepared = prepared or self.prepared(request)
        found = self._searched(request, prepared.retriever)
        if self.recorder is not None:
            name, with_text = prepared.configured.preset.name, self._keeps_text
            make = partial(
                recorded, found, name, with_text=with_text, trace_id=trace_id
            )
            self.recorder.note(request.tenant, make, self.asker)
        return found

    def ask(  # noqa: PLR0913 -- as many as decide the answer
        self,
        question: str,
        *,
        k: int | None = None,
        filters: Filters | Mapping[str, Any] | None = None,
        intent: str = "other",
        pinned: Iterable[str] = (),
        context: int = 0,
        extractive: bool = False,
    ) -> Asked:
        """Answer from the passages that deserve to be cited, or say there are none.

        A configured language model writes the answer; without one, or with
        *extractive*, it is the sentences that answer, word for word.
        """
        request = Request(
            question=question,
            tenant=self.tenant,
            k=k,
            filters=filters_given(filters),
            intent=intent,
            pinned=frozenset(pinned),
            context=context,
        )
        running = self.asking(request, extractive=extractive)
        for _ in running:
            pass
        return running.asked

    asearch, aask, aadd = in_thread(search), in_thread(ask), in_thread(add)

    def asking(
        self,
        request: Request,
        *,
        extractive: bool = False,
        trace_id: str = "",
        prepared: PreparedSearch | None = None,
    ) -> StreamedAsk:
        """Search for a whole request, and return the answer on its way.

        Under a *trace_id* it is recorded with every candidate's path.
        """
        prepared = prepared or self.prepared(request)
        badge = prepared.retriever.plan.badge
        answerer = Answerer(
            model=None if extractive else self.models.chat(),
            secret=process_secret(),
            embedder=self.embedder,
            relevance=badge.signal,
            low_below=badge.below,
            personal=self.settings.redact_personal,
        )
        return self.watch.asking(
            request,
            partial(self._searched, request, prepared.retriever),
            answerer,
            partial(self._note_ask, prepared.configured, trace_id),
        )

    def _searched(self, request: Request, retriever: Retriever) -> Found:
        again = self.store.database.again

        def search(seen: Plan) -> Found:
            return again(partial(replace(retriever, plan=seen), request))

        return self.watch.search(request, retriever.plan, search)

    def _note_ask(self, configured: Configured, trace_id: str, ending: Ending) -> None:
        tell_answer(ending)
        if self.recorder is not None:
            name, with_text = configured.preset.name, self._keeps_text
            make = partial(
                recorded_ask, ending, name, with_text=with_text, trace_id=trace_id
            )
            tenant = ending.found.request.tenant
            self.recorder.note(tenant, make, self.asker)

    @property
    def _keeps_text(self) -> bool:
        return self.settings.record_queries == "text"

    def retriever(self, plan: Plan) -> Retriever:
        """Return what answers requests by way of *plan*; it records nothing."""
        return Retriever(
            store=self.store,
            embedder=self.embedder,
            calibration=self.calibration,
            plan=plan,
            configuration=configuration_of(plan, self.embedder, self._calibration_id),
        )

    def plan(self, request: Request, configured: Configured | None = None) -> Plan:
        """Return what a request goes through, the tenant's overrides included."""
        configured = configured or self.configured(tenant=request.tenant)
        parts = self.parts_of(configured)
        return configured.plan(parts, k=request.k, pins=bool(request.pinned))

    @cached_property
    def calibration(self) -> Calibration:
        """What turns signals into relevance."""
        path = self.settings.calibration
        return calibration_of(self.embedder.id, Path(path) if path else None)

    @cached_property
    def _calibration_id(self) -> str:
        return self.calibration.id

    @cached_property
    def parts(self) -> Parts:
        """What presets need from outside."""
        reader = self.models.reader(self.embedder.id)
        return Parts(
            near_match_distance=self.embedder.near_match_distance,
            distance_thresholds=self.embedder.distance_thresholds,
            judge=self.models.judge(),
            reranker=self.models.reranker(),
            known_cosines=known_cosines(self.embedder.id),
            floors=self.calibration.floors,
            reading=None
            if reader is None
            else (reader, self.calibration.read_by(reader.id)),
        )

    def parts_of(self, configured: Configured) -> Parts:
        """Return the parts with the judge that the preset's own settings name."""
        model = getattr(configured.settings, "validation_model", "")
        judge = self.models.judge(model) if model else self.parts.judge
        return replace(self.parts, judge=judge)

    def undo(self, alias_id: str) -> Receipt:
        """Make an alias a document of its own; an exact copy is only forgotten."""
        alias = self.store.alias(self.tenant, alias_id)
        intake = self.store.intake(self.tenant)
        if alias.rule == "exact":
            return intake.forget_alias(alias)
        known = intake.source(alias.source_uri)
        raw = known.raw_sha256 if known else alias.sha256
        source = Source(uri=alias.source_uri, raw_sha256=raw)
        self._claim()
        draft = Draft(**{**alias.draft, "text": alias.text})
        return self._path().apart(draft, source, {"undone": alias_id})

    def delete(self, document_id: str, *, with_aliases: bool = False) -> Receipt:
        """Delete a document for good."""
        # Raises where it may not be read: what writes knows of everything.
        self.store.document(self.tenant, document_id)
        intake = self.store.intake(self.tenant)
        return intake.delete(document_id, with_aliases=with_aliases)

    def reembed(self, report: Report | None = None) -> int:
        """Change to the embedder in use; return how many vectors were made.

        Searches go on meanwhile. Interrupted, the next call goes on where it stopped.
        """
        work = self.store.reembedding(self.embedder.id, self.embedder.dimension)
        made = reembed(work, self.embedder, report or unreported)
        self.store.sweep()
        return made

    def similarity_histogram(self, width: float = 0.05) -> list[dict[str, Any]]:
        """Return how often each similarity was accepted and rejected, by rule."""
        return histogram(self.store.similarities(self.tenant, width), width)

    def _claim(self) -> None:
        self.store.claim(self.embedder.id, self.embedder.dimension)

    def _path(self, *, as_given: bool = False) -> Ingest:
        settings = self.settings
        if as_given:
            settings = settings.changed(near_duplicate_threshold=1.0, max_chunks=0)
        return Ingest(
            intake=self.store.intake(self.tenant),
            embedder=self.embedder,
            tenant=self.tenant,
            rules=duplicate_rules_of(settings, self.embedder),
            cutting=cutting_of(settings),
        )


def _opened_again(settings: Settings, own: OwnModels, *rest: bool) -> KnowledgeBase:
    if not store_exists(settings):
        msg = f"there is no knowledge base in {without_secrets(settings.store)!r} here"
        raise InputError(msg)
    return KnowledgeBase(settings, writable=all(rest), own=own)
