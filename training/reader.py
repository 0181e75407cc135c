"""Train the reader, which says whether a passage answers a question, and where.

From data to weights in one script, on a CPU (hours) or a GPU (minutes), with torch,
tokenizers, safetensors and numpy. FOLDER holds what ``training/pack.py`` wrote, MODEL
the weights and the tokenizer of MiniLM as ``kept models install`` keeps them.

usage: python training/reader.py FOLDER MODEL --out OUT [--hold-out KIND,…]
"""

import argparse
import json
import lzma
import math
import random
import re
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from encoder import DEVICE, WIDTH, Encoder
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch.nn.functional import binary_cross_entropy_with_logits as bce
from torch.nn.functional import cross_entropy

LONGEST = 320  # tokens of question and passage together
ANSWER_TOKENS = 40


class Row(NamedTuple):
    """A question and a passage with what is known of the pair.

    *worth* and *answers* are labels from 0 to 1; *span* is where the answer stands,
    () if nowhere, None if that is not known. *weight* is how much the row counts.
    """

    question: str
    title: str
    passage: str
    worth: float
    answers: float
    span: tuple[int, int] | tuple[()] | None
    weight: float = 1.0


# --- model ---------------------------------------------------------------------------


class Reader(torch.nn.Module):
    """MiniLM with three outputs: worth citing, answers, and the span."""

    def __init__(self, model: Path, dropout: float = 0.1) -> None:
        super().__init__()
        self.encoder = Encoder(load_file(model / "model.safetensors"), dropout)
        # The first token and the mean together: MiniLM was trained to be averaged.
        self.dense = torch.nn.Linear(2 * WIDTH, 192)
        self.drop = torch.nn.Dropout(dropout)
        self.judge = torch.nn.Linear(192, 2)
        self.span = torch.nn.Linear(WIDTH, 2)

    def forward(self, ids, attention, passage):
        """Return the two logits of each pair, and a start and end logit per token."""
        hidden = self.encoder(ids, passage, attention).float()
        mask = attention.unsqueeze(-1).float()
        mean = (hidden * mask).sum(1) / mask.sum(1)
        both = torch.cat([hidden[:, 0], mean], -1)
        judged = self.judge(self.drop(torch.tanh(self.dense(both))))
        # A span lies in the passage; position 0 stands for "no answer here".
        allowed = (passage == 1) & (attention == 1)
        allowed[:, 0] = True
        spans = self.span(hidden).masked_fill(~allowed.unsqueeze(-1), -1e4)
        return judged, spans[..., 0], spans[..., 1]


