"""Calibrating: kept calibrate, relevance as a probability of one's own.

The fitting is loaded only when it is asked for.
"""

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from kept.doors.cli import options
from kept.doors.cli.output import number, print_json, print_table, say
from kept.doors.cli.questions import questions_in, recorded_questions
from kept.errors import InputError
from kept.evaluation.calibrate.floors import Floor
from kept.kernel.calibration import save
from kept.knowledge_base.base import KnowledgeBase
from kept.stores.addresses import beside

if TYPE_CHECKING:
    from kept.evaluation.calibrate.pairs import Judgement
    from kept.evaluation.calibrate.refit import FittedCalibration

FILE = "calibration.json"
JUDGEMENTS = "judgements.jsonl"
MOST_QUESTIONS = 100
ASKED = "Would a careful writer cite it under the answer? [y]es [n]o [s]kip [q]uit:"


def calibrate(
    judgements: Annotated[
        Path | None,
        typer.Option(
            "--judgements",
            help="JSON lines: question, relevant (true, false or a grade), and "
            "chunk_id, document_id or text.",
        ),
    ] = None,
    known_items: Annotated[
        int | None,
        typer.Option(
            "--known-items",
            min=1,
            help="Ask this many questions made from the documents instead.",
        ),
    ] = None,
    ask: Annotated[
        bool,
        typer.Option(
            "--ask",
            help="Judge 30 passages here, one key each: the best of your recorded "
            "questions, or of those in --queries.",
        ),
    ] = False,
    queries: Annotated[
        Path | None,
        typer.Option("--queries", help="File of questions to judge with --ask."),
    ] = None,
    relevant_from: Annotated[
        float, typer.Option("--relevant-from", help="Grade that counts as relevant.")
    ] = 1.0,
    alpha: Annotated[
        float | None,
        typer.Option(
            "--alpha",
            min=0.001,
            max=0.999,
            help="Choose the floor that keeps false citations below this share.",
        ),
    ] = None,
    confidence: Annotated[
        float,
        typer.Option(
            "--confidence", min=0.5, max=0.999, help="How sure the floor has to be."
        ),
    ] = 0.95,
    among: Annotated[
        Literal["cited", "unanswerable"],
        typer.Option(
            "--among",
            help="What --alpha is a share of: all citations, or the questions without "
            "an answer.",
        ),
    ] = "cited",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            help="Where to write the file.",
            show_default=f"{FILE} in the store's folder",
        ),
    ] = None,
    store: options.Store = None,
    tenant: options.Tenant = None,
    embedder: options.Embedder = None,
    as_json: options.AsJson = False,
) -> None:
    """Fit relevance to your own judgements, and show how far it can be trusted.

    For example: kept calibrate --judgements judged.jsonl --alpha 0.1 --store ./kb
    """
    from kept.evaluation.calibrate.refit import fit  # noqa: PLC0415 -- loaded when asked for

    settings = options.settings_of(store=store, tenant=tenant, embedder=embedder)
    path = output or beside(settings.store, FILE)
    with options.opened(settings) as base:
        options.demand_writable(path)
        if ask:
            kept_in = beside(settings.store, JUDGEMENTS)
            judged, source = _asked(base, kept_in, queries), kept_in.name
        else:
            judged, source = _judged(base, judgements, known_items, relevant_from)
        with base.store.shelf(base.tenant) as shelf:
            fitted = fit(
                judged,
                shelf,
                base.embedder,
                date=dt.datetime.now(dt.UTC).date().isoformat(),
                source=source,
                judged_only=ask,
            )
    save(fitted.calibration, path)
    floor = (
        None
        if alpha is None
        else fitted.floor(alpha, confidence=confidence, among=among)
    )
    if as_json:
        print_json(_as_json(fitted, path, alpha, floor))
        return
    _print(fitted, path)
    _print_citing(fitted)
    if alpha is not None:
        _print_floor(alpha, confidence, floor, among)


def _asked(
    base: KnowledgeBase, path: Path, queries: Path | None
) -> "Sequence[Judgement]":
    """Ask a person about passages, and return all judgements made so far."""
    from kept.evaluation.calibrate import asking  # noqa: PLC0415 -- loaded when asked for

    questions = (
        recorded_questions(base, MOST_QUESTIONS)
        if queries is None
        else questions_in(queries)
    )
    known = asking.known_judgements(path)
    options.demand_writable(path)
    shown = asking.pairs_to_judge(base, questions, known)
    for place, pair in enumerate(shown, start=len(known) + 1):
        if place > asking.ENOUGH:
            break
        document = pair.candidate.document
        say()
        say(f"({place} of {asking.ENOUGH}) {pair.question}")
        say(f"--- {document.title or document.source_uri}")
        say(pair.candidate.chunk.text)
        reply = _reply()
        if reply == "q":
            break
        if reply != "s":
            asking.note_judgement(path, pair, relevant=reply == "y")
    return asking.known_judgements(path)


