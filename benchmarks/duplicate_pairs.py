"""Write pairs of texts: copies in another form, and texts that say something else.

usage: python benchmarks/duplicate_pairs.py PAIRS.jsonl [--seed 7] [--documents 25]

The texts are real ones of KEPT_DATA (abstracts, news, reviews, Markdown pages,
encyclopaedia paragraphs) and some written by hand in six languages. `kept eval
--duplicates PAIRS.jsonl` evaluates the rules of ingestion on them.
"""

import argparse
import json
import os
import random
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

DATA = Path(os.environ.get("KEPT_DATA", "../shared/data"))
SETS = ("scifact", "nfcorpus", "cranfield", "minhash_articles", "squad2_dev", "mdn")
LEAST_CHARS, MOST_CHARS = 350, 6_000

Change = Callable[[str, random.Random], str | None]

FRONTS = (
    "This page was printed from the intranet.",
    "The following text was taken from our archive.",
    "For internal use only.",
    "Forwarded by the office of the registrar.",
    "Dear colleagues, please find the text below.",
    "Downloaded on 14 March 2026 from the members' area.",
    "Dieses Dokument wurde aus dem Intranet ausgedruckt.",
    "Scanned copy, provided with kind permission of the library.",
    "This is an automated export from the knowledge base.",
    "Copied from the shared drive by Ms. Ahmed.",
    "Good morning team, here is the document again.",
    "Text version of the brochure.",
    "Nachfolgend der Wortlaut der Ordnung.",
    "Ci-joint le règlement demandé.",
    "Documento interno, de uso exclusivo del personal.",
    "Documento scaricato dal portale il 3 marzo 2026.",
    "本页由内部网打印。",
)
HEADERS = (
    ("ACME Handbook | Internal", "Page 1 of 3 | Printed 2026-03-14"),
    ("Library of Congress reading room", "All rights reserved."),
    ("CONFIDENTIAL", "© 2025 Example Ltd. Do not reply to this message."),
    ("Home > Documents > Archive", "Contact | Imprint | Privacy"),
    ("Northwind Ltd. | Staff handbook", "Page 4 of 19"),
    ("Stark Industries", "Confidential. Do not copy."),
    ("Intranet > HR > Policies", "Last modified by admin on 2026-02-01"),
    ("Musterfirma GmbH · Hauptstraße 5", "Seite 1/3"),
    ("Ville de Nantes", "Imprimé le 2 février 2026, page 1/1"),
    ("From: Anna Berg\nTo: staff\nSubject: Fwd: for your information", "Kind regards"),
)


def _spaces(text: str, _: random.Random) -> str:
    return text.replace(" ", "  ")


def _lower(text: str, _: random.Random) -> str:
    return text.lower()


def _upper(text: str, _: random.Random) -> str:
    return text.upper()


def _quotes(text: str, _: random.Random) -> str | None:
    curly = re.sub(r"'(?=\w)|(?<=\w)'", "\u2019", re.sub(r'"([^"\n]*)"', r"“\1”", text))
    return curly if curly != text else None


def _wrapped(text: str, rng: random.Random) -> str:
    wrapped = textwrap.TextWrapper(rng.choice((40, 60, 72)), break_long_words=False)
    return "\n\n".join(wrapped.fill(p) for p in text.split("\n\n"))


def _unwrapped(text: str, _: random.Random) -> str | None:
    joined = re.sub(r"(?<!\n)\n(?!\n)", " ", text)
    return joined if joined != text else None


def _front(text: str, rng: random.Random) -> str:
    return f"{rng.choice(FRONTS)}\n\n{text}"


def _around(text: str, rng: random.Random) -> str:
    header, footer = rng.choice(HEADERS)
    return f"{header}\n\n{text}\n\n{footer}"


def _stripped(text: str, _: random.Random) -> str | None:
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    plain = re.sub(r"[*`#]|\b_|_\b|^\s*(?:- |> ?)", "", plain, flags=re.MULTILINE)
    return plain if plain != text else None


def _as_html(text: str, _: random.Random) -> str | None:
    if "<" in text or "{" in text:
        return None
    parts = "\n".join(f"<p>{part}</p>" for part in text.split("\n\n"))
    return f'<div class="content">\n{parts}\n</div>'


