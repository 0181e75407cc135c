"""Counterfactuals: the smallest change of a setting that lets a passage in."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial

from pydantic.fields import FieldInfo

from kept.decisions import Selection, Verdict
from kept.errors import SettingsError
from kept.knobs import (
    NOTHING,
    PLACES,
    Assignment,
    Knob,
    Number,
    Switch,
    Value,
    is_number,
    kinds,
    other_values,
)
from kept.presets.configuration import bounds_of
from kept.presets.plan import MAX_K, Configured, Parts, Plan
from kept.rehearsal import Rehearsal

NOT_OF_CHOICE = frozenset({"on_violation"})
K, K_OPTION = "k", "--top"
FIRST_HALVES = 4
SELECTED = 1_000_000
GATED, NOT_RECALLED = -2, -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Settings with other values, and what the answer is with them.

    *size* is relative to the present value; a switch counts as one. *place* is the
    passage's in the new answer, *displaced* who leaves it, *admitted* who else comes.
    """

    assignments: tuple[Assignment, ...]
    size: float
    place: int
    displaced: tuple[str, ...]
    admitted: tuple[str, ...]


@dataclass(frozen=True)
class Situation:
    """A configuration on trial: a preset's settings, and k where it was asked for."""

    configured: Configured
    k: int | None
    changed: tuple[Assignment, ...] = ()
    size: float = 0.0

    def value(self, name: str) -> Value:
        """Return the present value of a setting."""
        return self.k if name == K else getattr(self.configured.settings, name)

    def with_value(self, name: str, value: Value) -> "Situation":
        """Return the situation with another value of one setting, or refuse it."""
        if name == K:
            return replace(self, k=value)
        return replace(self, configured=self.configured.changed(**{name: value}))

    def turned(self, knob: Knob, value: Value) -> "Situation":
        """Return the situation with a knob turned, and a line about it."""
        return replace(
            self.with_value(knob.name, value),
            changed=(*self.changed, knob.turned(value)),
            size=round(self.size + knob.size(value), PLACES),
        )


