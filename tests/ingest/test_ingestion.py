"""Ingestion: everything handed in is stored or accounted for, once."""

import hashlib
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from counting import CountingEmbedder, taken_and_embedded
from kept.errors import EmbedderMismatchError, InputError
from kept.ingest.duplicates import NOTED_MISSES, NOTED_REJECTED, Opening, SoughtText
from kept.ingest.ingestion import Handed, Ingest
from kept.ingest.receipts import Receipt, Source
from kept.kernel.ports import Vectors
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import Settings
from kept.knowledge_base.wiring import duplicate_rules_of
from kept.stores import duplicate_lookup as likeness
from kept.text.draft import Draft, DraftPiece

Make = Callable[..., KnowledgeBase]
PAGE = (
    "Visitors sign in at the desk and wear a badge.\n\n"
    "They are met by their host, who stays with them until they leave.\n\n"
)
LONG = "".join(
    f"Paragraph {i} tells of pump {i} and its valve. " * 8 + "\n\n" for i in range(20)
)


def handed(uri: str, text: str, **fields: object) -> Handed:
    """Return a text as a folder would hand it in."""
    draft = Draft(text=text, **fields)  # type: ignore[arg-type]  # fields of a draft
    raw = hashlib.sha256(repr((text, fields)).encode()).hexdigest()
    return Handed(source=Source(uri=uri, raw_sha256=raw), read=lambda: draft)


def taken(base: KnowledgeBase, *items: Handed) -> list[Receipt]:
    """Ingest and return the receipts."""
    return list(base.ingest(items))


def counted(base: KnowledgeBase, items: Iterable[Handed]) -> tuple[list[Receipt], int]:
    """Ingest, and return the receipts and how many texts were embedded."""
    receipts, texts = taken_and_embedded(base, items)
    return receipts, len(texts)


def test_a_new_text_is_created_with_its_chunks(base: KnowledgeBase) -> None:
    """The receipt names the document and counts its chunks and characters."""
    [receipt] = taken(base, handed("a.txt", LONG))

    assert (receipt.status, receipt.rule, receipt.error) == ("created", None, None)
    assert receipt.chunks == len(base.store.chunks("default", str(receipt.document_id)))
    assert receipt.chars == len(LONG)


def test_ids_depend_on_tenant_type_and_text_alone(make_base: Make) -> None:
    """The same text gives the same ids in another store, whatever its name."""
    [one] = taken(make_base("one"), handed("a.txt", PAGE))
    [two] = taken(make_base("two"), handed("other.txt", PAGE))
    [typed] = taken(make_base("three"), handed("a.txt", PAGE, type="memo"))
    [tenant] = taken(make_base("four", tenant="acme"), handed("a.txt", PAGE))

    assert one.document_id == two.document_id
    assert len({one.document_id, typed.document_id, tenant.document_id}) == 3


def test_an_exact_copy_is_reused_and_nothing_is_embedded(base: KnowledgeBase) -> None:
    """Same tenant, type and sha256: the existing document stands for both."""
    [first] = taken(base, handed("a.txt", PAGE))

    [second], embedded = counted(base, [handed("b.txt", PAGE)])

    assert (second.status, second.rule, second.similarity) == ("reused", "exact", 1.0)
    assert second.document_id == second.canonical_id == first.document_id
    assert embedded == 0


def test_an_exact_copy_in_the_same_run_is_embedded_once(base: KnowledgeBase) -> None:
    """Two copies handed in together are one document and one alias."""
    receipts, embedded = counted(base, [handed("a.txt", PAGE), handed("b.txt", PAGE)])

    assert [r.status for r in receipts] == ["created", "reused"]
    assert embedded == receipts[0].chunks


def test_another_type_or_tenant_is_no_duplicate(make_base: Make) -> None:
    """Documents are compared within their tenant and type only."""
    base = make_base()
    other = make_base(tenant="other")

    statuses = [
        taken(base, handed("a.txt", PAGE))[0].status,
        taken(base, handed("b.txt", PAGE, type="memo"))[0].status,
        taken(other, handed("c.txt", PAGE))[0].status,
    ]

    assert statuses == ["created"] * 3


def test_a_near_duplicate_is_reused_before_the_rest_is_embedded(
    base: KnowledgeBase,
) -> None:
    """Only the first chunk is embedded to find out."""
    taken(base, handed("a.txt", LONG))

    [receipt], embedded = counted(base, [handed("b.txt", LONG + "Impact.")])

    assert (receipt.status, receipt.rule) == ("reused", "prefix")
    assert embedded == 1


