"""Problems: one shape for every error, with a code from one list."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from kept import errors

MEDIA_TYPE = "application/problem+json"


@dataclass(frozen=True, slots=True)
class Code:
    """One kind of problem: its status, its title, and what to do about it."""

    status: int
    title: str
    advice: str


CODES: Mapping[str, Code] = {
    "invalid_request": Code(
        422, "The request is not as documented", "Mend the fields that errors names."
    ),
    "invalid_json": Code(
        400, "The body is no JSON", "Send JSON in UTF-8, not nested too deeply."
    ),
    "invalid_encoding": Code(
        400,
        "The body is not what Content-Encoding says",
        "Send it whole as gzip, or without Content-Encoding.",
    ),
    "invalid_form": Code(
        400,
        "The form cannot be read",
        "Send multipart/form-data with its boundary, of at most 1,000 fields.",
    ),
    "invalid_input": Code(
        422, "What was handed in cannot be used", "The detail says what was expected."
    ),
    "invalid_cursor": Code(
        422, "The cursor is none of ours", "Use next_cursor of the page before."
    ),
    "invalid_setting": Code(
        422, "A setting is unknown or out of range", "The detail names the range."
    ),
    "url_refused": Code(
        422, "The URL may not be fetched", "Ask for its host to be allowed."
    ),
    "idempotency_key_reused": Code(
        422,
        "The idempotency key belongs to another request",
        "Use a new key for a new request.",
    ),
    "unauthenticated": Code(
        401, "A valid key is needed", "Send Authorization: Bearer KEY."
    ),
    "forbidden": Code(
        403, "The key may not do this", "Use a key with the role or tenant needed."
    ),
    "csrf_failed": Code(
        403,
        "The CSRF token is missing or wrong",
        "Send the token of GET /v1/session as X-CSRF-Token.",
    ),
    "not_found": Code(404, "There is no such thing here", "Check the id."),
    "no_such_route": Code(404, "There is no such route", "See the reference."),
    "method_not_allowed": Code(
        405, "The route has no such method", "Allow lists those it has."
    ),
    "idempotency_in_progress": Code(
        409, "The same request is still being worked on", "Wait, then send it again."
    ),
    "body_too_large": Code(413, "The body is too large", "Send less at once."),
    "unsupported_media_type": Code(
        415, "The body has an unknown type", "Send JSON, or files as multipart."
    ),
    "unsupported_encoding": Code(
        415,
        "The body has an unknown Content-Encoding",
        "Send it as gzip, or as it is; Accept-Encoding lists what is taken.",
    ),
    "rate_limited": Code(
        429, "The key has made too many requests", "Wait as long as Retry-After says."
    ),
    "too_many_jobs": Code(
        429, "Too many jobs are unfinished", "Wait for some of them to end."
    ),
    "too_many_streams": Code(
        429,
        "The tenant follows too many jobs at once",
        "Let go of some streams, or ask for jobs without following them.",
    ),
    "internal": Code(
        500, "This is a bug in Kept", "Report it with the request id of instance."
    ),
    "misconfigured": Code(
        500, "The service is not configured for this", "See the log of the service."
    ),
    "store_failed": Code(
        500, "The knowledge base cannot be used", "See the log of the service."
    ),
    "backend_failed": Code(
        502, "A model's server failed", "Try again; see the log of the service."
    ),
    "overloaded": Code(
        503, "Too much work at once", "Try again after Retry-After seconds."
    ),
    "shutting_down": Code(
        503, "The service is stopping", "Send the request to the next instance."
    ),
    "not_ready": Code(503, "The service cannot answer yet", "Try again soon."),
    "store_busy": Code(
        503, "The knowledge base is held by another process", "Try again soon."
    ),
    "store_read_only": Code(
        503, "The knowledge base cannot be written to", "See the log of the service."
    ),
    "embedder_mismatch": Code(
        503,
        "The knowledge base was made with another embedder",
        "Configure that one, or run 'kept reembed'.",
    ),
    "backend_timeout": Code(
        504, "A model's server did not answer in time", "Try again."
    ),
    "store_full": Code(507, "The disk is full", "Make room, then try again."),
}

# The first that fits counts, so subclasses stand before their parents.
ERRORS: tuple[tuple[type[errors.KeptError], str], ...] = (
    (errors.NotFoundError, "not_found"),
    (errors.UrlRefusedError, "url_refused"),
    (errors.InputError, "invalid_input"),
    (errors.UnknownPresetError, "invalid_setting"),
    (errors.SettingsError, "misconfigured"),
    (errors.StoreBusyError, "store_busy"),
    (errors.StoreReadOnlyError, "store_read_only"),
    (errors.StoreFullError, "store_full"),
    (errors.EmbedderMismatchError, "embedder_mismatch"),
    (errors.StoreError, "store_failed"),
    (errors.LLMTimeoutError, "backend_timeout"),
    (errors.BackendError, "backend_failed"),
    (errors.KeptError, "internal"),
)

SERVER_ERROR = 500
NO_FILE = "Expected UploadFile"
UNREADABLE = "There was an error parsing the body"
SHOWN_FAULTS = 20


class Problem(HTTPException):
    """An error with a code of the list, ready to be shown."""

    def __init__(
        self,
        code: str,
        detail: str = "",
        *,
        headers: Mapping[str, str] | None = None,
        **more: Any,  # noqa: ANN401 -- extension members, shown as they are
    ) -> None:
        known = CODES[code]
        super().__init__(known.status, detail or known.advice, headers=headers)
        self.code = code
        self.more = more


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A problem as the client sees it."""

    code: str
    detail: str
    instance: str
    more: Mapping[str, Any] = field(default_factory=dict, hash=False)
    headers: Mapping[str, str] | None = None

    def as_data(self) -> dict[str, Any]:
        """Return the members of the problem."""
        known = CODES[self.code]
        return {
            "type": f"urn:kept:problem:{self.code}",
            "title": known.title,
            "status": known.status,
            "detail": self.detail,
            "instance": f"urn:kept:request:{self.instance}",
            "code": self.code,
            **self.more,
        }

    def response(self) -> JSONResponse:
        """Return the answer to the client."""
        return JSONResponse(
            self.as_data(),
            status_code=CODES[self.code].status,
            headers=dict(self.headers or {}),
            media_type=MEDIA_TYPE,
        )