# --- data ----------------------------------------------------------------------------


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a JSONL file packed by xz."""
    with lzma.open(path, "rt") as lines:
        return [json.loads(line) for line in lines]


NUMBER = re.compile(r"\b\d+(?:[.,]\d+)?\b")
NAME = re.compile(r"(?<=\s)(?:[A-Z][\w-]{2,}|[a-z]+_\w+|--?[a-z][\w-]+)\b")
OPPOSITES = {
    "before": "after",
    "after": "before",
    "maximum": "minimum",
    "minimum": "maximum",
    "first": "last",
    "last": "first",
    "enable": "disable",
    "disable": "enable",
    "enabled": "disabled",
    "disabled": "enabled",
    "with": "without",
    "without": "with",
    "allowed": "forbidden",
    "start": "stop",
    "stop": "start",
    "add": "remove",
    "remove": "add",
    "buy": "sell",
    "more": "less",
    "increase": "decrease",
    "employer": "employee",
    "landlord": "tenant",
    "import": "export",
    "export": "import",
    "child": "adult",
    "adult": "child",
}
OPPOSITE = re.compile(rf"\b(?:{'|'.join(OPPOSITES)})\b")


def swapped(question: str, others: Sequence[str], rng: random.Random) -> str | None:
    """Return the question about another number, name or opposite, if it has one."""
    ways: list[Callable[[], str]] = []
    if found := NUMBER.findall(question):
        old = rng.choice(found)
        new = str(int(float(old.replace(",", "."))) + rng.choice((1, 2, 5, 10)))
        ways.append(lambda: question.replace(old, new, 1))
    names = NAME.findall(question)
    strange = [name for name in NAME.findall(rng.choice(others)) if name not in names]
    if names and strange:
        gone, came = rng.choice(names), rng.choice(strange)
        ways.append(lambda: question.replace(gone, came, 1))
    if found := OPPOSITE.findall(question):
        word = rng.choice(found)
        ways.append(lambda: question.replace(word, OPPOSITES[word], 1))
    changed = rng.choice(ways)() if ways else question
    return None if changed == question else changed


class Data(NamedTuple):
    """All that is trained on, and what is measured on."""

    questions: list[dict[str, Any]]
    judged: list[dict[str, Any]]
    public: list[dict[str, Any]]
    squad: list[dict[str, Any]]
    squad_measured: list[dict[str, Any]]
    near: dict[str, list[tuple[str, str]]]


def loaded(folder: Path, held_out: str | None) -> tuple[Data, list[dict[str, Any]]]:
    """Return the data without the kinds that are held out, and their judgements.

    Kinds are separated by commas. ``judged`` holds out all judgements, and all
    questions about passages that were judged.
    """
    questions = lines_of(folder / "questions.jsonl.xz")
    judged = lines_of(folder / "judged.jsonl.xz")
    measured: list[dict[str, Any]] = []
    held = set((held_out or "").split(","))
    if "judged" in held:
        measured, judged = judged, []
    else:
        measured = [j for j in judged if j["collection"] in held]
        judged = [j for j in judged if j["collection"] not in held]
    passages = {p["text"][:200] for j in measured for p in j["passages"]}
    asked = {j["question"] for j in measured}
    questions = [
        q
        for q in questions
        if q["passage"][:200] not in passages
        and q["question"] not in asked
        and q["kind"] not in held
    ]
    squad = lines_of(folder / "squad.jsonl.xz")
    near = {
        row["question"]: [tuple(one) for one in row["near"]]
        for row in lines_of(folder / "near.jsonl.xz")
    }
    return (
        Data(
            questions,
            judged,
            lines_of(folder / "public.jsonl.xz"),
            [row for row in squad if row["half"] == 0],
            [row for row in squad if row["half"] == 1],
            near,
        ),
        measured,
    )


def own_rows(data: Data, rng: random.Random, options: argparse.Namespace) -> list[Row]:
    """Written questions with their passage, its neighbours, swaps, and strangers."""
    rows: list[Row] = []
    everyone = [q["question"] for q in data.questions]
    for q in data.questions:
        question, quote = q["question"], q["answer"]
        title, passage = q["title"], q["passage"]
        at = passage.find(quote) if quote else -1
        span = (at, at + len(quote)) if at >= 0 else (() if quote is None else None)
        label = float(quote is not None)
        rows.append(Row(question, title, passage, label, label, span))
        near = data.near.get(question, [])
        if quote:
            # The nearest neighbours may answer too; nobody has read them.
            some = rng.sample(near[2:], min(options.neighbours, len(near[2:])))
            rows += [Row(question, *other, 0.0, 0.0, (), 0.7) for other in some]
            if rng.random() < options.swaps:
                changed = swapped(question, everyone, rng)
                if changed:
                    rows.append(Row(changed, title, passage, 0.0, 0.0, (), 0.7))
        elif near and rng.random() < 0.3:
            rows.append(Row(question, *rng.choice(near[-4:]), 0.0, 0.0, (), 0.7))
        if rng.random() < 0.1:
            stranger = rng.choice(data.questions)
            rows.append(
                Row(question, stranger["title"], stranger["passage"], 0.0, 0.0, ())
            )
    return rows


def judged_rows(data: Data) -> list[Row]:
    """Judged pairs: grade 3 answers, 2 is worth a footnote."""
    return [
        Row(
            q["question"],
            p["title"],
            p["text"],
            float(p["grade"] >= 2),
            float(p["grade"] == 3),
            None if p["grade"] >= 2 else (),
        )
        for q in data.judged
        for p in q["passages"]
    ]


def public_rows(data: Data, rng: random.Random, at_most: int) -> list[Row]:
    """Rows of public sets, and the halves of SQuAD 2 that are for training."""
    rows: list[Row] = []
    for r in rng.sample(data.public, min(at_most, len(data.public))):
        span = tuple(r["span"]) if r["span"] else (None if r["answers"] else ())
        label = float(r["answers"])
        rows.append(Row(r["question"], "", r["passage"], label, label, span))
        if r["answers"] and r["neighbours"] and rng.random() < 0.7:
            other = rng.choice(r["neighbours"])
            rows.append(Row(r["question"], "", other, 0.0, 0.0, ()))
    for r in data.squad:
        label = float(bool(r["span"]))
        rows.append(
            Row(r["question"], "", r["passage"], label, label, tuple(r["span"]))
        )
    return rows


# --- encoding ------------------------------------------------------------------------


class Encoded(NamedTuple):
    """Rows as tokens, one after the other; row n is ``ids[at[n]:at[n + 1]]``.

    *first* is the place of the passage's first token within the row, *spans* the
    places of the answer's first and last token (0, 0 for none), *known* whether that
    is known.
    """

    ids: np.ndarray
    at: np.ndarray
    first: np.ndarray
    spans: np.ndarray
    known: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """How many tokens each row has."""
        return np.diff(self.at)


class Tokens:
    """Turns rows into tokens: the question, then the passage under its title."""

    def __init__(self, path: Path) -> None:
        self.tokenizer = Tokenizer.from_file(str(path))
        self.tokenizer.enable_truncation(LONGEST, strategy="only_second")
        self.tokenizer.no_padding()

    def pairs(self, rows: Sequence[Row]) -> list[Any]:
        """Return the tokenizer's own encodings."""
        return self.tokenizer.encode_batch(
            [
                (r.question[:600], headed(r.title, r.passage) + r.passage[:2000])
                for r in rows
            ]
        )

    def __call__(self, rows: Sequence[Row]) -> Encoded:
        """Return all rows as tokens."""
        flat, lengths, first, spans, known = [], [], [], [], []
        for start in range(0, len(rows), 20_000):
            part = rows[start : start + 20_000]
            for row, found in zip(part, self.pairs(part), strict=True):
                ids = found.ids
                begins = found.sequence_ids.index(1) if 1 in found.sequence_ids else 0
                span = (0, 0)
                if row.span:
                    head = len(headed(row.title, row.passage))
                    a, b = row.span[0] + head, row.span[1] + head
                    one = next(
                        (
                            found.char_to_token(c, 1)
                            for c in range(a, b)
                            if found.char_to_token(c, 1) is not None
                        ),
                        None,
                    )
                    last = next(
                        (
                            found.char_to_token(c, 1)
                            for c in range(b - 1, a - 1, -1)
                            if found.char_to_token(c, 1) is not None
                        ),
                        None,
                    )
                    if one is not None and last is not None:
                        span = (one, last)
                flat.append(np.array(ids, np.int32))
                lengths.append(len(ids))
                first.append(begins)
                spans.append(span)
                known.append(
                    float(row.span is not None and (not row.span or span[0] > 0))
                )
        at = np.concatenate(([0], np.cumsum(lengths)))
        return Encoded(
            np.concatenate(flat), at, np.array(first), np.array(spans), np.array(known)
        )