def _emphasised(text: str, rng: random.Random) -> str:
    words = text.split(" ")
    for place in rng.sample(range(len(words)), max(1, len(words) // 15)):
        if words[place].isalpha():
            words[place] = f"**{words[place]}**"
    return " ".join(words)


def _dashes(text: str, _: random.Random) -> str | None:
    other = text.replace("-", "\u2010").replace("...", "…")
    return other if other != text else None


def _spaced(text: str, _: random.Random) -> str:
    return text.replace(", ", ",\u00a0").replace(". ", ".\n")


COPIES: dict[str, Change] = {
    "doubled spaces": _spaces,
    "lower case": _lower,
    "upper case": _upper,
    "quotes": _quotes,
    "wrapped lines": _wrapped,
    "unwrapped lines": _unwrapped,
    "sentence in front": _front,
    "header and footer": _around,
    "markup stripped": _stripped,
    "HTML around": _as_html,
    "emphasis added": _emphasised,
    "other dashes": _dashes,
    "other white space": _spaced,
}

SWAPS: dict[str, tuple[tuple[str, str], ...]] = {
    "negation inserted": (
        *(("is", "is not"), ("was", "was not"), ("are", "are not"), ("can", "cannot")),
        *(("were", "were not"), ("has", "has not"), ("will", "will not")),
    ),
    "negation removed": (
        *(("not", ""), ("never", ""), ("no", "a"), ("without", "with")),
        *(("cannot", "can"), ("nor", "and"), ("don't", "do")),
    ),
    "number word": (
        *(("two", "seven"), ("three", "four"), ("one", "two"), ("first", "second")),
        *(("ten", "five"), ("half", "third"), ("four", "six"), ("twice", "once")),
    ),
    "antonym": (
        *(("high", "low"), ("increased", "decreased"), ("before", "after")),
        *(("more", "less"), ("large", "small"), ("upper", "lower"), ("all", "some")),
        *(("true", "false"), ("positive", "negative"), ("with", "without")),
        *(("first", "last"), ("always", "never"), ("higher", "lower")),
        *(("enabled", "disabled"), ("maximum", "minimum"), ("new", "old")),
    ),
    "modal verb": (
        *(("may", "must"), ("can", "must"), ("should", "may"), ("must", "may")),
        *(("could", "will"), ("might", "will"), ("will", "may"), ("would", "will")),
    ),
    "unit or currency": (
        *(("percent", "points"), ("%", "‰"), ("mg", "g"), ("km", "miles"), ("$", "€")),
        *(("years", "months"), ("days", "weeks"), ("year", "month"), ("ms", "s")),
        *(("hours", "minutes"), ("million", "billion"), ("pixels", "points")),
    ),
    "date": (
        *(("January", "June"), ("March", "May"), ("Monday", "Friday")),
        *(("Friday", "Sunday"), ("July", "August"), ("Tuesday", "Thursday")),
        *(("September", "October"), ("Saturday", "Wednesday"), ("April", "July")),
    ),
}
FACTS = (
    "This no longer applies.",
    "It was withdrawn in June.",
    "The fee is 40 euros.",
    "Students must apply in writing.",
    "None of this has been confirmed.",
    "Pets stay at home.",
    "All staff get a bonus.",
    "This text is wrong.",
    "The copy below is a joke.",
    "Archived files are sent to China.",
    "For members in Norway.",
    "Dieses Dokument ist veraltet.",
    "Hunde bleiben draußen.",
    "Ce texte est faux.",
    "Tutti pagano.",
    "Это шутка.",
    "全部作废。",
    "これは嘘です。",
    "모두 돈을 냅니다.",
)
SIGNS = (
    *((" < ", " > "), (" = ", " ≠ "), ("²", "2"), ("?", "."), (" a few ", " few ")),
    *(("No, ", "No "), ("true", "!true"), (" a ", " no ")),
)


def _swap(pairs: tuple[tuple[str, str], ...]) -> Change:
    def swapped(text: str, rng: random.Random) -> str | None:
        found = [
            (match, new)
            for old, new in pairs
            for match in re.finditer(rf"(?<!\w){re.escape(old)}(?!\w)", text)
        ]
        if not found:
            return None
        match, new = rng.choice(found)
        return f"{text[: match.start()]}{new}{text[match.end() :]}"

    return swapped


def _number(text: str, rng: random.Random) -> str | None:
    found = list(re.finditer(r"(?<![\w.,])\d+(?![\w])", text))
    if not found:
        return None
    match = rng.choice(found)
    other = int(match[0]) + rng.choice((1, 2, 10))
    return f"{text[: match.start()]}{other}{text[match.end() :]}"


def _sign(text: str, rng: random.Random) -> str | None:
    found = [pair for pair in SIGNS if pair[0] in text]
    return text.replace(*rng.choice(found), 1) if found else None


def _name(text: str, rng: random.Random) -> str | None:
    found = list(re.finditer(r"(?<=[a-z,] )[A-Z][a-z]{3,}", text))
    if not found:
        return None
    match = rng.choice(found)
    other = rng.choice(("Miller", "Lisbon", "Okafor", "Siemens"))
    return f"{text[: match.start()]}{other}{text[match.end() :]}"


def _sentences(text: str) -> list[re.Match[str]]:
    return list(re.finditer(r"(?<=[.!?] )[A-Z][^.!?]{30,200}[.!?](?= )", text))


def _left_out(text: str, rng: random.Random) -> str | None:
    if not (found := _sentences(text)):
        return None
    match = rng.choice(found)
    return f"{text[: match.start()]}{text[match.end() + 1 :]}"


def _swapped_words(text: str, rng: random.Random) -> str | None:
    """Swap two nouns about a word such as *to*, *than* or *by*."""
    found = list(
        re.finditer(r"\b([a-z]{4,}) (to|than|from|by|over) ([a-z]{4,})\b", text)
    )
    if not found:
        return None
    match = rng.choice(found)
    other = f"{match[3]} {match[2]} {match[1]}"
    return f"{text[: match.start()]}{other}{text[match.end() :]}"


def _fact_inside(text: str, rng: random.Random) -> str | None:
    if not (found := _sentences(text)):
        return None
    at = rng.choice(found).start()
    return f"{text[:at]}{rng.choice(FACTS)} {text[at:]}"


def _fact_around(text: str, rng: random.Random) -> str:
    fact = rng.choice(FACTS)
    return f"{fact}\n\n{text}" if rng.random() < 0.5 else f"{text}\n\n{fact}"


OPPOSITES: dict[str, Change] = {
    **{kind: _swap(pairs) for kind, pairs in SWAPS.items()},
    "number in digits": _number,
    "name": _name,
    "sign": _sign,
    "words in another order": _swapped_words,
    "sentence left out": _left_out,
    "fact put inside": _fact_inside,
    "fact in front or behind": _fact_around,
}

BY_HAND = json.loads(
    (Path(__file__).parent / "duplicate_texts.json").read_text("utf-8")
)


def documents(rng: random.Random, count: int) -> Iterator[tuple[str, str]]:
    """Yield *count* texts of each set, under the set's name."""
    for name in SETS:
        file = "corpus_1000.jsonl" if name == "minhash_articles" else "corpus.jsonl"
        texts = [
            json.loads(line)["text"]
            for line in (DATA / name / file).read_text("utf-8").splitlines()
        ]
        fitting = [text for text in texts if LEAST_CHARS <= len(text) <= MOST_CHARS]
        yield from ((name, text) for text in rng.sample(fitting, count))


def pairs(seed: int, count: int) -> Iterator[dict[str, object]]:
    """Yield every pair that can be made of the texts, each kind of each text once."""
    rng = random.Random(seed)  # noqa: S311 -- drawn again from the same seed
    texts = [
        *documents(rng, count),
        *((name, one["text"]) for name, one in BY_HAND.items()),
    ]
    for place, (name, text) in enumerate(texts):
        for kinds, duplicate in ((COPIES, True), (OPPOSITES, False)):
            for kind, change in kinds.items():
                other = change(text, rng)
                if other is not None and other != text:
                    yield {
                        "id": f"{name}-{place}-{kind}",
                        "kind": kind,
                        "first": text,
                        "second": other,
                        "duplicate": duplicate,
                    }
    for name, one in BY_HAND.items():
        text = one["text"]
        for place, (old, new) in enumerate(one["changes"]):
            assert old in text, (name, old)
            yield {
                "id": f"by-hand-{name}-{place}",
                "kind": "by hand",
                "first": text,
                "second": text.replace(old, new, 1),
                "duplicate": False,
            }


def main() -> None:
    """Write the pairs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--documents", type=int, default=25)
    given = parser.parse_args()
    with given.path.open("w", encoding="utf-8") as file:
        for pair in pairs(given.seed, given.documents):
            file.write(json.dumps(pair, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
