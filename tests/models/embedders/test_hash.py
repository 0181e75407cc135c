import os
import subprocess
import sys

import numpy as np
import pytest

from kept.errors import InputError, SettingsError
from kept.models.embedders.hash import MAX_CHARS, HashEmbedder
from kept.testing.contracts import EmbedderContract

OPENING = (
    "Applicants must be registered charities with at least two years of accounts. "
    "The grant covers staff, travel and equipment up to 40,000 euros a year."
)


def cosine(first: str, second: str) -> float:
    vectors = HashEmbedder().embed([first, second]).astype(np.float64)
    return float(vectors[0] @ vectors[1])


class TestHashEmbedder(EmbedderContract):
    """The hash embedder keeps the contract."""

    def embedder(self) -> HashEmbedder:
        """Build it with its defaults."""
        return HashEmbedder()


def test_id_names_the_scheme_and_the_dimension() -> None:
    """Another dimension is another embedder."""
    assert HashEmbedder(dimension=256).id == "hash-v1:256"
    assert HashEmbedder(dimension=256).embed(["a"]).shape == (1, 256)


def test_a_small_edit_stays_a_near_duplicate() -> None:
    """A changed figure leaves the cosine above the near-duplicate threshold."""
    revised = OPENING.replace("40,000", "45,000")

    assert cosine(OPENING, revised) >= HashEmbedder().near_duplicate_cosine


def test_unrelated_texts_are_far_apart() -> None:
    """Texts about different things have a cosine about zero."""
    other = "The compressor stalled when the inlet flow separated from the blades."

    assert abs(cosine(OPENING, other)) < 0.2


def test_inflected_words_are_near() -> None:
    """Shared n-grams bring forms of one word together."""
    assert cosine("reimbursement", "reimbursements") > 0.6
    assert cosine("reimbursement", "compressor") < 0.2


def test_texts_without_spaces_are_compared_by_their_characters() -> None:
    """Japanese sentences that share most characters are near."""
    near = cosine(
        "経費は月末までに申請してください", "経費は月末までに精算してください"
    )
    far = cosine("経費は月末までに申請してください", "犬を連れて入ることはできません")

    assert near > 0.5
    assert far < 0.2


def test_case_width_and_punctuation_do_not_matter() -> None:
    """Folding makes spellings of one text equal."""
    assert cosine("\uff32efund  POLICY!", "refund policy") == pytest.approx(1)


@pytest.mark.parametrize("text", ["!!!", "🙂", " ", "\x00", "."])
def test_a_text_without_words_still_has_a_direction(text: str) -> None:
    """Punctuation alone is not a zero vector."""
    assert np.linalg.norm(HashEmbedder().embed([text])[0]) == pytest.approx(1)


def test_an_empty_text_is_refused_by_position() -> None:
    """Nothing has no direction; the caller learns which text it was."""
    with pytest.raises(InputError, match="text 1 of 2 is empty"):
        HashEmbedder().embed(["something", ""])


def test_too_few_dimensions_are_refused() -> None:
    """Collisions would make unrelated texts alike."""
    with pytest.raises(SettingsError, match="at least 64"):
        HashEmbedder(dimension=8)


def test_a_very_long_text_is_cut() -> None:
    """Beyond the limit nothing is read."""
    opening = "abcdefghi " * (MAX_CHARS // 10)

    vectors = HashEmbedder().embed([opening, opening + "something else" * 1_000])

    assert vectors[0].tobytes() == vectors[1].tobytes()


def test_batches_larger_than_a_block_keep_their_order() -> None:
    """Splitting the work does not show."""
    texts = [f"{n} " + "filler words here " * 4_000 for n in range(40)]

    vectors = HashEmbedder().embed(texts)

    assert vectors[37].tobytes() == HashEmbedder().embed([texts[37]])[0].tobytes()


def test_bytes_are_equal_in_every_process_and_pinned() -> None:
    """PYTHONHASHSEED does not matter, and a changed scheme needs a new id."""
    code = (
        "import hashlib\n"
        "from kept.models.embedders.hash import HashEmbedder\n"
        f"vectors = HashEmbedder().embed([{OPENING!r}, '経費は月末まで', '!!!'])\n"
        "print(hashlib.sha256(vectors.tobytes()).hexdigest()[:16])\n"
    )

    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": "src"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("0", "1")
    }

    assert digests == {"58c3172e6019454c"}
