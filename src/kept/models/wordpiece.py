"""BERT's WordPiece tokenizer, as ``tokenizer.json`` describes it.

The package ``tokenizers`` gives the same tokens, and brings ten packages and 38 MB for
a model hub that Kept does not use. It remains the way to read other kinds of files.
"""

import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from kept.errors import SettingsError

# Unicode's White_Space without the control characters, which are removed instead.
_SPACE = "\t\n\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_WORD = re.compile(f"[^{_SPACE}]+")
_IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)
# Enough for the words of a large folder; what comes later is calculated each time.
_REMEMBERED_WORDS = 100_000

Piece = tuple[int, int, int]


@dataclass(frozen=True)
class WordPiece:
    """Splits text into the tokens of a vocabulary, each with its place in the text."""

    vocabulary: dict[str, int]
    unknown: int
    first: int
    last: int
    special: re.Pattern[str] | None
    prefix: str
    longest_word: int
    lowercase: bool
    strip_accents: bool
    _known: dict[str, tuple[Piece, ...]] = field(default_factory=dict, repr=False)

    @classmethod
    def from_file(cls, path: Path) -> "WordPiece":
        """Read a ``tokenizer.json``, or refuse one of another kind."""
        made = json.loads(path.read_text("utf-8"))
        if not is_wordpiece(made):
            msg = (
                f"{path} describes another tokenizer than BERT's; expected the model "
                "WordPiece with the normalizer and the pre-tokenizer of BERT"
            )
            raise SettingsError(msg)
        model, normalizer = made["model"], made["normalizer"]
        words: dict[str, int] = model["vocab"]
        added = {token["content"]: token["id"] for token in made["added_tokens"]}
        whole = "|".join(map(re.escape, sorted(added, key=len, reverse=True)))
        lowercase, accents = normalizer["lowercase"], normalizer["strip_accents"]
        return cls(
            vocabulary={**words, **added},
            unknown=words[model["unk_token"]],
            first=words["[CLS]"],
            last=words["[SEP]"],
            special=re.compile(whole) if whole else None,
            prefix=model["continuing_subword_prefix"],
            longest_word=model["max_input_chars_per_word"],
            lowercase=lowercase,
            strip_accents=lowercase if accents is None else accents,
        )

    def encode(self, text: str, at_most: int) -> list[int]:
        """Return the tokens of a text between those of its start and its end."""
        ids = [piece[0] for piece in self.pieces(text)]
        return [self.first, *ids[: at_most - 2], self.last]

    def pieces(self, text: str) -> list[Piece]:
        """Return each token with where it starts and ends in *text*."""
        found: list[Piece] = []
        for part, offset, special in self._parts(text):
            if special:
                found.append((self.vocabulary[part], offset, offset + len(part)))
                continue
            for word in _WORD.finditer(part):
                start = offset + word.start()
                for token, begin, end in self._of_word(word[0]):
                    found.append((token, start + begin, start + end))
        return found

    def _parts(self, text: str) -> Iterator[tuple[str, int, bool]]:
        """Cut out what is a token as it stands, such as ``[SEP]`` in a text."""
        place = 0
        if self.special is not None and "[" in text:
            for met in self.special.finditer(text):
                yield text[place : met.start()], place, False
                yield met[0], met.start(), True
                place = met.end()
        yield text[place:], place, False

    def _of_word(self, word: str) -> tuple[Piece, ...]:
        known = self._known.get(word)
        if known is None:
            known = tuple(self._split(word))
            if len(self._known) < _REMEMBERED_WORDS:
                self._known[word] = known
        return known

    def _split(self, word: str) -> Iterator[Piece]:
        """Normalise a word and split it at punctuation and ideographs."""
        part: list[tuple[str, int]] = []
        for char, place in self._normalised(word):
            alone = char in " \t\n\r" or _stands_alone(char)
            if alone and part:
                yield from self._longest_first(part)
                part = []
            if not alone:
                part.append((char, place))
            elif char not in " \t\n\r":
                yield from self._longest_first([(char, place)])
        if part:
            yield from self._longest_first(part)

    def _normalised(self, word: str) -> Iterator[tuple[str, int]]:
        """Yield the characters that count, each with its place in the word."""
        classes = _classes()
        for place, char in enumerate(word):
            if ord(char) in classes["removed"]:
                continue
            # An ideograph stands alone before accents are stripped: some of them are
            # decomposed into others that do not.
            spaced = _is_ideograph(char)
            if spaced:
                yield " ", place
            kept = unicodedata.normalize("NFD", char) if self.strip_accents else char
            for one in kept:
                if self.strip_accents and ord(one) in classes["marks"]:
                    continue
                for lower in one.lower() if self.lowercase else one:
                    yield lower, place
            if spaced:
                yield " ", place

    def _longest_first(self, part: list[tuple[str, int]]) -> Iterator[Piece]:
        """Take the longest known piece from the left, again and again."""
        text = "".join(char for char, _ in part)
        whole = part[0][1], part[-1][1] + 1
        pieces: list[Piece] = []
        start = 0
        while start < len(text):
            mark = self.prefix if start else ""
            ends = range(len(text), start, -1)
            end = next((e for e in ends if mark + text[start:e] in self.vocabulary), 0)
            if not end or len(text) > self.longest_word:
                yield (self.unknown, *whole)
                return
            token = self.vocabulary[mark + text[start:end]]
            pieces.append((token, part[start][1], part[end - 1][1] + 1))
            start = end
        yield from pieces


def is_wordpiece(made: Any) -> bool:  # noqa: ANN401 -- read from JSON
    """Whether the content of a ``tokenizer.json`` is BERT's."""
    parts = ("model", "WordPiece"), ("normalizer", "BertNormalizer")
    kinds = (*parts, ("pre_tokenizer", "BertPreTokenizer"))
    return all((made.get(name) or {}).get("type") == kind for name, kind in kinds)


@cache
def _classes() -> dict[str, frozenset[int]]:
    """Return the characters that are removed, accents, and punctuation.

    Listed, because ``unicodedata`` gives other answers with each version of Python,
    and the model was trained with these.
    """
    text = (resources.files("kept.models") / "bert_characters.json").read_text("utf-8")
    return {
        name: frozenset(
            code
            for part in ranges.split()
            for low, _, high in [part.partition("-")]
            for code in range(int(low, 16), int(high or low, 16) + 1)
        )
        for name, ranges in json.loads(text).items()
    }


def _stands_alone(char: str) -> bool:
    return ord(char) in _classes()["punctuation"]


def _is_ideograph(char: str) -> bool:
    code = ord(char)
    return code >= 0x3400 and any(low <= code <= high for low, high in _IDEOGRAPHS)  # noqa: PLR2004 -- the first
