"""Bad questions and odd collections: every preset has an answer, and no traceback."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from kept.errors import BadVectorError
from kept.kernel.presets import PRESETS
from kept.kernel.record import Refused
from kept.knowledge_base.base import KnowledgeBase
from kept.models.embedders.hash import HashEmbedder
from kept.search.render import found_json
from kept.search.retrieve import Found

Make = Callable[..., KnowledgeBase]
PUMP = "The pump TW-C235 costs 410 euro and is delivered from Leeds within a week."
QUESTION = "what does the pump TW-C235 from Leeds cost"
AMHARIC = "የምግብ ዋጋ በገበያ ላይ 40 ብር ነው።"
ODD = ("!!! ??? …", "\x00\x01\x1b[31m", "🙂🙂🙂", "\ud800", "ราคาเครื่องสูบน้ำเท่าไร")


class ZeroEmbedder(HashEmbedder):
    """An embedder to which every text means nothing."""

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        """Return zeros, as a broken model does."""
        return np.zeros_like(super().embed(texts))


@pytest.fixture(params=sorted(PRESETS))
def opened(request: pytest.FixtureRequest, make_base: Make) -> KnowledgeBase:
    """Return an empty knowledge base under each preset."""
    return make_base(preset=request.param)


def asked(base: KnowledgeBase, question: str) -> Found:
    """Ask about an item, which one of the presets needs."""
    return base.search(question, item="Sleep")


def told_whole(found: Found) -> bool:
    """Return whether the stages account for all, and a refusal has no citations."""
    record = found_json(found)["record"]
    lost = sum(stage["before"] - stage["after"] for stage in record["stages"])
    refused = found.refused is not None
    return record["dropped"] == lost and refused == (not record["selected"])


def test_an_empty_knowledge_base_refuses_in_words(opened: KnowledgeBase) -> None:
    """Nothing is relevant where nothing is."""
    found = asked(opened, QUESTION)

    assert found.refused is not None
    assert found.refused.reason == Refused.NOTHING_RELEVANT
    assert told_whole(found)


def test_odd_questions_are_answered_or_refused(opened: KnowledgeBase) -> None:
    """Signs, control characters, faces, half a character, a script without spaces."""
    opened.add(PUMP, labels={"Sleep": 1})

    for question in ODD:
        assert told_whole(asked(opened, question)), question


def test_a_collection_of_one_chunk_is_searched(opened: KnowledgeBase) -> None:
    """A leg of one gives 0.5 to everything: the absolute channel is not moved by it."""
    opened.add(PUMP, labels={"Sleep": 1})

    found = asked(opened, PUMP)

    assert [c.chunk.text for c in found.selection.candidates] == [PUMP]
    assert told_whole(found)


def test_equal_scores_are_ordered_by_chunk_id(opened: KnowledgeBase) -> None:
    """Six times the same text: no order of arrival shows."""
    for number in range(6):
        opened.add(PUMP, type=f"t{number}", source_uri=f"{number}", labels={"Sleep": 1})

    found = asked(opened, PUMP)

    ids = [c.id for c in found.selection.candidates]
    assert len({c.score for c in found.selection.candidates}) == 1
    assert ids
    assert ids == sorted(ids)
    everyone = [*found.selection.candidates, *found.selection.dropped]
    assert ids == sorted(c.id for c in everyone)[: len(ids)]


def test_a_language_without_a_stemmer_is_searched_as_it_is_written(
    make_base: Make,
) -> None:
    """Amharic words are found where they stand, and unknown ones are refused."""
    base = make_base()
    base.add(AMHARIC)
    base.add(PUMP)

    found = base.search("የምግብ ዋጋ በገበያ")

    assert [c.chunk.text for c in found.selection.candidates] == [AMHARIC]
    assert base.search("የአየር ሁኔታ ዛሬ እንዴት").refused is not None


def test_a_question_whose_vector_is_zero_is_refused_with_the_text(
    opened: KnowledgeBase,
) -> None:
    """A direction of nothing has no neighbours; the model is at fault and is named."""
    opened.add(PUMP, labels={"Sleep": 1})
    opened.__dict__["embedder"] = ZeroEmbedder()

    with pytest.raises(BadVectorError, match=r"^hash-v1:512: .* is zero; expected"):
        asked(opened, QUESTION)
