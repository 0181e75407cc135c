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
    """Signs session tokens, so that forged cookies never reach the store."""

    secret: bytes = field(repr=False)

    def cookie(self, token: str) -> str:
        """Return the cookie of a session: its token with a signature."""
        return f"{token}.{self._signed('session', token)}"

    def opened(self, cookie: str) -> str | None:
        """Return the token in a cookie, if its signature is right."""
        token, _, signature = cookie.partition(".")
        valid = same_token(signature, self._signed("session", token))
        return token if valid else None

    def csrf(self, token: str) -> str:
        """Return the CSRF token that every change of this session must send."""
        # Derived and not stored: the store keeps only digests of session tokens.
        return self._signed("csrf", token)

    def mask(self, name: str) -> int:
        """Return a number to XOR with another one, always the same for *name*."""
        return int.from_bytes(self._digest("mask", name)[:MASK_BYTES])

    def _signed(self, purpose: str, token: str) -> str:
        digest = self._digest(purpose, token)
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()

    def _digest(self, purpose: str, token: str) -> bytes:
        message = f"{purpose}:{token}".encode("utf-8", "surrogatepass")
        return hmac.new(self.secret, message, "sha256").digest()


def same_token(given: str, expected: str) -> bool:
    """Compare two tokens in constant time."""
    # As bytes: compare_digest raises for texts that are not ASCII.
    return hmac.compare_digest(
        given.encode("utf-8", "surrogatepass"), expected.encode()
    )
