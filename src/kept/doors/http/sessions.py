"""Browser sessions: a signed cookie, and a token against forged requests."""

import base64
import hmac
from dataclasses import dataclass, field

COOKIE = "kept_session"
CSRF_HEADER = "x-csrf-token"
MASK_BYTES = 6
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs session names, so that the store is asked only about our own."""

    secret: bytes = field(repr=False)

    def cookie(self, token: str) -> str:
        """Return a session's name with our signature."""
        return f"{token}.{self._signed('session', token)}"

    def opened(self, cookie: str) -> str | None:
        """Return the name in a cookie, if we signed it."""
        token, _, signature = cookie.partition(".")
        expected = self._signed("session", token)
        same = hmac.compare_digest(
            signature.encode("utf-8", "surrogatepass"), expected.encode()
        )
        return token if same else None

    def csrf(self, token: str) -> str:
        """Return what a page of this session has to send with every change."""
        return self._signed("csrf", token)

    def mask(self, name: str) -> int:
        """Return a number that hides another one, the same for the same *name*."""
        return int.from_bytes(self._digest("mask", name)[:MASK_BYTES])

    def _signed(self, purpose: str, token: str) -> str:
        digest = self._digest(purpose, token)
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()

    def _digest(self, purpose: str, token: str) -> bytes:
        told = f"{purpose}:{token}".encode("utf-8", "surrogatepass")
        return hmac.new(self.secret, told, "sha256").digest()


def same_token(given: str, expected: str) -> bool:
    """Compare two tokens in a time that tells nothing."""
    return hmac.compare_digest(
        given.encode("utf-8", "surrogatepass"), expected.encode()
    )
