"""Why some calibration targets are missed, and what was tried to meet them.

Run ``python benchmarks/bounds.py --cache FOLDER`` after ``calibrate.py`` with the
same cache; the tables are those of ``docs/results/calibration.md``. Every figure
comes from a fit without the set, except where labels of the set are used on purpose
to measure what they are worth.
"""

import argparse
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import calibrate as sets
import numpy as np
from numpy.typing import NDArray

from kept.evaluation.calibrate.fit import probability
from kept.evaluation.calibrate.pairs import Pairs
from kept.evaluation.calibrate.refit import refitted
from kept.evaluation.calibrate.shipped_bars import Bars, shipped_bars
from kept.evaluation.probability_scores import calibration_error
from kept.kernel.calibration import Calibration
from kept.kernel.signals import BEST, Floats
from kept.models.embedders import checked

FAR = ("cranfield", "scifact", "nfcorpus")
RESAMPLES = 1000
DRAWS = 5
SIZES = (20, 50, 100)
NOTHING_NEAR = 0.3
NAME = "minilm"
WIDE = "clinc150_retrieval"
WEIGHTS = (0.1, 1.0, 10.0)

# Cosine from and below, coverage from and below.
CELLS = ((0.3, 0.4, 0.0, 0.15), (0.5, 0.6, 0.15, 0.45), (0.6, 0.7, 0.3, 0.6))

# Which of the 600 web questions are about the life sciences, by reading them all.
LIFE_SCIENCES = (
    *(36, 47, 72, 102, 123, 141, 142, 144, 178, 181, 194, 205, 249, 251, 256, 262, 279),
    *(344, 348, 349, 358, 392, 406, 407, 408, 427, 429, 454, 494, 500, 545, 571, 585),
)

TRIED: Mapping[str, sets.Steps] = {
    "centroid": (-0.05, 0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4),
    "above_average": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7),
    "z": (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0),
    "known": (0.0, 0.25, 0.5, 0.75, 0.9, 1.0),
    "rarest": (0.0, 0.2, 0.4, 0.6, 0.8, 0.95),
    "mass": (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0),
    "agreement": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8),
    "both": (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6),
}


def left_out(
    measured: sets.Measured, name: str, more: Mapping[str, sets.Steps] | None = None
) -> Calibration:
    """Return a fit on all sets but one, optionally with *more* signals."""
    others = [each for each in sets.SETS if each != name]
    return sets.fit_on(NAME, measured, others, more)


def far(measured: sets.Measured) -> None:
    """Print how well far questions are refused, and what the labels allow."""
    print(
        "| left out | far, AUROC | 95 % | every | found | no life sciences "
        "| life sciences | of the 20 highest | bound | without the lost "
        "| and no life sciences |"
    )
    life = np.isin(np.arange(600), LIFE_SCIENCES)
    for name in FAR:
        calibration = left_out(measured, name)
        asked = measured.asked(name)
        inside = sets.best(calibration, asked)
        outside = sets.best(calibration, measured.probed(name, "nq_open"))
        every = measured.probed(name, sets.EVERY_WEB_QUESTION)
        found = sets.reachable(measured.judged(name, "test"))
        lost = nothing_to_hold(asked)
        highest = np.argsort(-outside, kind="stable")[:20]
        apart = [
            sets.separated(inside, sets.best(calibration, every)),
            sets.separated(inside[found], outside),
            sets.separated(inside, outside[~life]),
            sets.separated(inside, outside[life]),
            float(life[highest].mean()),
            sets.separated(np.where(lost, inside, 1.0), outside),
            sets.separated(inside[~lost], outside),
            sets.separated(inside[~lost], outside[~life]),
        ]
        low, high = resampled(inside, outside)
        print(
            f"| {name} | {sets.separated(inside, outside):.3f} "
            f"| {low:.3f} to {high:.3f} | "
            + " | ".join(f"{each:.3f}" for each in apart)
            + " |"
        )
        for question in np.array(asked.questions)[lost].tolist():
            print(f"    nothing to hold on to: {question}")


