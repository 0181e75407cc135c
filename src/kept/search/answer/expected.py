"""Expected answers: the kind of thing that a question asks for."""

import re

_AMOUNT = re.compile(
    r"\b(?:how\s+(?:many|much|long|old|far|big|large|high|fast|late|early)"
    r"|what\s+(?:percentage|share|number|amount)"
    r"|wie\s*(?:viele?|lange|hoch|alt|oft|weit)|combien|cu[\u00e1a]nt[oa]s?"
    r"|quant[oaie]s?|hoeveel)\b",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"^\W*(?:when|what\s+(?:time|date|day)|by\s+when|until\s+when|wann|bis\s+wann"
    r"|quand|cu[\u00e1a]ndo|wanneer)\b",
    re.IGNORECASE,
)
_COUNTED = (
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen"
    r"|twenty|thirty|forty|fifty|sixty|hundred|thousand|million|half|third|quarter"
    r"|once|twice|single|dozen|none|unlimited|no\s+limit|an?\s+(?:hour|day|week|month"
    r"|year|minute)|ein\w*|zwei|drei|vier|f\u00fcnf|sechs|sieben|acht|neun|zehn|zw\u00f6lf"
    r"|une?|deux|trois|quatre|cinq|six|sept|huit|neuf|dix|un[oa]?|dos|tres|cuatro"
    r"|cinco|seis|siete|ocho|nueve|diez)\b"
    r"|[\u4e00\u4e8c\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d\u5341\u767e\u5343]"
)
_AMOUNTS = re.compile(_COUNTED, re.IGNORECASE)
_TIMES = re.compile(
    _COUNTED + r"|\b(?:when|whenever|if|after|before|until|once|as\s+soon|every|daily"
    r"|weekly|monthly|yearly|annually|during|while|unless|today|noon|midnight|end\s+of"
    r"|january|february|march|april|may|june|july|august|\w+ember|october|\w+day"
    r"|wenn|sobald|nach|vor|bis|\w+tag|quand|apr\u00e8s|avant|cuando|despu\u00e9s|antes)\b",
    re.IGNORECASE,
)


_YES_OR_NO = re.compile(
    r"^\W*(?:is|are|was|were|am|do|does|did|has|have|had|can|could|may|might|must|shall"
    r"|should|will|would|ist|sind|hat|haben|darf|d\u00fcrfen|kann|k\u00f6nnen|muss"
    r"|est-ce|peut|puis|puedo|puede|es)\b",
    re.IGNORECASE,
)


def asks_amount(question: str) -> bool:
    """Return whether a question asks for a number."""
    return bool(_AMOUNT.search(question))


def asks_time(question: str) -> bool:
    """Return whether a question asks for a time."""
    return bool(_TIME.search(question))


def asks_yes_or_no(question: str) -> bool:
    """Return whether a question can be answered with yes or no."""
    return bool(_YES_OR_NO.match(question)) and " or " not in question


def subject_of(question: str) -> str:
    """Return a question without the words that ask for a number or a time.

    The answer to "how long" holds a number, and seldom the word "long".
    """
    return _TIME.sub(" ", _AMOUNT.sub(" ", question))


def fits(question: str, statement: str) -> bool:
    """Return whether a statement has the kind of thing that is asked for.

    A question for an amount needs a number, one for a time a date or a condition.
    Questions of other kinds are met by any statement.
    """
    if asks_amount(question):
        return bool(_AMOUNTS.search(statement))
    if asks_time(question):
        return bool(_TIMES.search(statement))
    return True