@dataclass(frozen=True)
class Counterfactual:
    """Looks for changes that let one of *chunk_ids* into the answer.

    *needed_depth* is how deep recall has to go for the nearest of them.
    """

    rehearsal: Rehearsal
    parts: Parts
    start: Situation
    chunk_ids: frozenset[str]
    needed_depth: int | None = None

    def singles(self) -> list[Situation]:
        """Return each least change of one setting that admits, smallest first."""
        return self._ordered(self._least(self.start, self._admits))

    def pairs(self) -> list[Situation]:
        """Return changes of two settings that admit, smallest first.

        The first takes the passage past the stage that stopped it, the second the
        rest of the way.
        """
        before = self.progress(self.start)
        halves = self._ordered(
            self._least(self.start, lambda s: self.progress(s) > before)
        )
        return self._ordered(
            both
            for half in halves[:FIRST_HALVES]
            for both in self._least(half, self._admits)
        )

    def plan(self, situation: Situation) -> Plan:
        """Return the plan of a situation."""
        pins = bool(self.rehearsal.request.pinned)
        return situation.configured.plan(self.parts, k=situation.k, pins=pins)

    def outcome(self, situation: Situation) -> Change:
        """Return what a change does to the answer."""
        before, after = self._present, self._chosen(situation)
        ours = [i for i, c in enumerate(after, start=1) if c in self.chunk_ids]
        return Change(
            assignments=situation.changed,
            size=situation.size,
            place=min(ours, default=0),
            displaced=tuple(c for c in before if c not in after),
            admitted=tuple(
                c for c in after if c not in before and c not in self.chunk_ids
            ),
        )

    def progress(self, situation: Situation) -> int:
        """Tell how far one of the chunks gets: a stage's place, or selected."""
        plan = self.plan(situation)
        if self.rehearsal.gated(plan) is not None:
            return GATED
        pool = self.rehearsal.candidates(plan)
        if not any(c.chunk.id in self.chunk_ids for c in pool):
            return NOT_RECALLED
        _, selection = self.rehearsal.run(plan)
        if any(c.id in self.chunk_ids for c in selection.candidates):
            return SELECTED
        return self._stopped(selection)

    def _admits(self, situation: Situation) -> bool:
        return self.progress(situation) == SELECTED

    def _stopped(self, selection: Selection) -> int:
        """Return the place of the last stage that dropped one of the chunks."""
        return max(
            self._places.get(step.stage, place)
            for place, step in enumerate(selection.trace)
            for d in step.decisions
            if d.verdict is Verdict.DROPPED and d.chunk_id in self.chunk_ids
        )

    @cached_property
    def _places(self) -> dict[str, int]:
        stages = self.plan(self.start).pipeline.stages
        return {stage.name: place for place, stage in enumerate(stages)}

    @cached_property
    def _present(self) -> list[str]:
        return self._chosen(self.start)

    def _chosen(self, situation: Situation) -> list[str]:
        _, selection = self.rehearsal.run(self.plan(situation))
        return [c.id for c in selection.candidates]

    def _ordered(self, found: Iterable[Situation]) -> list[Situation]:
        """Order by size, then by how much else changes: the answer, the stages."""
        stages = self.plan(self.start).pipeline.stages

        def weight(situation: Situation) -> tuple[float, int, int]:
            outcome = self.outcome(situation)
            others = self.plan(situation).pipeline.stages
            touched = [s for s in (*stages, *others) if (s in stages) != (s in others)]
            moved = len(outcome.displaced) + len(outcome.admitted)
            return (outcome.size, moved, len(touched))

        return sorted(found, key=weight)

    def _least(
        self, start: Situation, good: Callable[[Situation], bool]
    ) -> Iterator[Situation]:
        """Yield, for each setting, the least change that is *good*."""
        present = _deciding(self.plan(start))

        def tried(name: str, value: Value) -> bool:
            try:
                situation = start.with_value(name, value)
                plan = self.plan(situation)
            except SettingsError:
                return False
            return _deciding(plan) != present and good(situation)

        done = {assignment.name for assignment in start.changed}
        for knob in self._knobs(start):
            if knob.name not in done:
                value = knob.least(partial(tried, knob.name))
                if value is not NOTHING:
                    yield start.turned(knob, value)

    def _knobs(self, start: Situation) -> Iterator[Knob]:
        """Yield every setting that could be turned, in the order of its page."""
        kind = start.configured.preset.settings
        if start.k is not None:
            yield Number(K, K_OPTION, start.k, start.k, (1, MAX_K))
        for name, info in kind.model_fields.items():
            value = start.value(name)
            if name in NOT_OF_CHOICE:
                continue
            if is_number(info):
                yield self._number(start, name, info)
            elif others := other_values(info, value):
                yield Switch(name, kind.variable(name), value, others)

    def _number(self, start: Situation, name: str, info: FieldInfo) -> Number:
        value, bounds, also = start.value(name), bounds_of(info), None
        if self._recalls(start, name, value):
            also = self.needed_depth
            farthest = max(4 * value, 2 * (also or 0))
            bounds = (bounds[0], min(bounds[1], farthest))
        return Number(
            name,
            start.configured.preset.settings.variable(name),
            value,
            getattr(self.parts, name, None) if value is None else value,
            bounds,
            whole=int in kinds(info),
            optional=type(None) in kinds(info),
            also=also,
        )

    def _recalls(self, start: Situation, name: str, value: Value) -> bool:
        """Tell whether a setting is how deep recall goes, and nothing else."""
        if not isinstance(value, int):
            return False
        try:
            deeper = self.plan(start.with_value(name, value + 1))
        except SettingsError:
            return False
        plan = self.plan(start)
        return deeper.depth > plan.depth and deeper.pipeline == plan.pipeline


def _deciding(plan: Plan) -> tuple[object, ...]:
    """Return what of a plan decides who is selected."""
    return (plan.pipeline, plan.waves, plan.legs, plan.gate)