def resampled(inside: Floats, outside: Floats) -> tuple[float, float]:
    """Return the interval that holds 95 % of resampled AUROCs."""
    dice = np.random.default_rng(sets.SAMPLE)
    values = [
        sets.separated(dice.choice(inside, len(inside)), dice.choice(outside, 600))
        for _ in range(RESAMPLES)
    ]
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)


def nothing_to_hold(pairs: Pairs) -> NDArray[np.bool_]:
    """Mark the questions that share no word with a passage and are near none."""
    held = np.zeros((2, len(pairs.questions)))
    np.maximum.at(held[0], pairs.question, pairs.signals["coverage"])
    np.maximum.at(held[1], pairs.question, pairs.signals["cosine"])
    lost: NDArray[np.bool_] = (held[0] == 0.0) & (held[1] < NOTHING_NEAR)
    return lost


def error(promised: Floats, truths: Floats) -> float:
    """Return the expected calibration error."""
    return calibration_error(promised.tolist(), (truths > 0).tolist()) or 0.0


def priors(measured: sets.Measured) -> None:
    """Print the calibration error after correcting the share that is relevant."""
    print(
        "| left out | relevant | ECE | share guessed by EM | ECE with it "
        "| ECE with the share known | ECE of questions |"
    )
    for name in sets.SETS:
        calibration = left_out(measured, name)
        pairs = measured.judged(name, "test")
        promised = calibration.probabilities(pairs.signals)
        guessed = guessed_share(promised, fitted_share(measured, name))
        known = known_share(promised, float(pairs.truths.mean()))
        print(
            f"| {name} | {pairs.truths.mean():.3f} "
            f"| {error(promised, pairs.truths):.3f} | {guessed.mean():.3f} "
            f"| {error(guessed, pairs.truths):.3f} "
            f"| {error(known, pairs.truths):.3f} "
            f"| {error_of_questions(calibration, pairs):.3f} |"
        )


def error_of_questions(calibration: Calibration, pairs: Pairs) -> float:
    """Return the error of the chance that one of the best three is relevant."""
    relevance = calibration.probabilities(pairs.signals)
    order = np.lexsort((-relevance, pairs.question))
    asked = pairs.question[order]
    best = order[np.arange(len(order)) - np.searchsorted(asked, asked) < BEST]
    true = np.zeros(len(pairs.questions))
    np.maximum.at(true, pairs.question[best], pairs.truths[best])
    return error(sets.best(calibration, pairs), true)


def fitted_share(measured: sets.Measured, name: str) -> float:
    """Return the share of relevant pairs in a fit without the set *name*."""
    shares, weights = [], []
    for each, judged in sets.SETS.items():
        for split in judged.splits:
            shares.append(measured.judged(each, split).truths.mean())
            weights.append((each != name) * judged.weight / len(judged.splits))
    return float(np.average(shares, weights=weights))


def guessed_share(promised: Floats, share: float) -> Floats:
    """Correct for the share under which the predictions are consistent, without labels.

    Expectation maximisation over the unknown share (Saerens, Latinne and
    Decaestecker, 2002). It is right if relevant pairs look the same in all sets.
    """
    found, corrected = share, promised
    for _ in range(500):
        true = promised * found / share
        corrected = true / (true + (1 - promised) * (1 - found) / (1 - share))
        found = float(corrected.mean())
    return corrected


def known_share(promised: Floats, share: float) -> Floats:
    """Shift all log-odds by the same amount until their mean is the true *share*."""
    odds = np.log(promised) - np.log1p(-promised)
    low, high = -10.0, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        above = probability(odds + middle).mean() >= share
        low, high = (low, middle) if above else (middle, high)
    return probability(odds + low)


