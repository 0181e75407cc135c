"""Support: whether what an answer says stands in the passages that it cites.

A deterministic check without a language model. Each sentence is held against its
passages: the words it shares with them, its numbers and names, and whether one
denies what the other states; optionally also the nearness of embeddings.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from kept.kernel.ports import Embedder
from kept.kernel.signals import PLACES
from kept.text.sentences import sentences
from kept.text.tokens import analyse, detect_language

Judgement = Literal["supported", "partial", "unsupported", "no_claim"]

SUPPORTED = 0.6
PARTIAL = 0.35
SAME_MATTER = 0.5
FEWEST_TERMS = 2
COST_OF_NUMBERS = 0.5
COST_OF_NAMES = 0.25
COST_OF_DENIAL = 0.5
SHARE_OF_PHRASES = 0.3
SHARE_OF_COSINE = 0.4

MARKER = re.compile(r"[ \t]*[\[\u3010]\d+(?:\s*[,;\uff0c\u3001]\s*\d+)*[\]\u3011]")
_NUMBER = re.compile(r"\d+(?:[.,\u066b\u066c]\d+)*")
_NAME = re.compile(r"(?<=[^\W_][,;:)\s]\s|.[^.!?:\s]\s)[^\W\d_a-z][\w'\u2019-]*\w")
_CODE = re.compile(r"\b(?=\w*\d)(?=\w*[^\W\d_])[\w-]{3,}\b")
_DENIALS = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|neither|nor|without|cannot|\w+n['\u2019]t"
    r"|nicht|kein\w*|nie|niemals|ohne|pas|jamais|aucune?|sans|nunca|jam\u00e1s|sin"
    r"|n\u00e3o|sem|non|mai|senza|niet|geen|nooit|\u043d\u0435|\u043d\u0435\u0442)\b"
    r"|[\u4e0d\u6ca1\u7121\u65e0\u672a]",
    re.IGNORECASE,
)
_NO_CLAIM = re.compile(
    r"\b(?:i|we)(?:\s+am|\s+are|['\u2019]m)?\s+(?:sorry|unable|afraid)\b"
    r"|\b(?:i|we)\s+(?:do\s*n[o'\u2019]t|don['\u2019]t|cannot|can['\u2019]t|could\s?n[o'\u2019]t"
    r"|couldn['\u2019]t)\s+(?:\w+\s+)?(?:have|know|find|answer|provide|say|tell|see)\b"
    r"|\b(?:context|passages?|documents?|information|text)\b.{0,40}\b(?:does|do|did)"
    r"(?:\s+not|n['\u2019]t)\s+(?:\w+\s+)?(?:mention|contain|provide|include|specify|say"
    r"|state|answer|cover)"
    r"|\b(?:let me know|feel free|hope (?:this|that) helps|happy to help)\b",
    re.IGNORECASE,
)
_COUNTED = "zero - two three four five six seven eight nine ten eleven twelve"
_WORDS_FOR_NUMBERS = {word: str(n) for n, word in enumerate(_COUNTED.split())}


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceSupport:
    """How far one sentence of an answer stands on its passages.

    *passages* are the numbers it was held against; *cited* says whether it named
    them itself. *denial* means that it denies what they state, or the reverse.
    """

    text: str
    judgement: Judgement
    score: float
    cited: bool
    passages: tuple[int, ...]
    overlap: float = 0.0
    phrases: float = 0.0
    cosine: float | None = None
    missing_numbers: tuple[str, ...] = ()
    missing_names: tuple[str, ...] = ()
    denial: bool = False
    weight: int = 0


@dataclass(frozen=True, slots=True)
class Support:
    """The sentences of an answer and the faithfulness that they add up to.

    The faithfulness is the mean score of the sentences that claim something,
    weighted by how many words of content they have; None if nothing is claimed.
    """

    sentences: tuple[SentenceSupport, ...]

    @property
    def faithfulness(self) -> float | None:
        """The share of the answer that is supported, from 0 to 1."""
        claims = [s for s in self.sentences if s.judgement != "no_claim"]
        weight = sum(s.weight for s in claims)
        if not weight:
            return None
        return round(sum(s.score * s.weight for s in claims) / weight, PLACES)

    @property
    def grounded(self) -> bool:
        """Whether any sentence cites a passage that supports it, if only in part."""
        held = ("supported", "partial")
        return any(s.cited and s.judgement in held for s in self.sentences)


def support(
    answer: str, passages: Sequence[str], embedder: Embedder | None = None
) -> Support:
    """Hold each sentence of *answer* against the passages that it cites.

    Passage 1 is the first. A sentence without a marker is held against all.
    """
    language = detect_language("\n".join([answer, *passages])[:4000])
    read = {n: _Passage.of(text, language) for n, text in enumerate(passages, 1)}
    spoken = [_Spoken.of(text, language) for text in _with_markers(answer)]
    near = _cosines(spoken, read, embedder) if embedder else {}
    return Support(tuple(_weighed(one, read, near) for one in spoken))


@dataclass(frozen=True)
class _Passage:
    """A passage, taken apart once for all sentences."""

    sentences: tuple[str, ...]
    terms: tuple[frozenset[str], ...]
    all_terms: frozenset[str]
    pairs: frozenset[tuple[str, str]]
    numbers: frozenset[str]
    folded: str

    @classmethod
    def of(cls, text: str, language: str | None) -> "_Passage":
        parts = tuple(s.text for s in sentences(text)) or (text,)
        terms = [_terms(part, language) for part in parts]
        flat = [term for part in terms for term in part]
        return cls(
            parts,
            tuple(frozenset(part) for part in terms),
            frozenset(flat),
            frozenset(pairwise(flat)),
            frozenset(_numbers(text)),
            _folded(text),
        )


@dataclass(frozen=True)
class _Spoken:
    """A sentence of the answer, taken apart."""

    text: str
    cited: frozenset[int]
    terms: tuple[str, ...]
    numbers: tuple[str, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, marked: str, language: str | None) -> "_Spoken":
        cited = frozenset(
            int(n) for marker in MARKER.findall(marked) for n in _NUMBER.findall(marker)
        )
        text = MARKER.sub("", marked)
        names = (*_NAME.findall(text), *_CODE.findall(text))
        return cls(
            text,
            cited,
            tuple(_terms(text, language)),
            tuple(dict.fromkeys(_numbers(text))),
            tuple(dict.fromkeys(names)),
        )

    @property
    def claims(self) -> bool:
        return (
            len(set(self.terms)) >= FEWEST_TERMS
            and not self.text.rstrip().endswith(("?", "\uff1f"))
            and _NO_CLAIM.search(self.text) is None
        )


def _with_markers(answer: str) -> Iterable[str]:
    """Yield sentences, each with the markers that follow its full stop."""
    found = [s.text for s in sentences(answer)]
    joined: list[str] = []
    for text in found:
        lead = re.match(rf"(?:{MARKER.pattern})+[.\u3002]?", text)
        if lead and joined:
            joined[-1] += f" {lead[0].strip()}"
            text = text[lead.end() :].strip()  # noqa: PLW2901 -- what is left of it
        if text:
            joined.append(text)
    return joined


def _weighed(
    spoken: _Spoken, read: Mapping[int, _Passage], near: Mapping[str, Sequence[float]]
) -> SentenceSupport:
    cited = tuple(sorted(spoken.cited & read.keys()))
    numbers = cited or tuple(read)
    held = [read[n] for n in numbers]
    if not spoken.claims or not held:
        return SentenceSupport(
            text=spoken.text,
            judgement="unsupported" if spoken.claims else "no_claim",
            score=0.0,
            cited=bool(cited),
            passages=numbers,
            weight=len(set(spoken.terms)),
        )
    overlap = _share(set(spoken.terms), frozenset().union(*(p.all_terms for p in held)))
    pairs = set(pairwise(spoken.terms))
    phrases = _share(pairs, frozenset().union(*(p.pairs for p in held)))
    missing = tuple(n for n in spoken.numbers if not any(n in p.numbers for p in held))
    unnamed = tuple(
        name
        for name in spoken.names
        if not any(_folded(name) in p.folded for p in held)
    )
    denial = _denies(spoken, held)
    cosine = (
        max((near[spoken.text][n - 1] for n in numbers), default=0.0) if near else None
    )
    score = (1 - SHARE_OF_PHRASES) * overlap + SHARE_OF_PHRASES * phrases
    if cosine is not None:
        score = (1 - SHARE_OF_COSINE) * score + SHARE_OF_COSINE * max(0.0, cosine)
    score *= 1 - COST_OF_NUMBERS * len(missing) / max(1, len(spoken.numbers))
    score *= 1 - COST_OF_NAMES * len(unnamed) / max(1, len(spoken.names))
    score *= 1 - COST_OF_DENIAL * denial
    return SentenceSupport(
        text=spoken.text,
        judgement=_judgement(score, doubtful=bool(missing) or denial),
        score=round(score, PLACES),
        cited=bool(cited),
        passages=numbers,
        overlap=round(overlap, PLACES),
        phrases=round(phrases, PLACES),
        cosine=cosine,
        missing_numbers=missing,
        missing_names=unnamed,
        denial=denial,
        weight=len(set(spoken.terms)),
    )


def _judgement(score: float, *, doubtful: bool) -> Judgement:
    if score >= SUPPORTED and not doubtful:
        return "supported"
    return "partial" if score >= PARTIAL else "unsupported"


def denies(text: str) -> bool:
    """Return whether a sentence has a word of denial."""
    return bool(_DENIALS.search(text))


def _denies(spoken: _Spoken, held: Iterable[_Passage]) -> bool:
    """Return whether the nearest sentence of the passages says the opposite."""
    terms = set(spoken.terms)
    shared = [
        (_share(terms, part), text)
        for passage in held
        for part, text in zip(passage.terms, passage.sentences, strict=True)
    ]
    best = max(share for share, _ in shared)
    if best < SAME_MATTER:
        return False
    says_no = denies(spoken.text)
    return all(denies(text) != says_no for share, text in shared if share == best)


def _cosines(
    spoken: Iterable[_Spoken], read: Mapping[int, _Passage], embedder: Embedder
) -> Mapping[str, Sequence[float]]:
    """Return each sentence's best cosine with a sentence of each passage."""
    texts = [one.text for one in spoken if one.text]
    parts = [part for passage in read.values() for part in passage.sentences if part]
    if not texts or not parts:
        return {one.text: [0.0] * len(read) for one in spoken}
    vectors = embedder.embed([*texts, *parts]).astype(np.float64)
    table = np.round(vectors[: len(texts)] @ vectors[len(texts) :].T, PLACES)
    nearest: dict[str, Sequence[float]] = {}
    for text, row in zip(texts, table, strict=True):
        cosines, at = [], 0
        for passage in read.values():
            width = sum(1 for part in passage.sentences if part)
            cosines.append(float(row[at : at + width].max(initial=0.0)))
            at += width
        nearest[text] = cosines
    return {one.text: nearest.get(one.text, [0.0] * len(read)) for one in spoken}


def _terms(text: str, language: str | None) -> list[str]:
    """Return the words of content; numbers are compared by themselves."""
    return [
        term
        for term in analyse(text, language)
        if not _NUMBER.fullmatch(term) and term not in _WORDS_FOR_NUMBERS
    ]


def _numbers(text: str) -> list[str]:
    """Return the numbers of *text* in one spelling: 1,000 and 1000 are the same."""
    found = [_plain(number) for number in _NUMBER.findall(text)]
    words = re.findall(r"[a-z]+", text.casefold())
    return found + [_WORDS_FOR_NUMBERS[w] for w in words if w in _WORDS_FOR_NUMBERS]


def _plain(number: str) -> str:
    """Write a number without separators of thousands and without idle zeros."""
    whole = re.sub(r"[,.\u066c](?=\d{3}(?:\D|$))", "", number).replace(",", ".")
    digits = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in whole)
    head, point, tail = digits.partition(".")
    tail = tail.rstrip("0") if "." not in tail else tail
    return f"{head.lstrip('0') or '0'}{point if tail else ''}{tail}"


def _share(wanted: "set[str] | set[tuple[str, str]]", had: frozenset[object]) -> float:
    return len(wanted & had) / len(wanted) if wanted else 0.0


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