def headed(title: str, passage: str) -> str:
    """Return what stands before a passage: its title, unless it begins with it."""
    return "" if not title or title in passage[: len(title) + 20] else f"{title}\n"


def padded(rows: Encoded, batch: Sequence[int]) -> list[torch.Tensor]:
    """Return ids, attention and passage mask of a batch."""
    lengths = rows.lengths[batch]
    width = int(lengths.max())
    ids, passage = np.zeros((2, len(batch), width), np.int64)
    attention = (np.arange(width) < lengths[:, None]).astype(np.int64)
    for n, row in enumerate(batch):
        ids[n, : lengths[n]] = rows.ids[rows.at[row] : rows.at[row + 1]]
        # The last token closes the pair and belongs to the passage for BERT.
        passage[n, rows.first[row] : lengths[n]] = 1
    tensors = (torch.from_numpy(each) for each in (ids, attention, passage))
    return [
        each.pin_memory().to(DEVICE, non_blocking=True) if DEVICE == "cuda" else each
        for each in tensors
    ]


def batched(lengths: np.ndarray, tokens: int, rng: random.Random) -> list[list[int]]:
    """Return batches of rows of like length with about *tokens* tokens each."""
    jitter = np.array([rng.random() * 24 for _ in lengths])
    order = np.argsort(lengths + jitter).tolist()
    batches: list[list[int]] = [[]]
    longest = 0
    for row in order:
        longest = max(longest, int(lengths[row]))
        if batches[-1] and longest * (len(batches[-1]) + 1) > tokens:
            batches.append([])
            longest = int(lengths[row])
        batches[-1].append(row)
    rng.shuffle(batches)
    return batches


# --- training ------------------------------------------------------------------------