def test_near_duplicates_within_one_run_are_found(base: KnowledgeBase) -> None:
    """Texts of one batch are held against those before them."""
    receipts, embedded = counted(
        base, [handed("a.txt", LONG), handed("b.txt", LONG + "Impact.")]
    )

    assert [r.status for r in receipts] == ["created", "reused"]
    assert receipts[1].canonical_id == receipts[0].document_id
    assert embedded == receipts[0].chunks + 1


def test_a_shared_opening_is_stored_with_the_near_miss_noted(
    base: KnowledgeBase,
) -> None:
    """Both documents stay, and the ledger says how near they were."""
    one, two = (LONG[:2000] + f"Annex {name}. " * 200 for name in ("solar", "barge"))

    receipts = taken(base, handed("a.txt", one), handed("b.txt", two))

    assert [r.status for r in receipts] == ["created", "created"]
    [miss] = receipts[1].evidence["near_misses"]
    assert miss["document_id"] == receipts[0].document_id
    assert base.store.ledger("default")[-1].receipt.evidence["near_misses"] == [miss]


def test_a_threshold_of_one_switches_near_duplicates_off(make_base: Make) -> None:
    """Only the exact check is left, under every embedder."""
    base = make_base(near_duplicate_threshold=1.0)

    receipts = taken(base, handed("a.txt", PAGE), handed("b.txt", PAGE + "Impact."))

    assert [r.status for r in receipts] == ["created", "created"]


def test_an_alias_keeps_the_text_and_can_be_undone(base: KnowledgeBase) -> None:
    """Nothing that was handed in is lost: the alias becomes a document again."""
    taken(base, handed("a.txt", LONG))
    taken(base, handed("b.txt", LONG + "Impact.", title="The other", tags=("x",)))
    [alias] = base.store.aliases("default")

    receipt = base.undo(alias.id)

    assert alias.text == LONG + "Impact."
    assert base.store.aliases("default") == []
    document, text = base.store.document("default", str(receipt.document_id))
    assert (document.title, text) == ("The other", LONG + "Impact.")
    assert base.store.chunks("default", document.id)[0].tags == ("x",)
    assert base.search("Impact pump valve paragraph").refused is None


def test_an_undone_alias_stays_undone_when_its_folder_comes_again(
    base: KnowledgeBase,
) -> None:
    """The source keeps the digest of its bytes, so it is unchanged."""
    items = [handed("a.txt", LONG), handed("b.txt", LONG + "Impact.")]
    taken(base, *items)
    base.undo(base.store.aliases("default")[0].id)

    receipts = taken(base, *items)

    assert [r.status for r in receipts] == ["unchanged", "unchanged"]
    assert len(base.store.documents("default")) == 2


def test_an_unchanged_source_embeds_nothing(base: KnowledgeBase) -> None:
    """Known bytes are not even read again."""
    items = [handed("a.txt", LONG), handed("b.txt", PAGE)]
    taken(base, *items)

    receipts, embedded = counted(base, items)

    assert [r.status for r in receipts] == ["unchanged", "unchanged"]
    assert embedded == 0


def test_a_changed_source_supersedes_its_former_version(base: KnowledgeBase) -> None:
    """The old version leaves the search, and is kept."""
    [old] = taken(base, handed("a.txt", PAGE + "The desk closes at noon."))

    [new] = taken(base, handed("a.txt", PAGE + "The desk closes at midnight."))

    assert (new.status, new.supersedes) == ("superseded", old.document_id)
    assert [d.document.id for d in base.store.documents("default")] == [new.document_id]
    [retired] = [
        d for d in base.store.documents("default", all_versions=True) if not d.live
    ]
    assert retired.superseded_by == new.document_id
    texts = [
        c.chunk.text
        for c in base.search("desk closes noon midnight").selection.candidates
    ]
    assert any("midnight" in text for text in texts)
    assert not any("noon" in text for text in texts)


def test_a_version_that_comes_back_is_revived_without_embedding(
    base: KnowledgeBase,
) -> None:
    """Its vectors were never thrown away."""
    first = handed("a.txt", PAGE + "One.")
    [old] = taken(base, first)
    taken(base, handed("a.txt", PAGE + "Two." * 50))

    [again], embedded = counted(base, [first])

    assert (again.status, again.document_id) == ("superseded", old.document_id)
    assert embedded == 0
    assert [d.document.id for d in base.store.documents("default")] == [old.document_id]


def test_a_document_that_another_source_stands_for_stays(base: KnowledgeBase) -> None:
    """Changing one of two copies does not take the other away."""
    taken(base, handed("a.txt", PAGE), handed("b.txt", PAGE))

    taken(base, handed("a.txt", LONG))

    assert len(base.store.documents("default")) == 2


