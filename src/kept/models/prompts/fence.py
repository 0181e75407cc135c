"""Fences: delimiters around document text in a prompt, so that it is not obeyed.

Two walls. A passage stands between lines that carry a nonce which it cannot
contain, so it cannot close its own fence. And what a service or a template could
take for structure (chat tokens, role tags, role names that begin a line, our own
wrappers) is written with other brackets, so it stays legible and means nothing.
"""

import hmac
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

# 64 bits in hexadecimal: a passage cannot guess it.
NONCE_CHARS = 16

# Full-width and small forms too: some tokenizers normalise them to ASCII.
_OPEN, _CLOSE = "[<\uff1c\ufe64]", "[>\uff1e\ufe65]"
_BARS = "[|\uff5c]"
_ROLES = "system|assistant|developer|user|human|tool|function|model|ipython"
_TURNS = "start_of_turn|end_of_turn|start_header_id|end_header_id|bos|eos|pad|s"
_WRAPPERS = r"reference[\s_-]*examples?|passages?|context|documents?|instructions?"
# Characters that hide or reorder text: controls, bidi overrides, tags, joiners
# between ASCII letters (elsewhere a script may need them).
_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u200b\u200e\u200f"
    "\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\U000e0000-\U000e007f]"
    "|(?<=[\x20-\x7e])[\u200c\u200d]+(?=[\x20-\x7e])"
)
_TOKENS = re.compile(
    rf"{_OPEN}{_BARS}(?P<a>[^<>|\uff5c\n]{{1,40}}){_BARS}{_CLOSE}"
    rf"|{_OPEN}{_OPEN}?\s*(?P<b>/?\s*(?:SYS|{_TURNS}))\s*{_CLOSE}?{_CLOSE}"
    r"|\[\s*(?P<c>/?\s*(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS))\s*\]",
    re.IGNORECASE,
)
_TAGS = re.compile(
    rf"{_OPEN}\s*(?P<a>/?\s*(?:{_ROLES}|{_WRAPPERS})(?:\s[^<>\n]{{0,80}})?){_CLOSE}",
    re.IGNORECASE,
)
_FENCES = re.compile(
    rf"{_OPEN}{{2,}}\s*(?P<a>(?:passage|end)\b[^<>\n]{{0,80}}){_CLOSE}*", re.IGNORECASE
)
_TURN_LINES = re.compile(
    rf"^(?P<lead>[\s#*>]*)(?P<a>{_ROLES})(?P<b>\**\s*[:\uff1a])",
    re.IGNORECASE | re.MULTILINE,
)
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_PHONE = re.compile(
    r"(?<![\w.])(?:\+\d[\d\s()./-]{7,16}\d"
    r"|\(?\d{3}\)?[\s.-]\d{3}[\s.-]\d{4}"
    r"|\(?0\d{1,4}\)?[\s/-]\d{3,}(?:[\s-]\d{2,})*)(?![\w.])"
)


@dataclass(frozen=True, slots=True)
class Neutral:
    """Text that means nothing to a chat template, and what was changed in it."""

    text: str
    redactions: Mapping[str, int] = field(default_factory=dict, hash=False)


def nonce_for(secret: bytes, *texts: str) -> str:
    """Return a nonce that none of *texts* contains.

    The same secret and texts give the same nonce; who does not know the secret
    cannot foresee it. The edge draws the secret, per process or per request.
    """
    counter = 0
    while True:
        digest = hmac.new(secret, counter.to_bytes(4, "big"), "sha256")
        for text in texts:
            data = text.encode("utf-8", "surrogatepass")
            # The length keeps two texts apart that join to the same bytes.
            digest.update(len(data).to_bytes(8, "big") + data)
        nonce = digest.hexdigest()[:NONCE_CHARS]
        if not any(nonce in text for text in texts):
            return nonce
        counter += 1


def neutral(text: str, *, turns: bool = True, personal: bool = False) -> Neutral:
    """Return *text* without anything that could pass for structure.

    With *turns*, role names that begin a line count as such; an interview keeps
    them. With *personal*, e-mail addresses and telephone numbers are blotted out.
    Text that imitates nothing comes back as it was.
    """
    counts: Counter[str] = Counter()

    def change(kind: str, pattern: re.Pattern[str], put: str, text: str) -> str:
        text, count = pattern.subn(
            lambda m: put.format(**{k: v or "" for k, v in m.groupdict().items()}), text
        )
        counts[kind] += count
        return text

    text = change("hidden", _HIDDEN, "", text)
    text = change("token", _TOKENS, "‹{a}{b}{c}›", text)  # noqa: RUF001 -- other brackets
    text = change("tag", _TAGS, "‹{a}›", text)  # noqa: RUF001 -- as above
    text = change("fence", _FENCES, "‹{a}›", text)  # noqa: RUF001 -- as above
    if turns:
        text = change("turn", _TURN_LINES, "{lead}‹{a}›{b}", text)  # noqa: RUF001 -- as above
    if personal:
        text = change("email", _EMAIL, "‹email›", text)  # noqa: RUF001 -- as above
        text = change("phone", _PHONE, "‹phone›", text)  # noqa: RUF001 -- as above
    return Neutral(text, {kind: n for kind, n in sorted(counts.items()) if n})


def fenced(passages: Sequence[str], nonce: str, first: int = 1) -> str:
    """Put each passage between its own pair of fence lines, numbered."""
    return "\n\n".join(
        f"<<<passage {n} {nonce}>>>\n{passage}\n<<<end {n} {nonce}>>>"
        for n, passage in enumerate(passages, first)
    )


def summed(parts: Iterable[Neutral]) -> Mapping[str, int]:
    """Add up what was changed in several texts."""
    counts: Counter[str] = Counter()
    for part in parts:
        counts.update(part.redactions)
    return dict(sorted(counts.items()))