def fit(
    model: Reader,
    tokens: Tokens,
    make_rows: Callable[[int], list[Row]],
    options: argparse.Namespace,
) -> None:
    """Train on the rows of every epoch; rows that come again are not encoded again."""
    rng = random.Random(options.seed)
    named = [(n, w) for n, w in model.named_parameters() if w.requires_grad]
    heads = [w for n, w in named if not n.startswith("encoder")]
    body = [w for n, w in named if n.startswith("encoder")]
    groups = [{"params": body}, {"params": heads, "lr": 3 * options.rate}]
    optimizer = torch.optim.AdamW(
        groups, lr=options.rate, weight_decay=0.01, fused=DEVICE == "cuda"
    )
    schedule, rows, encoded = None, None, None
    for epoch in range(options.epochs):
        began, fresh = time.time(), make_rows(epoch)
        if fresh is not rows:
            rows, encoded = fresh, tokens(fresh)
            labels = np.array([(r.worth, r.answers) for r in rows], np.float32)
            weights = np.array([r.weight for r in rows], np.float32)
        batches = batched(encoded.lengths, options.tokens, rng)
        if schedule is None:
            steps = options.epochs * len(batches) * 1.02
            schedule = torch.optim.lr_scheduler.LambdaLR(
                optimizer, partial(pace, steps)
            )
        model.train()
        total = torch.zeros((), device=DEVICE)
        prepared = time.time()
        for done, batch in enumerate(batches, start=1):
            ids, attention, passage = padded(encoded, batch)
            label = torch.from_numpy(labels[batch]).to(DEVICE, non_blocking=True)
            weight = torch.from_numpy(weights[batch]).to(DEVICE, non_blocking=True)
            span = torch.from_numpy(encoded.spans[batch]).to(DEVICE, non_blocking=True)
            known = torch.from_numpy(encoded.known[batch]).to(DEVICE).float() * weight
            with torch.autocast(DEVICE, torch.bfloat16):
                judged, starts, ends = model(ids, attention, passage)
            loss = bce(judged.float(), label, reduction="none").mean(1)
            loss = (loss * weight).sum() / weight.sum()
            spans = cross_entropy(starts.float(), span[:, 0], reduction="none")
            spans = spans + cross_entropy(ends.float(), span[:, 1], reduction="none")
            loss = loss + options.span * (spans * known).sum() / known.sum().clamp(1)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad(set_to_none=True)
            total += loss.detach()
            if done % 500 == 0:
                rate = (time.time() - prepared) / done
                left = rate * (len(batches) - done)
                print(f"    {done} of {len(batches)}, {left:.0f} s left", flush=True)
        print(
            f"  epoch {epoch + 1}: {len(rows)} rows, {len(batches)} steps, loss "
            f"{float(total) / len(batches):.4f}, {prepared - began:.0f} s to prepare, "
            f"{time.time() - prepared:.0f} s to train",
            flush=True,
        )


def pace(steps: float, step: int) -> float:
    """Return the share of the rate at a step: up for a while, then down to nothing."""
    return min(1.0, (step + 1) / (0.06 * steps)) * max(0.01, 1 - step / steps)


class Reading(NamedTuple):
    """What the model reads of a pair: two logits, and its best span."""

    worth: float
    answers: float
    margin: float
    span: tuple[int, int]


@torch.no_grad()
def read(
    model: Reader, tokens: Tokens, pairs: Sequence[tuple[str, str, str]]
) -> list[Reading]:
    """Return a reading of each (question, title, passage)."""
    model.eval()
    rows = [Row(*pair, 0.0, 0.0, None) for pair in pairs]
    encoded = tokens(rows)
    out: list[Reading] = [Reading(0.0, 0.0, 0.0, (0, 0))] * len(pairs)
    for batch in batched(encoded.lengths, 96_000, random.Random(0)):
        ids, attention, passage = padded(encoded, batch)
        with torch.autocast(DEVICE, torch.bfloat16):
            judged, starts, ends = model(ids, attention, passage)
        judged, starts, ends = judged.float(), starts.float(), ends.float()
        none = starts[:, 0] + ends[:, 0]
        # The best span of at most ANSWER_TOKENS tokens, by its two ends.
        best = torch.full_like(none, -1e9)
        where = torch.zeros(len(batch), 2, dtype=torch.long, device=DEVICE)
        for length in range(min(ANSWER_TOKENS, starts.shape[1] - 1)):
            sums = starts[:, 1 : starts.shape[1] - length] + ends[:, 1 + length :]
            value, place = sums.max(1)
            better = value > best
            best = torch.where(better, value, best)
            found = torch.stack((place + 1, place + 1 + length), 1)
            where = torch.where(better.unsqueeze(1), found, where)
        logits = judged.cpu().tolist()
        margins, places = (best - none).cpu().tolist(), where.cpu().tolist()
        for n, (worth, answers), margin, span in zip(
            batch, logits, margins, places, strict=True
        ):
            out[n] = Reading(worth, answers, margin, tuple(span))
    return out


