"""Milvus errors as errors of ours, with what to do."""

import re

from kept.errors import StoreBusyError, StoreError, StoreFullError

NEEDED = (2, 5)
_LONGEST_MESSAGE = 300
_CONNECT_FAILED = 2
_AWAY_CODES = (100, 101)
_AWAY = re.compile(
    r"(does not exist|can't find collection|not ?found\[collection|"
    r"collection not loaded|state 'released')"
)
_LOST = re.compile(
    r"(Fail connecting|server unavailable|UNAVAILABLE|Connection refused|"
    r"Connection reset|Socket closed|DEADLINE_EXCEEDED|Deadline Exceeded|"
    r"Retry timeout|should create connect|closed channel|channel closed)",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"(auth check fail|UNAUTHENTICATED|invalid api key|permission deny|"
    r"PERMISSION_DENIED|PrivilegeNotPermitted)",
    re.IGNORECASE,
)
_FULL = re.compile(
    r"(no space left|disk quota|memory quota exhausted|quota exceeded)", re.IGNORECASE
)


class CollectionAwayError(StoreError):
    """A collection is not there or not loaded; it is looked after and asked again."""


class ConnectionLostError(StoreBusyError):
    """The server cannot be reached now; what was asked may be asked again."""


def translated(error: Exception, where: str) -> StoreError:
    """Return our error for one of the server's or of its client's."""
    said = _said(error)
    code = getattr(error, "code", None)
    if _REFUSED.search(said):
        return StoreError(
            f"Milvus at {where} refuses the token ({said}); "
            "set KEPT_STORE_TOKEN to USER:PASSWORD or to an API key"
        )
    if code == _CONNECT_FAILED or _LOST.search(said):
        return ConnectionLostError(
            f"Milvus at {where} cannot be reached ({said}); check that it runs and "
            "try again: nothing is lost, its indexes catch up with the truth"
        )
    if code in _AWAY_CODES or _AWAY.search(said):
        return CollectionAwayError(f"Milvus at {where} lacks a collection ({said})")
    if _FULL.search(said):
        return StoreFullError(
            f"Milvus at {where} has no room left ({said}); give it disk or memory "
            "and try again: nothing is lost"
        )
    return StoreError(
        f"Milvus at {where} failed ({said}); the documents are safe beside it, and "
        "'kept doctor --rebuild' fills it again"
    )


def check_version(version: str, where: str) -> None:
    """Refuse a server that cannot rank words; unnumbered builds are taken on trust."""
    numbers = re.search(r"(\d+)\.(\d+)", version)
    if numbers and (int(numbers[1]), int(numbers[2])) < NEEDED:
        msg = (
            f"Milvus at {where} has version {version}, which has no BM25; "
            f"upgrade it to {'.'.join(map(str, NEEDED))} or newer"
        )
        raise StoreError(msg)


def _said(error: BaseException) -> str:
    """Return the client's message on one line, with the details of its cause."""
    said = [getattr(error, "message", "") or str(error)]
    details = (getattr(one, "details", None) for one in (error, error.__cause__))
    said += [str(detail()) for detail in details if callable(detail)]
    return " ".join(": ".join(said).split())[:_LONGEST_MESSAGE]
