"""Plans: what one query goes through, and what a preset needs to make one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Self

from kept.errors import SettingsError
from kept.kernel.calibration.model import FLOORS, Calibration
from kept.kernel.pipeline import Pipeline
from kept.kernel.ports import Judge, PassageReader, Reranker
from kept.kernel.presets.configuration import PresetSettings
from kept.kernel.stages import Pin

Leg = Literal["dense", "keyword"]

MAX_K = 1000


@dataclass(frozen=True)
class Parts:
    """What a preset may need from outside.

    *near_match_distance* and *distance_thresholds* are the embedder's own; the
    thresholds of the near-match document are for those that have none. With
    *known_cosines*, what a cosine of the embedder means has been measured. *floors*
    are those of the calibration on relevance, by how sure a citation has to be.
    *reading* is the reader with the calibration that its findings join.
    """

    near_match_distance: float
    distance_thresholds: tuple[float, float] = (0.42, 0.50)
    judge: Judge | None = None
    reranker: Reranker | None = None
    known_cosines: bool = False
    floors: Mapping[str, float] = field(default_factory=lambda: FLOORS, hash=False)
    reading: tuple[PassageReader, Calibration] | None = None

    def demand_judge(self, variable: str) -> Judge:
        """Return the judge that *variable* asks for, or refuse to start."""
        if self.judge is None:
            msg = (
                f"{variable} is True, but no judge is configured; expected False, "
                "or a judge: set MODEL_JUDGE_MODEL, and KEPT_LLM_BASE_URL to its server"
            )
            raise SettingsError(msg)
        return self.judge


@dataclass(frozen=True)
class GateRules:
    """When a question is worth a search.

    With *ask_knowledge_base*, fewer words will do if the knowledge base knows
    them and they are rare in it.
    """

    min_content_words: int = 3
    ask_knowledge_base: bool = False


@dataclass(frozen=True)
class Badge:
    """Which citations are marked as of low relevance: *signal* less than *below*.

    By default none is: what is cited has passed a floor that means something.
    """

    signal: str = "relevance"
    below: float = 0.0


@dataclass(frozen=True)
class Plan:
    """What one query goes through.

    Recall each of *legs* to *depth*, then run *pipeline*. A selection that comes
    out empty is a refusal: the conservative text and no citations.

    Who wants more than *depth* gets further waves of recall, twice as deep each
    time. They follow the first and change nothing in it, so that a larger k adds
    to an answer and does no more.
    """

    pipeline: Pipeline
    k: int
    depth: int
    legs: tuple[Leg, ...] = ("dense", "keyword")
    gate: GateRules | None = None
    badge: Badge = Badge()

    @cached_property
    def spelled_out(self) -> str:
        """Every stage and setting that decides an answer, as text."""
        return repr(self)

    @cached_property
    def waves(self) -> tuple[int, ...]:
        """How deep each wave of recall goes, until *k* places can be filled."""
        depths = [self.depth]
        while depths[-1] < self.k:
            depths.append(2 * depths[-1])
        return tuple(depths)


def as_they_are(settings: Any, parts: Parts) -> Any:  # noqa: ANN401 -- of any preset
    """Return *settings* that have no number of the embedder's."""
    return settings


@dataclass(frozen=True)
class Preset:
    """A named way to choose passages: settings, and how to build a plan of them.

    *k_setting* is the field that says how many come back. *filled* puts the numbers
    of the embedder in use where the settings leave them open. *judge_setting* is the
    field that has the judge asked, where there is one; *reranks* and *reads* say
    whether a reranker and a reader have a place.
    """

    name: str
    summary: str
    settings: type[PresetSettings]
    k_setting: str
    build: Callable[[Any, Parts, int], Plan]
    filled: Callable[[Any, Parts], Any] = as_they_are
    judge_setting: str = ""
    reranks: bool = False
    reads: bool = False

    def configure(
        self, overrides: Mapping[str, object] | None = None
    ) -> PresetSettings:
        """Read the settings from the environment, *overrides* before it."""
        return self.settings.of(overrides or {})

    def plan(
        self,
        settings: PresetSettings,
        parts: Parts,
        *,
        k: int | None = None,
        pins: bool = False,
    ) -> Plan:
        """Build the plan of a query that wants *k* back, and pins chunks or not."""
        wanted = getattr(settings, self.k_setting) if k is None else k
        if not 1 <= wanted <= MAX_K:
            msg = f"k is {wanted!r}; expected a whole number from 1 to {MAX_K}"
            raise SettingsError(msg)
        plan = self.build(self.filled(settings, parts), parts, wanted)
        stages = (Pin(), *plan.pipeline.stages) if pins else plan.pipeline.stages
        left_out = settings.without_stages
        if left_out:
            stages = tuple(stage for stage in stages if stage.name not in left_out)
        return replace(plan, pipeline=Pipeline(stages, settings.on_violation))


@dataclass(frozen=True)
class Configured:
    """A preset with the settings that it has now."""

    preset: Preset
    settings: PresetSettings
    _plans: dict[tuple[int | None, bool], tuple[Parts, Plan]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def changed(self, **values: Any) -> Self:  # noqa: ANN401 -- checked by the settings
        """Return the same preset with other *values*, or refuse them."""
        return replace(self, settings=self.settings.changed(**values))

    def filled(self, parts: Parts) -> Self:
        """Return the preset with the embedder's numbers where it leaves them open."""
        return replace(self, settings=self.preset.filled(self.settings, parts))

    def plan(self, parts: Parts, *, k: int | None = None, pins: bool = False) -> Plan:
        """Return the plan of a query that wants *k* back, and pins chunks or not.

        Most queries want as many as those before them, so plans are built once.
        """
        made = self._plans.get((k, pins))
        if made is None or made[0] != parts:
            made = (parts, self.preset.plan(self.settings, parts, k=k, pins=pins))
            self._plans[(k, pins)] = made
        return made[1]
