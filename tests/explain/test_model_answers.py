"""Models are called once, and while the store is not held."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from kept.explain.model_answers import ModelAnswers
from kept.kernel.model import Candidate, Chunk, Document, Query
from kept.kernel.presets.plan import Parts
from kept.kernel.stages.rerank import RelevanceReranker

QUERY = Query(text="days of leave")
RULE = Candidate(
    chunk=Chunk(id="d:0", document_id="d", ord=0, text="28 days of leave."),
    document=Document(id="d"),
    score=0.5,
)
CHANGED = replace(RULE, chunk=replace(RULE.chunk, text="30 days of leave."))


@dataclass
class Watched:
    """A reranker that notes what it is asked, and whether the shelf is held then."""

    id: str = "watched"
    held: bool = False
    asked: list[tuple[str, bool]] = field(default_factory=list)

    def scores(self, query: Query, candidates: Sequence[Candidate]) -> Sequence[float]:
        """Score all alike."""
        self.asked += [(c.chunk.text, self.held) for c in candidates]
        return [0.75] * len(candidates)


def scored(
    models: ModelAnswers, watched: Watched, candidate: Candidate
) -> Sequence[float]:
    """Have a candidate scored by work that holds something."""

    def work() -> Sequence[float]:
        watched.held = True
        try:
            assert models.parts.reranker is not None
            return models.parts.reranker.scores(QUERY, [candidate])
        finally:
            watched.held = False

    return models(work)


def test_a_model_is_asked_once_and_while_nothing_is_held() -> None:
    """The work is aborted, and run again with the answer."""
    watched = Watched()
    models = ModelAnswers(Parts(near_match_distance=0.2, reranker=watched))

    found = [scored(models, watched, RULE) for _ in range(2)]

    assert found == [[0.75], [0.75]]
    assert watched.asked == [("28 days of leave.", False)]
    assert models.parts.reranker is not None
    assert models.parts.reranker.id == "watched"


def test_a_passage_that_has_changed_is_asked_about_again() -> None:
    """What was answered about another text does not count."""
    watched = Watched()
    models = ModelAnswers(Parts(near_match_distance=0.2, reranker=watched))

    for candidate in (RULE, CHANGED):
        scored(models, watched, candidate)

    assert [text for text, _ in watched.asked] == [
        "28 days of leave.",
        "30 days of leave.",
    ]


def test_a_reranker_that_is_no_model_is_left_as_it_is() -> None:
    """Calibrated relevance is arithmetic; nothing is run again for it."""
    parts = Parts(near_match_distance=0.2, reranker=RelevanceReranker())

    assert ModelAnswers(parts).parts == parts