def quoted(tokens: Tokens, pair: tuple[str, str, str], span: tuple[int, int]) -> str:
    """Return the words of a passage between two tokens."""
    [found] = tokens.pairs([Row(*pair, 0.0, 0.0, None)])
    head = len(headed(*pair[1:]))
    start = found.offsets[span[0]][0] - head
    end = found.offsets[span[1]][1] - head
    return pair[2][max(0, start) : max(0, end)]


def words_of(text: str) -> list[str]:
    """Return the words of a text in small letters."""
    return re.findall(r"\w{2,}", text.lower())


# --- measuring -----------------------------------------------------------------------


def auroc(values: Iterable[float], labels: Iterable[bool]) -> float:
    """Return how often a positive is above a negative, ties counting half."""
    values, labels = np.asarray(list(values), float), np.asarray(list(labels), bool)
    if labels.all() or not labels.any():
        return float("nan")
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    positives = labels.sum()
    above = ranks[labels].sum() - positives * (positives + 1) / 2
    return float(above / (positives * (len(labels) - positives)))


UNRELATED = (
    "",
    (
        "The choir meets on Thursdays in the parish hall. New singers are welcome "
        "after a short audition; the concert takes place on the second Sunday of May."
    ),
)


def measured_on(
    model: Reader, tokens: Tokens, judged: list[dict[str, Any]], out: Path
) -> dict[str, float]:
    """Return AUROCs on judged questions, by pair and by question."""
    pairs = [
        (q["question"], p["title"], p["text"]) for q in judged for p in q["passages"]
    ]
    found = read(model, tokens, pairs)
    worth = [p["grade"] >= 2 for q in judged for p in q["passages"]]
    full = [p["grade"] == 3 for q in judged for p in q["passages"]]
    shown = [
        (p.get("signals") or {}).get("relevance", 0.5)
        for q in judged
        for p in q["passages"]
    ]
    ends = np.cumsum([len(q["passages"]) for q in judged])[:-1]
    best = [max(part) for part in np.split(np.array([f.worth for f in found]), ends)]
    before = [part.max() for part in np.split(np.array(shown), ends)]
    answerable = [q["answerable"] for q in judged]
    control = read(model, tokens, [(q["question"], *UNRELATED) for q in judged])
    odds = [math.log(max(r, 1e-4) / (1 - min(r, 1 - 1e-4))) for r in shown]
    both = [f.worth + 0.5 * o for f, o in zip(found, odds, strict=True)]
    np.savez_compressed(
        out,
        found=np.array([f[:3] for f in found]),
        control=[c.worth for c in control],
    )
    by_kind = {}
    for kind in sorted({q["collection"] for q in judged}):
        mine = [n for n, q in enumerate(judged) if q["collection"] == kind]
        by_kind[f"questions:{kind}"] = auroc(
            [best[n] for n in mine], [answerable[n] for n in mine]
        )
    return {
        "pairs": auroc([f.worth for f in found], worth),
        "pairs_both": auroc(both, worth),
        "pairs_relevance": auroc(shown, worth),
        "full": auroc([f.answers for f in found], full),
        "pairs_span": auroc([f.margin for f in found], worth),
        "questions": auroc(best, answerable),
        "questions_relevance": auroc(before, answerable),
        "control": auroc([c.worth for c in control], answerable),
        **by_kind,
    }


def measured_on_squad(
    model: Reader, tokens: Tokens, rows: list[dict[str, Any]]
) -> dict[str, float]:
    """Return how well left-out articles' questions are told apart, and the spans."""
    found = read(model, tokens, [(r["question"], "", r["passage"]) for r in rows])
    has = np.array([bool(r["span"]) for r in rows])
    scores = np.array([f.worth for f in found])
    bar = np.quantile(scores[has], 0.10)
    overlaps = [
        overlap(
            quoted(tokens, (r["question"], "", r["passage"]), f.span),
            r["passage"][slice(*r["span"])],
        )
        for r, f in zip(rows, found, strict=True)
        if r["span"]
    ]
    return {
        "squad": auroc(scores, has),
        "squad_unanswerable_cited": float((scores[~has] >= bar).mean()),
        "squad_f1": float(np.mean(overlaps)),
    }


