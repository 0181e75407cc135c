"""Scripts that MiniLM cannot read: words decide the order, far ones are refused."""

from collections.abc import Callable

import pytest

from kept.knowledge_base.base import KnowledgeBase

pytestmark = pytest.mark.model

Make = Callable[..., KnowledgeBase]

PERSIAN = (
    "کارمندان در سال بیست و هشت روز مرخصی با حقوق دارند.",
    "دفتر تبریز از شنبه تا چهارشنبه ساعت هشت صبح باز می‌شود و ساعت شش عصر بسته می‌شود.",
    "لپ‌تاپ گم‌شده باید در مدت یک ساعت به بخش امنیت گزارش داده شود.",
    "سفر با قطار در درجهٔ دو و از طریق میز سفر رزرو می‌شود.",
    "فاکتورها حداکثر سی روز پس از رسیدن به دفتر پرداخت می‌شوند.",
)
CHINESE = (
    "员工每年有二十八天带薪年假、未使用的年假在三月底之后作废。",
    "大连办事处周一至周五早上八点开门、晚上六点关门。",
    "丢失笔记本电脑必须在一小时之内向安全部门报告。",
    "火车出差通过差旅服务台预订二等座。",
    "发票在到达办公室之后三十天之内付款。",
)
CASES = [
    (PERSIAN, "چند روز مرخصی در سال داریم؟", 0),
    (PERSIAN, "دفتر تبریز چه ساعتی باز می‌شود؟", 1),
    (PERSIAN, "فاکتورها چه زمانی پرداخت می‌شوند؟", 4),
    (CHINESE, "员工每年有多少天年假", 0),
    (CHINESE, "大连办事处几点开门", 1),
    (CHINESE, "发票多久之内付款", 4),
]
FAR = [(PERSIAN, "پایتخت مغولستان کجاست؟"), (CHINESE, "蒙古的首都是哪里")]


@pytest.fixture(params=[PERSIAN, CHINESE], ids=["persian", "chinese"])
def texts(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Return the passages of one language."""
    found: tuple[str, ...] = request.param
    return found


@pytest.fixture
def base(make_base: Make, texts: tuple[str, ...]) -> KnowledgeBase:
    """Return a knowledge base in one language, with MiniLM."""
    base = make_base(embedder="minilm")
    base.override({"cite": "generous"})
    for text in texts:
        base.add(text)
    return base


def test_words_decide_the_order(base: KnowledgeBase, texts: tuple[str, ...]) -> None:
    """The right passage is first, and the order of all is that of BM25."""
    for of, question, right in CASES:
        if of != texts:
            continue
        selection = base.search(question).selection

        assert selection.candidates[0].chunk.text == texts[right]
        pool = (*selection.candidates, *selection.dropped)
        by_score = sorted(pool, key=lambda c: -c.score)
        assert [c.signal("bm25") for c in by_score] == sorted(
            (c.signal("bm25") for c in pool), reverse=True
        )


def test_far_questions_are_refused(base: KnowledgeBase, texts: tuple[str, ...]) -> None:
    """That all texts of a script are near to each other cites none of them."""
    [question] = [question for of, question in FAR if of == texts]

    found = base.search(question)

    assert found.refused is not None
    assert not found.selection.candidates
    assert max(c.signal("cosine") for c in found.selection.dropped) > 0.4