def notions(measured: sets.Measured) -> None:
    """Print the relevance of the same signals in each set, and errors of joint fits."""
    judged = {name: measured.judged(name, "test") for name in sets.SETS}
    print("| | " + " | ".join(sets.SETS) + " |")
    for cell in CELLS:
        shares = [pairs.truths[within(cell, pairs)].mean() for pairs in judged.values()]
        print(f"| relevant, {cell} | " + " | ".join(f"{s:.3f}" for s in shares) + " |")
    for weight in WEIGHTS:
        calibration = sets.fit_on(
            NAME, measured, list(sets.SETS), weights={WIDE: weight}
        )
        errors = [
            error(calibration.probabilities(pairs.signals), pairs.truths)
            for pairs in judged.values()
        ]
        print(f"| ECE, {WIDE} weighs {weight:g} | ", end="")
        print(" | ".join(f"{each:.3f}" for each in errors) + " |")


def within(cell: Sequence[float], pairs: Pairs) -> NDArray[np.bool_]:
    """Mark the pairs whose cosine and coverage are in a *cell*."""
    low, high, least, most = cell
    near, held = pairs.signals["cosine"], pairs.signals["coverage"]
    inside: NDArray[np.bool_] = (
        (near >= low) & (near < high) & (held >= least) & (held < most)
    )
    return inside


def refits(measured: sets.Measured) -> None:
    """Print the effect of judging a few of your own questions on error and refusal."""
    print("| left out | judged | bar | ECE | in scope | out of scope |")
    for name in sets.SETS:
        start = left_out(measured, name)
        pairs, asked = measured.judged(name, "test"), measured.asked(name)
        probes = [measured.probed(c, s) for c, s, _ in sets.PROBES if c == name]
        unmoved = Used(start, pairs, asked, shipped_bars())
        print_row(f"{name} | none | shipped", [unmoved], probes)
        for size in SIZES:
            drawn = list(draws(pairs, asked, start, size))
            as_shipped = [replace(each, bars=shipped_bars()) for each in drawn]
            print_row(f"{name} | {size} | shipped", as_shipped, probes)
            print_row(f"{name} | {size} | carried", drawn, probes)


@dataclass(frozen=True)
class Used:
    """A calibration and its thresholds, with the questions that it was not fitted on.

    *rest* are their judged pairs, *asked* all pairs that a search recalls for them.
    """

    calibration: Calibration
    rest: Pairs
    asked: Pairs
    bars: Bars

    def error(self) -> float:
        """Return the expected calibration error on the held-out pairs."""
        promised = self.calibration.probabilities(self.rest.signals)
        return error(promised, self.rest.truths)

    def answered(self, pairs: Pairs) -> float:
        """Return the share of the questions with a passage above both thresholds."""
        relevance = self.calibration.probabilities(pairs.signals)
        top = np.zeros(len(pairs.questions))
        np.maximum.at(top, pairs.question, relevance)
        chance = sets.best(self.calibration, pairs)
        above = (chance >= self.bars.refuse_below) & (top >= self.bars.relevance_floor)
        return float(above[np.unique(pairs.question)].mean())


def draws(pairs: Pairs, asked: Pairs, start: Calibration, size: int) -> Iterator[Used]:
    """Yield refits on a few questions, each with the pairs of the other questions."""
    own = {"date": sets.DATE, "name": "own", "source": "a draw of questions"}
    for draw in range(DRAWS):
        order = np.random.default_rng(draw).permutation(len(pairs.questions))
        mine = np.isin(pairs.question, order[:size])
        refit = refitted(pairs.where(mine), start, sets.EMBEDDERS[NAME], **own)
        others = asked.where(~np.isin(asked.question, order[:size]))
        yield Used(refit.calibration, pairs.where(~mine), others, refit.bars)


def print_row(head: str, used: Sequence[Used], probes: Sequence[Pairs]) -> None:
    """Print a row of means over draws."""
    bar = np.mean([each.bars.refuse_below for each in used])
    inside = np.mean([each.answered(each.asked) for each in used])
    outside = [np.mean([each.answered(probe) for each in used]) for probe in probes]
    wrong = np.mean([each.error() for each in used])
    print(
        f"| {head}, {bar:.3f} | {wrong:.3f} | {inside:.1%} | "
        + " / ".join(f"{share:.1%}" for share in outside)
        + " |"
    )


