"""A sweep is many evaluations for the recall of one."""

from pathlib import Path

import pytest

from kept.errors import InputError, SettingsError
from kept.evaluation.collection import load_collection
from kept.evaluation.corpus import corpus_of
from kept.evaluation.sweep import SweepPoint, documents_per_question, grid, swept
from kept.evaluation.system import Setup, evaluated
from kept.knowledge_base.settings import Settings


def silent(step: str, done: int, total: int) -> None:
    """Report no progress."""


def points(folder: Path, settings: Settings, *options: str) -> tuple[SweepPoint, ...]:
    """Sweep a collection from its folder."""
    collection = load_collection(folder)
    with corpus_of(collection, settings, on_step=silent) as corpus:
        return swept(collection, corpus, Setup(), grid(options), on_step=silent)


@pytest.mark.parametrize(
    "option", ["relevance_floor=0.1,0.9", "depth=101,150", "gate_enable=true,false"]
)
def test_each_point_is_what_an_evaluation_finds(
    folder: Path, settings: Settings, option: str
) -> None:
    """Reusing the recall changes nothing, whichever setting varies."""
    found = points(folder, settings, option)

    collection = load_collection(folder)
    with corpus_of(collection, settings, on_step=silent) as corpus:
        for point in found:
            setup = Setup(overrides=point.settings)
            run = evaluated(collection, corpus, setup, on_step=silent).guarded

            assert point.quality is not None
            assert point.quality.estimate == pytest.approx(run.means["nDCG@10"])
            assert point.cost == documents_per_question(run)


def test_every_combination_is_tried(folder: Path, settings: Settings) -> None:
    """Two settings of two and three values give six points, some of them optimal."""
    found = points(
        folder, settings, "relevance_floor=0.1,0.5", "keyword_weight=0.3:0.7:0.2"
    )

    assert len(found) == 6
    assert any(point.optimal for point in found)


def test_how_many_come_back_is_not_swept(folder: Path, settings: Settings) -> None:
    """A ranking is measured at one length."""
    with pytest.raises(InputError, match="top_k is not swept"):
        points(folder, settings, "top_k=3,5")


def test_an_unknown_setting_is_refused(folder: Path, settings: Settings) -> None:
    """The message names the settings that there are."""
    with pytest.raises(SettingsError, match="there is no setting 'flor'"):
        points(folder, settings, "flor=0.1,0.2")
