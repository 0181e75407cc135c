"""How the answers of two configurations to one question differ, and why."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from kept.errors import InputError, SettingsError
from kept.explain.ports import ExplainedBase
from kept.explain.rerun import Rerun
from kept.kernel.presets.overrides import field_of
from kept.kernel.presets.plan import Configured
from kept.kernel.record import Refusal, Selection, Verdict
from kept.search.retrieve import Request, check_question

RECALL, GATE, ORDER = "recall", "gate", "order"

Kind = Literal["added", "lost", "moved"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """One chunk whose place differs; a place is None where it is not in the answer.

    *stage* made the difference: the one that dropped it where it is missing.
    """

    chunk_id: str
    title: str
    before: int | None
    after: int | None
    stage: str
    reason: str | None = None

    @property
    def kind(self) -> Kind:
        """Whether it was added, lost or only moved."""
        if self.before is None:
            return "added"
        return "lost" if self.after is None else "moved"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A refusal or a selection, as one configuration gives it."""

    refused: Refusal | None
    selection: Selection

    @property
    def reason(self) -> str | None:
        """Why the question was refused, if it was."""
        return self.refused.reason if self.refused else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How the answer to one question changes between two configurations."""

    question: str
    before: Answered
    after: Answered
    moved: tuple[Moved, ...]

    @property
    def same(self) -> bool:
        """Whether the same passages come in the same order."""
        return not self.moved and self.before.reason == self.after.reason

    @property
    def now_refused(self) -> bool:
        """Whether it was answered and is refused now."""
        return self.before.reason is None and self.after.reason is not None

    @property
    def now_answered(self) -> bool:
        """Whether it was refused and is answered now."""
        return self.before.reason is not None and self.after.reason is None


def difference(question: str, before: Answered, after: Answered) -> Difference:
    """Compare two answers to one question."""
    return Difference(
        question=question,
        before=before,
        after=after,
        moved=tuple(_moved(before, after)),
    )


def diff_configurations(
    base: ExplainedBase,
    before: Configured,
    after: Configured,
    requests: Iterable[Request],
) -> Iterator[Difference]:
    """Yield how the answers of two configurations differ, question by question.

    Both use the same recall where they search the same legs.
    """
    for request in requests:
        check_question(request.question)
        plans = [base.plan(request, configured) for configured in (before, after)]
        with base.store.shelf(request.tenant) as shelf:
            rerun = Rerun(shelf, request, base.embedder, base.calibration)
            for plan in plans:
                rerun.prepare(plan)
        # The shelf is closed: a judge or a reranker may take long.
        ran = (rerun.run(plan) for plan in plans)
        first, second = (Answered(refused=r, selection=s) for r, s in ran)
        yield difference(request.question, first, second)


def configuration_named(base: ExplainedBase, named: str) -> Configured:
    """Return the configuration that *named* stands for.

    ``current`` is the one that a search would use, ``preset:NAME`` another preset
    with the settings that it has here. A YAML or JSON file overrides the settings of
    ``current``, or of the preset under its key ``preset``.
    """
    if named == "current":
        return base.configured()
    if named.startswith("preset:"):
        return base.configured(named.removeprefix("preset:"))
    given = _read(Path(named))
    configured = base.configured(given.pop("preset", None))
    kind = configured.preset.settings
    try:
        return configured.changed(**{field_of(kind, n): v for n, v in given.items()})
    except SettingsError as error:
        msg = f"{named}: {error}"
        raise SettingsError(msg) from error


def _read(path: Path) -> dict[str, Any]:
    try:
        given = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        msg = (
            f"{path} cannot be read as settings ({error}); expected 'current', "
            "'preset:NAME' or a YAML or JSON file of settings"
        )
        raise InputError(msg) from error
    if not isinstance(given, dict) or not all(isinstance(name, str) for name in given):
        msg = f"{path} holds no settings; expected lines such as 'top_k: 5'"
        raise InputError(msg)
    return given


def _moved(before: Answered, after: Answered) -> Iterator[Moved]:
    """Yield the chunks whose place differs, in the new order, then those that left."""
    old, new = _places(before), _places(after)
    both = (*before.selection.candidates, *after.selection.candidates)
    titles = {c.id: c.document.title for c in both}
    stayed = [chunk for chunk in old if chunk in new]
    again = [chunk for chunk in new if chunk in old]
    # Places are compared among those that stayed: one that comes in at the top would
    # otherwise move all the others.
    reordered = {a for a, b in zip(stayed, again, strict=True) if a != b}
    for chunk in (*new, *(c for c in old if c not in new)):
        if chunk not in old:
            stage, reason = _stop(before, chunk)
        elif chunk not in new:
            stage, reason = _stop(after, chunk)
        elif chunk in reordered:
            stage, reason = ORDER, None
        else:
            continue
        yield Moved(
            chunk_id=chunk,
            title=titles[chunk],
            before=old.get(chunk),
            after=new.get(chunk),
            stage=stage,
            reason=reason,
        )


def _places(answered: Answered) -> dict[str, int]:
    return {c.id: i for i, c in enumerate(answered.selection.candidates, start=1)}


def _stop(answered: Answered, chunk_id: str) -> tuple[str, str | None]:
    """Return the stage that dropped a chunk, and its reason."""
    for stage, decision in answered.selection.explain(chunk_id):
        if decision.verdict is Verdict.DROPPED:
            return stage, str(decision.reason)
    if answered.refused and not answered.selection.trace:
        return GATE, answered.refused.reason
    return RECALL, None