class Enriched(sets.Measured):
    """Pairs with additional signals."""

    def judged(self, name: str, split: str) -> Pairs:
        """Return the pairs of a split, labelled."""
        return self._with_tried(name, split, super().judged(name, split))

    def asked(self, name: str) -> Pairs:
        """Return all pairs that a search recalls for the test questions of a set."""
        return self._with_tried(name, "test", super().asked(name))

    def probed(self, corpus: str, source: str) -> Pairs:
        """Return the pairs of questions that *corpus* cannot answer."""
        part = f"probe-{source}"
        return self._with_tried(corpus, part, super().probed(corpus, source))

    def _with_tried(self, name: str, part: str, pairs: Pairs) -> Pairs:
        table = about_questions(self, name, part, pairs)[pairs.question]
        average, spread, words, known, rarest = table.T
        cosine = np.clip(pairs.signals["cosine"], 0.0, 1.0)
        tried = {
            "centroid": average,
            "above_average": pairs.signals["cosine"] - average,
            "z": (pairs.signals["cosine"] - average) / spread,
            "known": known,
            "rarest": rarest,
            "mass": pairs.signals["focus"] * words,
            "agreement": np.sqrt(cosine * pairs.signals["coverage"]),
            "both": np.minimum(cosine, pairs.signals["focus"]),
        }
        return replace(pairs, signals={**pairs.signals, **tried})


def signals(measured: sets.Measured) -> None:
    """Print the figures with one more signal: AUROC of refusal, ECE of pairs."""
    enriched = Enriched(measured.folder.parent, measured.embedder)
    heads = [f"{corpus}, {kind}" for corpus, _, kind in sets.PROBES]
    print("| signal added | " + " | ".join([*heads, *sets.SETS]) + " |")
    for signal in ("none", *TRIED):
        more = {} if signal == "none" else {signal: TRIED[signal]}
        fits = {name: left_out(enriched, name, more) for name in sets.SETS}
        judged = {name: enriched.judged(name, "test") for name in sets.SETS}
        apart = [
            sets.separated(
                sets.best(fits[corpus], enriched.asked(corpus)),
                sets.best(fits[corpus], enriched.probed(corpus, source)),
            )
            for corpus, source, _ in sets.PROBES
        ]
        errors = [
            error(fits[name].probabilities(pairs.signals), pairs.truths)
            for name, pairs in judged.items()
        ]
        cells = [*(f"{each:.4f}" for each in apart), *(f"{e:.3f}" for e in errors)]
        print(f"| {signal} | " + " | ".join(cells) + " |")


def about_questions(
    measured: sets.Measured, name: str, part: str, pairs: Pairs
) -> Floats:
    """Return signals of each question that depend on the whole collection.

    Mean and spread of the cosines of all chunks, the number of words, the share of
    their weight that the collection has, and the rarest of the words that it has.
    """
    path = measured.folder / f"{name}-{part}-questions.pickle"
    if path.exists():
        found: Floats = pickle.loads(path.read_bytes())  # noqa: S301 -- our own
        return found
    table = []
    with measured.base(name) as base, base.store.shelf(base.tenant) as shelf:
        texts = pairs.questions
        vectors = checked(base.embedder.embed(texts), texts, base.embedder.id)
        for text, vector in zip(texts, vectors, strict=True):
            cosines = shelf.dense_leg(vector, shelf.chunks, None).scores
            terms = shelf.weigh(text)
            held = np.where(terms.known > 0, terms.rarity, 0.0)
            most = np.log1p((terms.chunks + 0.5) / 0.5)
            table.append(
                (
                    cosines.mean(),
                    cosines.std(),
                    len(terms.words),
                    held.sum() / (terms.mass or 1.0),
                    held.max(initial=0.0) / most,
                )
            )
    path.write_bytes(pickle.dumps(np.array(table)))
    return np.array(table)


def main() -> None:
    """Print all five tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", type=Path, required=True)
    measured = sets.Measured(parser.parse_args().cache, NAME)
    for part in (far, priors, notions, refits, signals):
        print(f"\n{part.__doc__}\n")
        part(measured)


if __name__ == "__main__":
    main()
