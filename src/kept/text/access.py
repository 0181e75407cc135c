"""Access: which groups and users may read a document."""

import json
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from kept.errors import InputError

EVERYONE = "everyone"
GROUP, USER = "group:", "user:"
LONGEST_NAME = 200
# What stands for the readers of a document that declares none.
UNDECLARED = ""


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody who reads: a user, and the groups that the user is in."""

    user: str | None = None
    groups: frozenset[str] = frozenset()

    @property
    def names(self) -> tuple[str, ...]:
        """The readers that this is one of, in order."""
        named = {EVERYONE, *(checked_name(GROUP + group) for group in self.groups)}
        if self.user:
            named.add(checked_name(USER + self.user))
        return tuple(sorted(named))

    @property
    def key(self) -> str:
        """The same as one text, to compare two principals by."""
        return json.dumps(self.names, ensure_ascii=False)


def principal_of(names: Iterable[str]) -> Principal:
    """Return the principal that is each of the readers *names*."""
    user: str | None = None
    groups = set()
    for name in map(reader_name, names):
        if name.startswith(USER):
            if user is not None:
                msg = f"a reader is {user!r} and {name!r}; expected one user at most"
                raise InputError(msg)
            user = name.removeprefix(USER)
        elif name != EVERYONE:
            groups.add(name.removeprefix(GROUP))
    return Principal(user, frozenset(groups))


def reader_name(given: str) -> str:
    """Return a reader as it is stored; a name without a kind is that of a group."""
    name = given.strip()
    if name.casefold() == EVERYONE:
        return EVERYONE
    return checked_name(name if name.startswith((GROUP, USER)) else GROUP + name)


def checked_name(name: str) -> str:
    """Return the name of a group or user in one spelling, or raise."""
    plain = unicodedata.normalize("NFC", name)
    kind, _, rest = plain.partition(":")
    if (
        rest
        and rest.isprintable()
        and rest == rest.strip()
        and len(rest) <= LONGEST_NAME
    ):
        return f"{kind}:{rest}"
    msg = (
        f"a reader is {name!r}; expected 'everyone', 'group:NAME' or 'user:NAME' with "
        f"a printable name of at most {LONGEST_NAME} characters"
    )
    raise InputError(msg)


def acl_text(readers: Iterable[str] | None) -> str:
    """Return the readers of a document as the text that stores keep."""
    if readers is None:
        return UNDECLARED
    return json.dumps(sorted(set(readers)), ensure_ascii=False)


def acl_readers(acl: str) -> tuple[str, ...] | None:
    """Return the readers that `acl_text` was given."""
    return None if acl == UNDECLARED else tuple(json.loads(acl))