def test_text_beyond_the_cap_is_counted_not_lost_in_silence(make_base: Make) -> None:
    """The ledger says how much was left out; no cap leaves nothing out."""
    capped = make_base("capped", max_chunks=2)
    whole = make_base("whole", max_chunks=0)

    [some] = taken(capped, handed("a.txt", LONG))
    [everything] = taken(whole, handed("a.txt", LONG))

    assert (some.chunks, everything.chars_left_out) == (2, 0)
    assert some.chars_left_out > len(LONG) / 2
    assert (
        capped.store.ledger("default")[-1].receipt.chars_left_out == some.chars_left_out
    )


def test_no_document_is_cut_short_unless_it_is_asked_for(make_base: Make) -> None:
    """There is no cap, but for the grants preset, which keeps its 200 chunks."""
    text = "\n\n".join(f"Paragraph {n} about the harbour. " * 20 for n in range(210))

    [whole] = taken(make_base("whole"), handed("a.txt", text))
    [grants] = taken(make_base("grants", preset="grants"), handed("a.txt", text))

    assert (whole.chunks > 200, whole.chars_left_out) == (True, 0)
    assert (grants.chunks, grants.chars_left_out > 0) == (200, True)


def test_lifting_the_cap_takes_in_what_it_left_out(make_base: Make) -> None:
    """An unchanged file is read again if a part of it is missing."""
    taken(make_base("same", max_chunks=2), handed("a.txt", LONG))
    lifted = make_base("same")

    [again] = taken(lifted, handed("a.txt", LONG))
    [unchanged] = taken(lifted, handed("a.txt", LONG))

    assert (again.status, again.chars_left_out) == ("described", 0)
    assert again.chunks > 2
    assert unchanged.status == "unchanged"


def test_an_unreadable_text_is_reported_and_the_rest_goes_on(
    base: KnowledgeBase,
) -> None:
    """The error is in the receipt and in the ledger."""
    broken = Handed(
        source=Source(uri="x", raw_sha256="0"), read=lambda: InputError("x: no text")
    )

    receipts = taken(base, handed("a.txt", PAGE), broken, handed("b.txt", LONG))

    assert [r.status for r in receipts] == ["created", "failed", "created"]
    assert receipts[1].error == "x: no text"
    assert base.store.ledger("default")[1].receipt.error == "x: no text"


def test_tags_labels_and_metadata_reach_the_chunks(base: KnowledgeBase) -> None:
    """What the draft declares is stored and found again."""
    text = "# Eligibility\n\nSmall companies may apply for the grant until autumn."
    fields = {
        "tags": ("call",),
        "labels": {"Sleep": 2},
        "role": "definition",
        "metadata": {"year": 2026},
        "authority": "high",
    }

    [receipt] = taken(base, handed("a.md", text, **fields))

    [chunk] = base.store.chunks("default", str(receipt.document_id))
    document, _ = base.store.document("default", str(receipt.document_id))
    assert set(chunk.tags) == {"call", "eligibility"}
    assert (dict(chunk.labels), chunk.role) == ({"Sleep": 2}, "definition")
    assert (document.authority, document.metadata["year"]) == ("high", 2026)


def test_concurrent_copies_become_one_document(tmp_path: Path) -> None:
    """A unique constraint decides, not a check that two can pass."""
    settings = Settings(store=str(tmp_path / "base"), embedder="hash")
    texts = [PAGE + f"Note {i}." * 40 for i in range(6)]

    def run(worker: int) -> list[Receipt]:
        with KnowledgeBase(settings) as base:
            return taken(
                base, *(handed(f"{worker}-{i}", t) for i, t in enumerate(texts))
            )

    with ThreadPoolExecutor(4) as pool:
        receipts = [r for found in pool.map(run, range(4)) for r in found]

    with KnowledgeBase(settings) as base:
        assert len(base.store.documents("default")) == 6
    assert [r.status for r in receipts].count("created") == 6
    assert [r.rule for r in receipts].count("exact") == 18


def test_vectors_of_another_embedder_are_refused(make_base: Make) -> None:
    """Two models never mix; the error names the command that re-embeds."""
    base = make_base()
    taken(base, handed("a.txt", PAGE))

    with pytest.raises(EmbedderMismatchError, match="kept reembed"):
        base.store.claim("minilm-int8-v1:384", 384)


