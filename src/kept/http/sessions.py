"""Browser sessions: a signed cookie, and a token against forged requests."""

import base64
import hmac
from dataclasses import dataclass, field

COOKIE = "kept_session"
CSRF_HEADER = "x-csrf-token"
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

    def _signed(self, purpose: str, token: str) -> str:
        told = f"{purpose}:{token}".encode("utf-8", "surrogatepass")
        digest = hmac.new(self.secret, told, "sha256").digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def same_token(given: str, expected: str) -> bool:
    """Compare two tokens in a time that tells nothing."""
    return hmac.compare_digest(
        given.encode("utf-8", "surrogatepass"), expected.encode()
    )
