"""Taking documents in: kept ingest."""

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kept.doors.cli import options
from kept.doors.cli.output import complain, counted, print_json, say
from kept.doors.cli.progress import byte_bar
from kept.errors import InputError, KeptError
from kept.ingest.ingestion import Handed
from kept.ingest.receipts import Receipt
from kept.ingest.sources import Handing, Met, checked_names
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import Settings
from kept.knowledge_base.wiring import cutting_of, fetch_limits_of, read_options_of
from kept.search.render import receipt_json

if TYPE_CHECKING:
    from kept.knowledge_base.ray.ingestion import RayWorkers

SOME_FAILED = 7
SHOWN_MISSES = 3
SHOWN_SKIPS = 10
SHOWN_REASONS = 5


def ingest(
    paths: Annotated[
        list[str],
        typer.Argument(help="Files, folders, URLs, or - for standard input."),
    ],
    store: options.Store = None,
    tenant: options.Tenant = None,
    preset: options.PresetName = None,
    embedder: options.Embedder = None,
    type_: Annotated[
        str | None, typer.Option("--type", help="Type of the documents.")
    ] = None,
    title: Annotated[
        str | None, typer.Option("--title", help="Title of the document.")
    ] = None,
    tags: Annotated[
        list[str] | None, typer.Option("--tag", help="Tag for every chunk.")
    ] = None,
    role: Annotated[
        str | None, typer.Option("--role", help="Role of every chunk.")
    ] = None,
    labels: Annotated[
        list[str] | None,
        typer.Option("--label", help="Label ITEM=SCORE of every chunk."),
    ] = None,
    metadata: Annotated[
        list[str] | None,
        typer.Option(
            "--meta",
            help="Metadata KEY=VALUE; a number, true and false are stored as such, "
            "'KEY=\"5\"' as text.",
        ),
    ] = None,
    readers: Annotated[
        list[str] | None,
        typer.Option(
            "--reader",
            help="Who may read it: everyone, group:NAME or user:NAME; again for more.",
        ),
    ] = None,
    encoding: Annotated[
        str | None, typer.Option("--encoding", help="Encoding of text files.")
    ] = None,
    prune: Annotated[
        bool,
        typer.Option("--prune", help="Retire documents whose file is gone."),
    ] = False,
    max_chunks: Annotated[
        int | None,
        typer.Option(
            "--max-chunks", help="Chunks of a document at most; 0 lifts the cap."
        ),
    ] = None,
    whole_page: Annotated[
        bool | None,
        typer.Option(
            "--whole-page",
            help="Take in menus, sidebars and footers of HTML pages, too.",
            show_default=False,
        ),
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(
            "--ray",
            metavar="ADDRESS",
            help="Read, cut and embed on a Ray cluster: HOST:PORT, or local.",
        ),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Fail if a file is skipped or cut short, too."),
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Take documents into the knowledge base; what is there already is reused.

    For example: kept ingest handbook/ notes.pdf --store ./kb
    """
    settings = options.settings_of(
        store=store,
        tenant=tenant,
        preset=preset,
        embedder=embedder,
        max_chunks=max_chunks,
        whole_page=whole_page,
    )
    declared: dict[str, Any] = {
        "type": type_,
        "title": title,
        "tags": tuple(tags or ()),
        "role": role,
        "labels": options.scores("--label", labels),
        "readers": readers,
        "metadata": options.values("--meta", metadata),
    }
    fields = {name: value for name, value in declared.items() if value}
    _check_encoding(encoding)
    handing = handing_of(settings, encoding=encoding, fields=fields)
    handing.on_skip = skips = Skips(shown=None if as_json else SHOWN_SKIPS)
    handing.met = Met() if prune else None
    checked_names(paths)
    with (
        _workers(ray, settings) as workers,
        options.opened(settings, make=True) as base,
    ):
        totals = take_in(base, handing, paths, as_json=as_json, workers=workers)
    skips.tell_rest()
    if not as_json:
        say(", ".join((totals.summary(), *skips.summary())))
        for told in totals.cut_short(cutting_of(settings).max_chunks):
            say(told)
    if totals.failed or (strict and (skips.count or totals.chars_left_out)):
        raise typer.Exit(SOME_FAILED)


@dataclass
class Totals:
    """How many texts had which status, and how much of them a cap left out."""

    statuses: Counter[str] = field(default_factory=Counter)
    documents_cut: int = 0
    chars_left_out: int = 0

    def add(self, receipt: Receipt) -> None:
        """Count a receipt."""
        self.statuses[receipt.status] += 1
        self.documents_cut += receipt.chars_left_out > 0
        self.chars_left_out += receipt.chars_left_out

    @property
    def failed(self) -> int:
        """How many texts could not be taken in."""
        return self.statuses["failed"]

    def summary(self) -> str:
        """Return how many of each there were."""
        counted = ", ".join(f"{count} {name}" for name, count in self.statuses.items())
        return counted or "nothing to take in"

    def cut_short(self, most: int) -> Iterator[str]:
        """Yield what the cap of *most* chunks left out, if anything."""
        if self.chars_left_out:
            yield (
                f"cut short: {counted(self.documents_cut, 'document')}, of which "
                f"{self.chars_left_out:,} characters cannot be found; the cap is "
                f"{counted(most, 'chunk')} (--max-chunks 0 lifts it)"
            )


class Skips:
    """Skipped files: the first are printed, all are counted by reason."""

    def __init__(self, shown: int | None) -> None:
        self._shown = shown
        self._reasons: Counter[str] = Counter()

    def __call__(self, path: str, reason: str) -> None:
        """Count a file, and name it where that is not too much."""
        self._reasons[reason] += 1
        if self._shown is None or self._reasons.total() <= self._shown:
            complain(f"skipped {path}: {reason}")

    @property
    def count(self) -> int:
        """How many files were skipped."""
        return self._reasons.total()

    def tell_rest(self) -> None:
        """Say how many were not named."""
        rest = 0 if self._shown is None else self._reasons.total() - self._shown
        if rest > 0:
            complain(f"skipped {counted(rest, 'more file')}; --json names each of them")

    def summary(self) -> Iterator[str]:
        """Yield how many there were for which reason, if any."""
        if not self._reasons:
            return
        often = sorted(self._reasons.items(), key=lambda one: (-one[1], one[0]))
        reasons = [f"{reason}: {count}" for reason, count in often[:SHOWN_REASONS]]
        if rest := sum(count for _, count in often[SHOWN_REASONS:]):
            reasons.append(f"other reasons: {rest}")
        yield f"{self._reasons.total()} skipped ({', '.join(reasons)})"


def handing_of(settings: Settings, **read: Any) -> Handing:  # noqa: ANN401 -- as typed
    """Return what turns names into texts, *read* within the limits of the settings."""
    return Handing(
        options=read_options_of(settings, **read),
        limits=fetch_limits_of(settings),
    )


def take_in(
    base: KnowledgeBase,
    handing: Handing,
    paths: list[str],
    *,
    as_json: bool = False,
    quiet: bool = False,
    workers: "RayWorkers | None" = None,
) -> Totals:
    """Ingest, print each receipt as it is stored unless *quiet*, and count them."""
    totals = Totals()
    sizes: deque[int] = deque()
    done = 0
    options.fetch_model(base.settings)
    with byte_bar("ingesting", paths) as report:
        try:
            for receipt in _receipts(base, handing, paths, sizes, workers):
                totals.add(receipt)
                done += sizes.popleft() if sizes else 0
                report(done)
                if as_json:
                    print_json(receipt_json(receipt))
                elif receipt.status != "unchanged" and not quiet:
                    say(line(receipt))
        except KeptError:
            if totals.statuses and not as_json:
                say(f"stopped after {totals.summary()}")
            raise
    return totals


def _receipts(
    base: KnowledgeBase,
    handing: Handing,
    paths: list[str],
    sizes: deque[int],
    workers: "RayWorkers | None",
) -> Iterator[Receipt]:
    """Yield the receipts; *sizes* gets the bytes of each text as it is handed in."""
    handed = handing(paths)
    if workers is not None:
        known = base.store.intake(base.tenant).source
        handed = workers.read(handing, paths, known, base.tenant)

    def sized() -> Iterator[Handed]:
        for item in handed:
            sizes.append(item.size)
            yield item

    yield from base.ingest(sized(), by=workers)
    yield from base.pruned(handing)


def _workers(
    address: str | None, settings: Settings
) -> AbstractContextManager["RayWorkers | None"]:
    """Return the workers of a cluster, or none if no address is given."""
    if address is None:
        return nullcontext()
    from kept.knowledge_base.ray.ingestion import RayWorkers  # noqa: PLC0415 -- only where one is named

    return RayWorkers(address, settings)


def line(receipt: Receipt) -> str:
    """Return a receipt as a person reads it."""
    name = Path(receipt.source_uri).name or receipt.source_uri
    parts = [f"{receipt.status:<10} {name}"]
    if receipt.error:
        parts.append(receipt.error)
    if receipt.rule:
        parts.append(f"same as {receipt.canonical_id} by {receipt.rule}")
        parts.append(f"similarity {receipt.similarity:.3f}")
    if receipt.status in ("created", "superseded"):
        parts.append(counted(receipt.chunks, "chunk"))
    if names := receipt.evidence.get("described"):
        parts.append(f"changed: {', '.join(names)}")
    if receipt.chars_left_out:
        parts.append(f"{receipt.chars_left_out} characters left out by the cap")
    parts += receipt.evidence.get("notes", ())
    misses = receipt.evidence.get("near_misses", ())
    named = misses[:SHOWN_MISSES]
    parts += map(_near_miss, named)
    more = len(misses) - len(named) + receipt.evidence.get("more_near_misses", 0)
    if more:
        parts.append(f"and like {more} more")
    return ", ".join(parts)


def _near_miss(miss: Mapping[str, Any]) -> str:
    """Return what kept a document apart from one that it resembles."""
    if words := miss.get("differs_in"):
        return f"like {miss['document_id']}, but differs in: {', '.join(words)}"
    return f"only begins like {miss['document_id']}"


def _check_encoding(encoding: str | None) -> None:
    """Refuse an encoding that there is not, before every file fails for it."""
    if encoding is None:
        return
    try:
        "a".encode(encoding)
    except (LookupError, ValueError) as error:
        msg = f"--encoding is {encoding!r}; expected one that there is, such as utf-8"
        raise InputError(msg) from error