def code_of(error: errors.KeptError) -> str:
    """Return the code of an error of the library."""
    return next(code for kind, code in ERRORS if isinstance(error, kind))


def problem_of(error: Exception) -> Problem:
    """Return the problem that *error* is to a client.

    What is wrong inside is told to the log; the client hears what kind it is.
    """
    if isinstance(error, Problem):
        return error
    if isinstance(error, errors.KeptError):
        code = code_of(error)
        inside = CODES[code].status >= SERVER_ERROR
        return Problem(code, "" if inside else _without_commands(str(error)))
    if isinstance(error, RequestValidationError):
        return _of_validation(error)
    if isinstance(error, HTTPException):
        return _of_http(error)
    return Problem("internal")


# What a command line lists and tells, there is at this door under another name.
COMMANDS = {
    "'kept documents' lists": "the list of documents has",
    "'kept aliases' lists": "the list of aliases has",
    "'kept why-not' tells": "why-not tells",
    "'kept references build' makes": "building references makes",
}


def _without_commands(message: str) -> str:
    """Return a message that advises nothing which a client cannot do."""
    for command, here in COMMANDS.items():
        message = message.replace(command, here)
    return message


def _of_validation(error: RequestValidationError) -> Problem:
    """Name every field that is wrong, without repeating what was in it."""
    faults = error.errors()
    if isinstance(error.body, bytes):
        msg = "the body is not sent as JSON; say Content-Type: application/json"
        return Problem("unsupported_media_type", msg)
    if any(fault["type"] == "json_invalid" for fault in faults):
        return Problem("invalid_json", "the body is not valid JSON")
    told = [
        {"at": [str(part) for part in fault["loc"]], "message": _plain(fault["msg"])}
        for fault in faults[:SHOWN_FAULTS]
    ]
    first = told[0]
    detail = f"{'.'.join(first['at'])}: {first['message']}"
    return Problem("invalid_request", detail, errors=told)


def _plain(message: str) -> str:
    """Return what was wrong with a field, without words of the framework."""
    told = message.removeprefix("Value error, ")
    return "expected a file with a name" if told.startswith(NO_FILE) else told


_PLAIN = {
    400: "invalid_form",
    401: "unauthenticated",
    403: "forbidden",
    404: "no_such_route",
    405: "method_not_allowed",
    413: "body_too_large",
    415: "unsupported_media_type",
    422: "invalid_request",
}


def _of_http(error: HTTPException) -> Problem:
    if error.detail == UNREADABLE:
        return Problem("invalid_json")
    code = _PLAIN.get(error.status_code, "internal")
    detail = error.detail if code == "invalid_form" else ""
    return Problem(code, detail, headers=error.headers)