def test_vectors_that_are_none_store_nothing(base: KnowledgeBase) -> None:
    """An embedder that returns NaN is caught before anything is written."""

    class Broken(CountingEmbedder):
        def embed(self, texts: Iterable[str]) -> Vectors:
            return np.full((len(list(texts)), self.dimension), np.nan, np.float32)

    embedder = Broken()
    base.store.claim(embedder.id, embedder.dimension)
    path = Ingest(
        intake=base.store.intake("default"),
        embedder=embedder,
        tenant="default",
        rules=duplicate_rules_of(base.settings, embedder),
    )

    with pytest.raises(Exception, match="NaN"):
        list(path([handed("a.txt", PAGE)]))
    assert base.store.documents("default") == []


def test_similarities_are_kept_for_setting_thresholds(base: KnowledgeBase) -> None:
    """Accepted and rejected pairs alike, as a distribution."""
    taken(base, handed("a.txt", LONG), handed("b.txt", LONG + "Impact."))

    assert base.similarity_histogram() == [
        {"rule": "prefix", "from": 1.0, "accepted": 1, "rejected": 0}
    ]


def test_similarities_are_counted_where_they_are_stored(base: KnowledgeBase) -> None:
    """What is read grows with the bins, not with the comparisons."""
    taken(base, *(handed(f"{n}.txt", f"{PAGE}\n\n{n}") for n in range(6)))

    [bin_] = base.store.similarities("default", 2.0)

    assert (bin_.rule, bin_.step, bin_.accepted, bin_.times > 5) == (
        *("cosine", 0, False),
        True,
    )


def test_what_is_kept_of_comparisons_grows_with_the_texts(base: KnowledgeBase) -> None:
    """Texts of one template leave so many lines each, not one for every two."""
    notice = (
        "Dear customer, your order {} was received and is sent within three days to "
        "the address in your account. Keep this letter until the parcel is there, and "
        "ask our service, open on every working day, about anything that is missing."
    )
    texts = [notice.format(100_000 + n) for n in range(60)]

    receipts = taken(base, *(handed(f"{n}.txt", text) for n, text in enumerate(texts)))

    noted = sum(one.times for one in base.store.similarities("default", 0.01))
    last = receipts[-1].evidence
    assert {receipt.status for receipt in receipts} == {"created"}
    assert noted == sum(min(n, NOTED_REJECTED) for n in range(60))
    assert len(last["near_misses"]) == NOTED_MISSES
    assert last["more_near_misses"] == 59 - NOTED_MISSES
    assert base.store.ledger("default")[-1].receipt.evidence == last


@pytest.mark.parametrize("latest", [2, 6, 100])
def test_short_lines_are_held_against_the_newest_that_begin_alike(
    make_base: Make, monkeypatch: pytest.MonkeyPatch, latest: int
) -> None:
    """They are the same whether the latest documents hold enough of them or not."""
    monkeypatch.setattr(likeness, "LATEST", latest)
    monkeypatch.setattr(likeness, "MOST_BY_PREFIX", 3)
    base = make_base()
    lines = ["pump A ok", "pump B ok", "pump C ok", *(LONG + c for c in "xyz")]
    stored = [taken(base, handed(f"{n}.txt", t))[0] for n, t in enumerate(lines)]
    opening = Opening(
        document_id="new", text="pump D ok", vector=base.embedder.embed(["zebra"])[0]
    )

    [found] = base.store.intake("default").openings(
        [SoughtText(type="document", opening=opening)],
        duplicate_rules_of(base.settings, base.embedder),
    )

    assert [one.document_id for one in found] == [
        str(receipt.document_id) for receipt in stored[2::-1]
    ]


def test_deleting_a_document_with_near_copies_asks_first(base: KnowledgeBase) -> None:
    """The texts that it stands for are not lost by accident."""
    [first] = taken(base, handed("a.txt", LONG))
    taken(base, handed("b.txt", LONG + "Impact."))

    with pytest.raises(InputError, match="stands for 1 other text"):
        base.delete(str(first.document_id))
    base.delete(str(first.document_id), with_aliases=True)

    assert base.store.documents("default") == []
    assert base.store.aliases("default") == []


def test_each_piece_keeps_its_own_tags_labels_and_metadata(
    base: KnowledgeBase,
) -> None:
    """What is declared of one chunk goes to that chunk, over the document's own."""
    pieces = (
        DraftPiece("the first passage", ("Sleep",), {"Sleep": 2}, {"line": 1}),
        DraftPiece("the second passage", labels={"Sleep": None}),
    )

    [receipt] = base.add(
        "both", tags=("all",), labels={"Sleep": 1, "Tired": 0}, pieces=pieces
    )

    first, second = base.store.chunks(base.tenant, str(receipt.document_id))
    assert (first.tags, first.labels) == (("all", "Sleep"), {"Sleep": 2, "Tired": 0})
    assert first.metadata == {"line": 1}
    assert (second.tags, second.labels) == (("all",), {"Sleep": None, "Tired": 0})
