"""The smallest change of settings that lets a passage into an answer."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial

from kept.errors import SettingsError
from kept.explain.rerun import Rerun
from kept.kernel.knobs import (
    NOTHING,
    PLACES,
    Assignment,
    Knob,
    Number,
    Switch,
    Value,
    kinds,
)
from kept.kernel.presets.configuration import bounds_of
from kept.kernel.presets.plan import MAX_K, Configured, Parts, Plan
from kept.kernel.record import Selection, Verdict

# k is an option of the request and no setting of the preset, where the caller gave one.
K, K_OPTION = "k", "--top"
# Each branch runs the pipeline dozens of times; more than four and three settings
# seldom find a smaller change.
BRANCHES = 4
MOST_SETTINGS = 3
# Farther than the last stage of any pipeline.
SELECTED = 1_000_000
GATED, NOT_RECALLED = -2, -1


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Which settings a person would change to let a passage in, and which way. Any other
# change that does it is bad advice: to switch guardrails off gives up what they are
# for, as does a distance at which everything counts as a near match. A shallower recall
# or a higher floor lets a passage in by losing better ones.
DEPTHS = frozenset({"depth", "top_n", "reference_depth"})
RAISED = DEPTHS | _names("""
    document_limit k max_chars max_per_document
    max_reference_chars_per_item rerank_below rerank_trigger_max rerank_window
    return_k token_budget top_k top_k_references validation_max_refs_per_item
    contrarian_cap educational_cap emotional_cap excerpt_cap other_cap
    persuasive_cap story_cap
    fallback_distance_threshold soft_score_limit strict_distance_threshold
    small_dense_assist_distance small_dense_assist_max_chunks
    sparse_recall_distance sparse_recall_max_chunks
""")
LOWERED = _names("""
    keyword_include_floor keyword_protection
    min_content_tokens min_reference_similarity
    relevance_floor rerank_from score_floor
    small_dense_assist_min_chunks vector_floor
""")
EITHER_WAY = _names("""
    diversity_delta keyword_weight vector_weight
""")
SWITCHED_ON = _names("""
    allow_keyword_top1_override keyword_include_enable protected_excerpt_bypass
    protection_enable rerank_enable small_dense_assist_enable sparse_recall_enable
""")
CHOSEN = {"diversity": ("gap", "mmr")}
EMPTIED = frozenset({"reserved_shares"})
OFF_AT_ZERO = frozenset({"max_reference_chars_per_item", "token_budget"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingChange:
    """Settings with other values, and the answer that they give.

    *size* is relative to the present value; a switch counts as one. *place* is the
    passage's in the new answer; *displaced* are the chunks that leave the answer,
    *admitted* those that come in besides.
    """

    assignments: tuple[Assignment, ...]
    size: float
    place: int
    displaced: tuple[str, ...]
    admitted: tuple[str, ...]


@dataclass(frozen=True)
class Trial:
    """A preset's settings on trial, and k if the request gives one."""

    configured: Configured
    k: int | None
    changed: tuple[Assignment, ...] = ()
    size: float = 0.0

    def with_value(self, name: str, value: Value) -> "Trial":
        """Return a trial with another value of one setting; raise if not allowed."""
        if name == K and self.k is not None:
            return replace(self, k=value)
        return replace(self, configured=self.configured.changed(**{name: value}))

    def turned(self, knob: Knob, value: Value) -> "Trial":
        """Return a trial with a knob turned, and note the change."""
        return replace(
            self.with_value(knob.name, value),
            changed=(*self.changed, knob.turned(value)),
            size=round(self.size + knob.size(value), PLACES),
        )


