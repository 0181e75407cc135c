"""Working ahead: sooner, and in every other way as if it was not done."""

import random
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from counting import CountingEmbedder
from kept.errors import EmbedderError, InputError
from kept.ingest.ingestion import Handed, Ingest
from kept.ingest.receipts import Receipt, Source
from kept.kernel.ports import Vectors
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.wiring import cutting_of, duplicate_rules_of
from kept.search.render import receipt_json
from kept.text.draft import Draft
from whole_truth import rows_of

Make = Callable[..., KnowledgeBase]
SLOW = 0.002
WINDOW = 8
PAGE = "Pump {0} of hall {0} is greased by team {0} and by nobody else, ever. " * 4
LONG = "".join(f"Part {n} of {{0}} is told here at length. " * 12 for n in range(4))


def handed(uri: str, text: str) -> Handed:
    """Return a text as a folder would hand it in."""
    draft = Draft(text=text)
    return Handed(source=Source(uri=uri, raw_sha256=text), read=lambda: draft)


def unreadable(uri: str) -> Handed:
    """Return a text that cannot be read."""
    error = InputError(f"{uri}: there is no text in it")
    return Handed(source=Source(uri=uri, raw_sha256=""), read=lambda: error)


def pages(count: int) -> list[Handed]:
    return [handed(f"page-{n}", PAGE.format(n)) for n in range(count)]


def path_of(base: KnowledgeBase, embedder: Any) -> Ingest:  # noqa: ANN401 -- a double
    """Return the ingest path with windows of eight chunks."""
    base.store.claim(embedder.id, embedder.dimension)
    return Ingest(
        intake=base.store.intake(base.tenant),
        embedder=embedder,
        tenant=base.tenant,
        rules=duplicate_rules_of(base.settings, embedder),
        cutting=cutting_of(base.settings),
        window_chunks=WINDOW,
    )