def overlap(one: str, other: str) -> float:
    """Return the F1 of the words that two quotes share."""
    a, b = words_of(one), words_of(other)
    common = sum(min(a.count(word), b.count(word)) for word in set(a))
    return 2 * common / (len(a) + len(b)) if common else 0.0


def measured_on_own(
    model: Reader, tokens: Tokens, rows: list[dict[str, Any]]
) -> dict[str, float]:
    """Return AUROC and span overlap on written questions that were left out."""
    found = read(
        model, tokens, [(r["question"], r["title"], r["passage"]) for r in rows]
    )
    has = [r["answer"] is not None for r in rows]
    overlaps = [
        overlap(
            quoted(tokens, (r["question"], r["title"], r["passage"]), f.span),
            r["answer"],
        )
        for r, f in zip(rows, found, strict=True)
        if r["answer"]
    ]
    return {
        "own": auroc([f.worth for f in found], has),
        "own_f1": float(np.mean(overlaps)) if overlaps else float("nan"),
    }


# --- the run -------------------------------------------------------------------------


def rows_of(data: Data, rng: random.Random, options: argparse.Namespace) -> list[Row]:
    """Return everything that is labelled, with fresh negatives."""
    rows = own_rows(data, rng, options) + judged_rows(data) * options.repeat_judged
    return rows + public_rows(data, rng, options.public)


def saved(model: Reader, path: Path) -> None:
    """Write the weights without the words, which stay MiniLM's."""
    heads = ("dense", "judge", "span")
    weights = model.encoder.exported() | {
        name: weight.detach().float().cpu()
        for name, weight in model.named_parameters()
        if name.split(".")[0] in heads
    }
    np.savez(path, **{name: weight.numpy() for name, weight in weights.items()})


def main() -> None:
    """Train as the command line says, and print the table of results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--name", default="reader")
    parser.add_argument("--hold-out", help="kinds that are only measured on")
    parser.add_argument("--own", type=float, default=1.0, help="share of the questions")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--rate", type=float, default=1.5e-4)
    parser.add_argument("--tokens", type=int, default=6_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--span", type=float, default=0.25)
    parser.add_argument("--repeat-judged", type=int, default=1)
    parser.add_argument("--public", type=int, default=8_000)
    parser.add_argument("--neighbours", type=int, default=1)
    parser.add_argument("--swaps", type=float, default=0.2)
    options = parser.parse_args()
    began, rng = time.time(), random.Random(options.seed)
    torch.manual_seed(options.seed)
    data, measured = loaded(options.folder, options.hold_out)
    # Some passages are left out, to measure spans on.
    ids = sorted({q["passage_id"] for q in data.questions})
    left = set(random.Random(5).sample(ids, len(ids) // 25))
    own_left = [q for q in data.questions if q["passage_id"] in left]
    kept = [q for q in data.questions if q["passage_id"] not in left]
    if options.own < 1.0:
        some = sorted({q["passage_id"] for q in kept})
        chosen = set(random.Random(6).sample(some, int(options.own * len(some))))
        kept = [q for q in kept if q["passage_id"] in chosen]
    data = data._replace(questions=kept)
    tokens = Tokens(options.model / "tokenizer.json")
    print(
        f"{options.name}: {len(kept)} questions, {len(data.judged)} judged", flush=True
    )
    model = Reader(options.model).to(DEVICE)
    fit(model, tokens, lambda _: rows_of(data, rng, options), options)
    options.out.mkdir(parents=True, exist_ok=True)
    saved(model, options.out / f"{options.name}.npz")
    results: dict[str, Any] = {}
    if measured:
        logits = options.out / f"{options.name}-logits.npz"
        results |= measured_on(model, tokens, measured, logits)
    results |= measured_on_squad(model, tokens, data.squad_measured)
    results |= measured_on_own(model, tokens, own_left)
    results["seconds"] = round(time.time() - began)
    shown = {k: round(v, 3) if isinstance(v, float) else v for k, v in results.items()}
    print(options.name, json.dumps(shown), flush=True)


if __name__ == "__main__":
    main()