@dataclass(frozen=True)
class ChangeSearch:
    """Looks for changes that let one of *chunk_ids* into the answer.

    *needed_depth* is how deep recall has to go for the nearest of them.
    """

    rerun: Rerun
    parts: Parts
    start: Trial
    chunk_ids: frozenset[str]
    needed_depth: int | None = None

    def singles(self) -> list[Trial]:
        """Return the least change of each setting that admits, smallest first."""
        return self._ordered(self._least(self.start, self._admits))

    def combinations(self) -> list[Trial]:
        """Return changes of two settings that admit, or else three, smallest first.

        Each but the last takes the passage past the stage that stopped it.
        """
        reached = [self.start]
        for _ in range(MOST_SETTINGS - 1):
            farther = self._ordered(
                trial for each in reached for trial in self._least_farther(each)
            )
            reached = farther[:BRANCHES]
            admitting = self._ordered(
                trial for each in reached for trial in self._least(each, self._admits)
            )
            if admitting:
                return admitting
        return []

    def outcome(self, trial: Trial) -> SettingChange:
        """Return what a change does to the answer."""
        before, after = self._present, self._selected(trial)
        ours = [i for i, c in enumerate(after, start=1) if c in self.chunk_ids]
        return SettingChange(
            assignments=trial.changed,
            size=trial.size,
            place=min(ours, default=0),
            displaced=tuple(c for c in before if c not in after),
            admitted=tuple(
                c for c in after if c not in before and c not in self.chunk_ids
            ),
        )

    def _plan(self, trial: Trial) -> Plan:
        pins = bool(self.rerun.request.pinned)
        return trial.configured.plan(self.parts, k=trial.k, pins=pins)

    def _progress(self, trial: Trial) -> int:
        """Return how far one of the chunks gets: a stage's place, or `SELECTED`."""
        plan = self._plan(trial)
        if self.rerun.gated(plan) is not None:
            return GATED
        if not any(c.id in self.chunk_ids for c in self.rerun.candidates(plan)):
            return NOT_RECALLED
        _, selection = self.rerun.run(plan)
        if any(c.id in self.chunk_ids for c in selection.candidates):
            return SELECTED
        return self._stopped(selection)

    def _stopped(self, selection: Selection) -> int:
        """Return the place of the last stage that dropped one of the chunks."""
        return max(
            self._places.get(step.stage, place)
            for place, step in enumerate(selection.trace)
            for d in step.decisions
            if d.verdict is Verdict.DROPPED and d.chunk_id in self.chunk_ids
        )

    def _admits(self, trial: Trial) -> bool:
        return self._progress(trial) == SELECTED

    @cached_property
    def _places(self) -> dict[str, int]:
        stages = self._plan(self.start).pipeline.stages
        return {stage.name: place for place, stage in enumerate(stages)}

    @cached_property
    def _present(self) -> list[str]:
        return self._selected(self.start)

    def _selected(self, trial: Trial) -> list[str]:
        _, selection = self.rerun.run(self._plan(trial))
        return [c.id for c in selection.candidates]

    def _ordered(self, found: Iterable[Trial]) -> list[Trial]:
        """Order by size, then by how much else changes: the answer, the stages."""
        stages = self._plan(self.start).pipeline.stages

        def weight(trial: Trial) -> tuple[float, int, int]:
            outcome = self.outcome(trial)
            others = self._plan(trial).pipeline.stages
            touched = [s for s in (*stages, *others) if (s in stages) != (s in others)]
            moved = len(outcome.displaced) + len(outcome.admitted)
            return (outcome.size, moved, len(touched))

        return sorted(found, key=weight)

    def _least_farther(self, start: Trial) -> Iterator[Trial]:
        """Yield, for each setting, the least change that gets a chunk farther."""
        before = self._progress(start)
        yield from self._least(start, lambda trial: self._progress(trial) > before)

    def _least(self, start: Trial, good: Callable[[Trial], bool]) -> Iterator[Trial]:
        """Yield, for each setting, the least change that is *good*."""
        present = _deciding(self._plan(start))

        def tried(name: str, value: Value) -> bool:
            try:
                trial = start.with_value(name, value)
                plan = self._plan(trial)
            except SettingsError:
                return False
            # Most values change nothing in the plan: no need to run it.
            return _deciding(plan) != present and good(trial)

        # Turning a setting twice would be one change, found already.
        done = {assignment.name for assignment in start.changed}
        for knob in self._knobs(start):
            if knob.name not in done:
                value = knob.least(partial(tried, knob.name))
                if value is not NOTHING:
                    yield start.turned(knob, value)

    def _knobs(self, start: Trial) -> Iterator[Knob]:
        """Yield every setting that a person would change, in the preset's order."""
        if start.k is not None:
            yield Number(K, K_OPTION, start.k, (start.k, MAX_K))
        settings = start.configured.settings
        for name in type(settings).model_fields:
            variable, value = settings.variable(name), getattr(settings, name)
            if start.k is not None and name == start.configured.preset.k_setting:
                continue
            if name in SWITCHED_ON and not value:
                yield Switch(name, variable, value, (True,))
            elif name in EMPTIED and value:
                yield Switch(name, variable, value, ({},))
            elif value in CHOSEN.get(name, ()):
                others = tuple(each for each in CHOSEN[name] if each != value)
                yield Switch(name, variable, value, others)
            elif name in RAISED | LOWERED | EITHER_WAY:
                yield from self._number(start, name)

    def _number(self, start: Trial, name: str) -> Iterator[Number]:
        """Yield the knob of a number, which turns only the way that it may."""
        settings = start.configured.settings
        info, value = type(settings).model_fields[name], getattr(settings, name)
        # A limit that is off drops nothing; only a protection can be turned on.
        if (value is None and name != "keyword_protection") or (
            name in OFF_AT_ZERO and not value
        ):
            return
        low, high = bounds_of(info)
        also = None
        if name in DEPTHS:
            also = self.needed_depth
            # The bound of 10,000 would recall the whole collection at every try.
            high = min(high, max(4 * value, 2 * (also or 0)))
        if name in RAISED:
            low = value
        elif name in LOWERED and value is not None:
            high = value
        whole = int in kinds(info)
        variable = settings.variable(name)
        yield Number(name, variable, value, (low, high), whole=whole, also=also)


def _deciding(plan: Plan) -> tuple[object, ...]:
    """Return the parts of a plan that decide what is selected."""
    return (plan.pipeline, plan.waves, plan.legs, plan.gate)