def entangled(seed: int, count: int = 90) -> list[Handed]:
    """Return texts that repeat, replace and resemble those shortly before them."""
    chance = random.Random(seed)  # noqa: S311 -- not a secret
    found: list[Handed] = []
    for n in range(count):
        uri = f"file-{chance.randrange(25)}"
        subject = chance.randrange(max(0, n // 2 - 8), n // 2 + 2)
        text = chance.choice([PAGE, PAGE, PAGE + "Impact.", LONG]).format(subject)
        found.append(unreadable(uri) if n % 17 == 5 else handed(uri, text))
    return found


def threads_ahead() -> list[str]:
    """Return the names of threads that work ahead."""
    return [t.name for t in threading.enumerate() if t.name.startswith("kept-ahead")]


@dataclass
class Failing(CountingEmbedder):
    """An embedder that fails on a text."""

    on: str = field(default="")

    def embed(self, texts: Iterable[str]) -> Vectors:
        """Embed, unless the text is there."""
        asked = list(texts)
        if any(self.on in text for text in asked):
            msg = f"cannot embed {self.on}"
            raise EmbedderError(msg)
        return super().embed(asked)


@dataclass
class Waiting(CountingEmbedder):
    """An embedder that waits until it may go on."""

    go_on: threading.Event = field(default_factory=threading.Event)

    def embed(self, texts: Iterable[str]) -> Vectors:
        """Embed, but not too soon."""
        self.go_on.wait(60)
        return super().embed(texts)


@pytest.mark.parametrize("seed", range(2))
def test_what_comes_out_is_as_if_nothing_was_done_ahead(
    make_base: Make, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Copies, versions and failures: each receipt, id, row and number is the same."""
    ahead, in_turn = make_base("ahead"), make_base("in-turn")
    slow = CountingEmbedder(pause_seconds=SLOW)

    ours = list(map(receipt_json, path_of(ahead, slow)(entangled(seed))))
    monkeypatch.setattr("kept.ingest.window.AT_ONCE", 1)
    theirs = list(map(receipt_json, path_of(in_turn, slow)(entangled(seed))))

    assert {receipt["status"] for receipt in ours} == {
        *("created", "reused", "superseded", "unchanged", "failed")
    }
    assert ours == theirs
    assert _truth(ahead) == _truth(in_turn)


def _truth(base: KnowledgeBase) -> dict[str, list[tuple[object, ...]]]:
    return rows_of(Path(base.settings.store))


def test_texts_are_embedded_while_those_before_them_are_stored(
    base: KnowledgeBase,
) -> None:
    """With the first receipt the next windows are begun, and no more than those."""
    embedder, read = Waiting(), 0

    def counted() -> Iterator[Handed]:
        nonlocal read
        for item in pages(80):
            read += 1
            if read == 2 * WINDOW:
                embedder.go_on.set()
            yield item

    receipts = path_of(base, embedder)(counted())
    next(receipts)

    assert 2 * WINDOW <= read <= 3 * WINDOW
    assert len(base.store.documents("default")) == WINDOW
    assert [r.status for r in receipts] == ["created"] * 79


def test_windows_grow_with_what_went_before_them(base: KnowledgeBase) -> None:
    """Beyond the usual, up to four times as long, by a sixteenth of what is done."""
    embedder = CountingEmbedder()
    texts = (handed(f"note-{n}", f"Note {n * n}.") for n in range(700))

    for _ in path_of(base, embedder)(texts):
        continue

    sizes = [len(call) for call in embedder.calls]
    assert sum(sizes) == 700
    assert sizes[:8] == [WINDOW] * 8
    assert sizes[-2] == 4 * WINDOW
    assert all(
        size <= max(WINDOW, sum(sizes[:place]) // 16)
        for place, size in enumerate(sizes)
    )


def test_a_lot_of_text_is_not_held_ahead(
    base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond so many characters each window is stored before more is read."""
    monkeypatch.setattr(
        "kept.ingest.window.MOST_CHARS", len(PAGE.format(0)) * WINDOW - 1
    )
    read: list[Handed] = []

    receipts = path_of(base, CountingEmbedder(pause_seconds=SLOW))(
        read.append(item) or item  # type: ignore[func-returns-value]  # always None
        for item in pages(40)
    )
    next(receipts)

    assert len(read) == WINDOW
    assert len(list(receipts)) == 39


def test_nothing_of_a_near_copy_but_its_opening_is_embedded_ahead(
    base: KnowledgeBase,
) -> None:
    """A text that repeats one of the window before it costs one vector, a copy none."""
    whole = [handed(f"whole-{n}", LONG.format(n)) for n in range(3)]
    near = handed("near", LONG.format(1) + "Impact.")
    copies = [handed(f"copy-{n}", LONG.format(2)) for n in range(3)]
    embedder = CountingEmbedder(pause_seconds=0.02)

    receipts = list(path_of(base, embedder)([*whole, near, *copies]))

    assert [r.status for r in receipts] == ["created"] * 3 + ["reused"] * 4
    assert len(embedder.texts) == sum(r.chunks for r in receipts) + 1


def test_a_copy_whose_like_goes_meanwhile_is_looked_at_again(
    base: KnowledgeBase,
) -> None:
    """What an alias held when the text was read counts no more once that is gone."""
    embedder = CountingEmbedder()
    near = LONG.format(1) + "Impact."
    [first, _] = path_of(base, embedder)(
        [handed("whole", LONG.format(1)), handed("a", near)]
    )
    embedder.pause_seconds = 0.05

    receipts = list(
        path_of(base, embedder)([handed("a", "Other."), *pages(7), handed("b", near)])
    )

    assert receipts[0].status == "superseded"
    assert (receipts[-1].status, receipts[-1].rule) == ("reused", "prefix")
    assert receipts[-1].canonical_id == first.document_id


def test_a_failure_comes_after_all_that_stands_before_it(base: KnowledgeBase) -> None:
    """Windows before the one that cannot be embedded are stored, with receipts."""
    reported: list[Receipt] = []
    embedder = Failing(pause_seconds=SLOW, on="hall 20 ")

    with pytest.raises(EmbedderError, match="hall 20"):
        reported.extend(path_of(base, embedder)(pages(60)))

    assert threads_ahead() == []
    assert len(base.store.documents("default")) == 2 * WINDOW


def test_what_breaks_off_leaves_what_was_whole(base: KnowledgeBase) -> None:
    """If the source fails, the whole windows before are stored, with receipts."""
    reported: list[Receipt] = []

    def broken() -> Iterator[Handed]:
        yield from pages(2 * WINDOW + 3)
        raise InterruptedError

    with pytest.raises(InterruptedError):
        reported.extend(path_of(base, CountingEmbedder(pause_seconds=0.05))(broken()))

    assert len(reported) == len(base.store.documents("default")) == 2 * WINDOW


@pytest.mark.parametrize("interrupted", [KeyboardInterrupt, SystemExit])
def test_an_interruption_stops_at_once_and_loses_no_receipt(
    base: KnowledgeBase, interrupted: type[BaseException]
) -> None:
    """Unfinished work is dropped, no thread is left, every receipt is stored."""
    reported: list[Receipt] = []

    def stopped() -> Iterator[Handed]:
        for item in pages(80):
            if reported:
                raise interrupted
            yield item

    with pytest.raises(interrupted):
        reported.extend(path_of(base, CountingEmbedder(pause_seconds=SLOW))(stopped()))

    assert threads_ahead() == []
    assert len(reported) == len(base.store.documents("default")) < 4 * WINDOW


def test_closing_half_way_leaves_no_thread(base: KnowledgeBase) -> None:
    """A caller that stops iterating has its receipts and their window stored."""
    receipts = path_of(base, CountingEmbedder(pause_seconds=SLOW))(pages(80))
    next(receipts)
    assert threads_ahead()

    receipts.close()  # type: ignore[attr-defined]  # a generator

    assert threads_ahead() == []
    assert len(base.store.documents("default")) == WINDOW
