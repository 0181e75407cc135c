"""The Python door: `kept.open`."""

from pathlib import Path
from typing import Any

from kept.errors import InputError, SettingsError
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import Settings
from kept.knowledge_base.wiring import store_exists
from kept.models.own import (
    EmbedsTexts,
    JudgesCandidates,
    OwnModels,
    ReadsPassages,
    ScoresCandidates,
)
from kept.search.observers import Watch
from kept.stores.addresses import without_secrets


def open(  # noqa: A001, PLR0913 -- its public name; what is set most often
    path: str | Path = "./.kept",
    *,
    create: bool = False,
    tenant: str | None = None,
    embedder: str | EmbedsTexts | None = None,
    preset: str | None = None,
    reranker: str | ScoresCandidates | None = None,
    judge: JudgesCandidates | None = None,
    reader: ReadsPassages | None = None,
    watch: Watch | None = None,
    **settings: Any,  # noqa: ANN401 -- checked by the settings
) -> KnowledgeBase:
    """Open the knowledge base in *path*: a folder, or the URL of a server.

    A folder without one raises, unless *create* is true, so that a typing error makes
    no empty knowledge base.

        kb = kept.open("./kb", create=True)
        kb.ingest("handbook/")                   # files, folders, URLs
        kb.add("28 days of leave a year.", title="Leave", metadata={"year": 2025})

        for passage in kb.search("how many days of leave do I have?"):
            print(passage.title, passage.relevance, passage.text)
        print(kb.ask("how many days of leave do I have?"))

        kb.documents(); kb.update(id, title="…"); kb.delete(id); kb.close()

    *tenant* names whose documents these are (default "default"), *embedder* what makes
    the vectors ("minilm", "hash" or "openai"), *preset* how passages are chosen. More
    *settings* are those of `kept.Settings`, in small letters and without ``KEPT_``. A
    *watch* observes searches, answers and ingestion, as `Telemetry` does.

    Models of your own are objects: an *embedder* with ``embed(texts)``, a *reranker*
    with ``scores(query, candidates)``, a *judge* with ``review(query, candidates)``, a
    *reader* with ``read(question, passages)``, each with an ``id``. They may be called
    from several threads at once, and are yours to close.
    """
    if not isinstance(path, str | Path):
        msg = f"the path is {path!r}; expected a folder, or the URL of a store"
        raise SettingsError(msg)
    named: dict[str, Any] = {"tenant": tenant, "preset": preset}
    objects: dict[str, Any] = {"judge": judge, "reader": reader}
    for name, one in (("embedder", embedder), ("reranker", reranker)):
        (named if isinstance(one, str) else objects)[name] = one
    own = OwnModels.of(**objects)
    given = {name: value for name, value in named.items() if value is not None}
    chosen = Settings.of({"store": str(path), **given, **settings})
    if not create and not store_exists(chosen):
        where = without_secrets(chosen.store)
        msg = (
            f"there is no knowledge base in {where!r}; check the path, or make one "
            f"with kept.open({where!r}, create=True)"
        )
        raise InputError(msg)
    return KnowledgeBase(chosen, watch=watch, own=own)