def _reply() -> str:
    """Return y, n, s or q; the end of the input stops."""
    while True:
        try:
            typed = input(f"{ASKED} ")
        except EOFError:
            return "q"
        if (key := typed.strip().casefold()[:1]) in {"y", "n", "s", "q"}:
            return key


def _judged(
    base: KnowledgeBase,
    judgements: Path | None,
    known_items: int | None,
    relevant_from: float,
) -> "tuple[Sequence[Judgement], str]":
    from kept.evaluation.calibrate.pairs import known_item_judgements, read_judgements  # noqa: PLC0415 -- loaded when asked for

    if (judgements is None) == (known_items is None):
        msg = "give one of --judgements FILE, --known-items COUNT or --ask"
        raise InputError(msg)
    if judgements is not None:
        return read_judgements(judgements, relevant_from=relevant_from), judgements.name
    chunks = {
        chunk.id: chunk.text
        for stored in base.store.documents(base.tenant)
        for chunk in base.store.chunks(base.tenant, stored.document.id)
    }
    made = known_item_judgements(chunks, at_most=known_items or 0)
    return made, "known items of the documents"


def _as_json(
    fitted: "FittedCalibration", path: Path, alpha: float | None, floor: Floor | None
) -> dict[str, Any]:
    return {
        "calibration": fitted.calibration.id,
        "file": str(path),
        "questions": len(fitted.pairs.questions),
        "pairs": len(fitted.pairs),
        "relevant": int(fitted.pairs.truths.sum()),
        "relevant_not_recalled": fitted.pairs.unfound,
        "before": fitted.before.as_json(),
        "after": fitted.after.as_json(),
        "reliability": [
            {
                "from": row.low,
                "to": row.high,
                "pairs": row.count,
                "promised": row.promised,
                "observed": row.observed,
            }
            for row in fitted.after.table
        ],
        "citing": {name: one.as_json() for name, one in fitted.citing.items()},
        "alpha": alpha,
        "floor": None
        if floor is None
        else {
            "relevance_floor": floor.at_least,
            "bound": floor.bound,
            "confidence": floor.confidence,
            "false": floor.false,
            "tried": floor.tried,
            "cited": floor.cited,
            "questions": floor.questions,
        },
    }


def _print(fitted: "FittedCalibration", path: Path) -> None:
    from kept.evaluation.calibrate.refit import plot  # noqa: PLC0415 -- loaded when asked for

    pairs = fitted.pairs
    say(
        f"{len(pairs.questions)} questions, {len(pairs)} passages recalled for them, "
        f"{int(pairs.truths.sum())} relevant; {pairs.unfound} relevant not recalled"
    )
    print_table(
        ("on questions left out", "Brier", "calibration error", "AUROC"),
        [
            (
                name,
                number(figures.brier),
                number(figures.calibration_error),
                number(figures.auroc),
            )
            for name, figures in (("shipped", fitted.before), ("fitted", fitted.after))
        ],
    )
    say()
    for line in plot(fitted.after.table):
        say(line)
    say()
    say(f"written to {path} as {fitted.calibration.id}")
    say(f"to use it: KEPT_CALIBRATION={path}")


def _print_citing(fitted: "FittedCalibration") -> None:
    rows = [
        (
            name,
            number(one.at_least),
            f"{one.deserved} of {one.cited}",
            f"{one.kept} of {one.answerable}",
            f"{one.refused} of {one.unanswerable}",
        )
        for name, one in fitted.citing.items()
    ]
    say()
    heads = ("KEPT_CITE", "floor", "citations deserved", "answers kept", "refused")
    print_table(heads, rows)


def _print_floor(
    alpha: float, confidence: float, floor: Floor | None, among: str
) -> None:
    if floor is None:
        say(
            f"no floor keeps false citations below {alpha:.0%} with {confidence:.0%} "
            "confidence on this many questions; judge more, or ask for less"
        )
        return
    say(
        f"KEPT_RELEVANCE_FLOOR={floor.at_least:.9g} keeps false citations, among the "
        f"{among}, below {alpha:.0%}: {floor.false} of {floor.tried} here, at most "
        f"{floor.bound:.1%} with {floor.confidence:.0%} confidence (Clopper-Pearson); "
        f"{floor.cited} of {floor.questions} questions get a citation"
    )
