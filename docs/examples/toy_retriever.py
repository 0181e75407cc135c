"""A typical retriever: BM25 over a small handbook, scaled so that the best score is 1.

docs/how-to/audit-a-retriever.md audits it in place of yours.
"""

import math
import re
from collections import Counter

HANDBOOK = """\
The Leeds office opens at eight and closes at six from Monday to Thursday.
The Kiel office opens at nine and closes at five on every working day.
The Graz office opens at ten and closes at four, except in August.
Employees have 28 days of leave a year, and five more after ten years.
Leave is asked for in the portal at least two weeks before it begins.
Leave that is not taken by the end of March is lost without payment.
A lost laptop is reported to the security desk within one hour.
A lost laptop is reported to the security desk within one hour!
Travel by train is booked in second class through the travel desk.
Travel by plane needs the consent of the head of the department.
Invoices are paid within thirty days of their arrival in the office.
The pump of model TW-C235 costs 410 euro and is delivered in a week.
The pump of model TW-C240 costs 530 euro and is delivered in a month.
Visitors sign in at the front desk and wear their badge in the building.
Visitors sign in at the front desk and wear their badge in the building.
The canteen serves lunch from half past eleven until two in the afternoon.
""".splitlines()
WORDS = [re.findall(r"\w+", line.lower()) for line in HANDBOOK]
AVERAGE = sum(map(len, WORDS)) / len(WORDS)


def bm25(question: str, words: list[str]) -> float:
    """Return the BM25 score of a line, stop words included."""
    counts = Counter(words)
    score = 0.0
    for word in re.findall(r"\w+", question.lower()):
        holding = sum(word in other for other in WORDS)
        rarity = math.log(1 + (len(WORDS) - holding + 0.5) / (holding + 0.5))
        damped = counts[word] + 1.2 * (0.25 + 0.75 * len(words) / AVERAGE)
        score += rarity * counts[word] * 2.2 / damped
    return score


def search(question: str, k: int = 5) -> list[dict[str, object]]:
    """Return the k best lines, with scores scaled to 0..1."""
    scored = [(bm25(question, words), place) for place, words in enumerate(WORDS)]
    best = sorted(scored, key=lambda pair: -pair[0])[:k]
    low, high = best[-1][0], best[0][0]
    return [
        {
            "id": place,
            "text": HANDBOOK[place],
            "score": (score - low) / ((high - low) or 1.0),
        }
        for score, place in best
    ]
