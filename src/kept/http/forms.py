"""Forms: files come as multipart, and a form has to come to its end."""

from python_multipart.multipart import parse_options_header
from starlette.types import Message, Receive

from kept.http.problems import Problem

MULTIPART = "multipart/form-data"


def is_form(content_type: str) -> bool:
    """Tell whether a body is said to be a form with files."""
    return content_type.lower().startswith(MULTIPART)


class Whole:
    """The body of a form, refused if it stops before its last boundary.

    The parser would pass the files before that place on and forget the rest.
    """

    def __init__(self, receive: Receive, content_type: str) -> None:
        self._receive = receive
        _, options = parse_options_header(content_type)
        self._end = b"--" + options.get(b"boundary", b"") + b"--"
        self._tail = b""
        self._ended = False

    async def __call__(self) -> Message:
        """Return the next piece."""
        message = await self._receive()
        if message["type"] == "http.request" and not self._ended:
            seen = self._tail + message.get("body", b"")
            self._tail = seen[-len(self._end) :]
            self._ended = self._end in seen
            if not self._ended and seen and not message.get("more_body", False):
                raise Problem(
                    "invalid_form", "the multipart body ends before its last boundary"
                )
        return message
