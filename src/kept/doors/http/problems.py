"""Problems: one shape for every error response, with a code from one list."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from kept import errors

MEDIA_TYPE = "application/problem+json"


@dataclass(frozen=True, slots=True)
class Code:
    """One kind of problem: its status, its title, and advice for the client."""

    status: int
    title: str
    advice: str


CODES: Mapping[str, Code] = {
    "invalid_request": Code(
        422, "The request is not as documented", "Correct the fields that errors names."
    ),
    "invalid_json": Code(
        400, "The body is not JSON", "Send JSON in UTF-8, not nested too deeply."
    ),
    "invalid_encoding": Code(
        400, "The body is not what Content-Encoding says", "Send it whole as gzip."
    ),
    "invalid_form": Code(
        400, "The form cannot be read", "Send multipart/form-data, at most 1,000 parts."
    ),
    "invalid_input": Code(
        422, "The input cannot be used", "The detail says what was expected."
    ),
    "invalid_cursor": Code(
        422, "The cursor is invalid", "Use next_cursor of the previous page."
    ),
    "invalid_setting": Code(
        422, "A setting is unknown or out of range", "The detail names the range."
    ),
    "url_refused": Code(
        422, "The URL may not be fetched", "Ask for its host to be allowed."
    ),
    "idempotency_key_reused": Code(
        422, "The idempotency key belongs to another request", "Use a new key."
    ),
    "unauthenticated": Code(
        401, "A valid key is needed", "Send Authorization: Bearer KEY."
    ),
    "forbidden": Code(
        403, "The key may not do this", "Use a key with the role or tenant needed."
    ),
    "csrf_failed": Code(
        403,
        "The X-CSRF-Token is missing or wrong",
        "GET /v1/session returns the token.",
    ),
    "not_found": Code(404, "Nothing has this id", "Check the id."),
    "no_such_route": Code(404, "There is no such route", "See the reference."),
    "method_not_allowed": Code(
        405, "The route has no such method", "The header Allow lists its methods."
    ),
    "idempotency_in_progress": Code(
        409, "The same request is still running", "Wait, then send it again."
    ),
    "body_too_large": Code(413, "The body is too large", "Send less at once."),
    "unsupported_media_type": Code(
        415, "The body has an unknown type", "Send JSON, or files as multipart."
    ),
    "unsupported_encoding": Code(
        415, "The body has an unknown Content-Encoding", "Send gzip, or no encoding."
    ),
    "rate_limited": Code(
        429, "The key has made too many requests", "Wait as long as Retry-After says."
    ),
    "too_many_jobs": Code(
        429, "Too many jobs are unfinished", "Wait for some of them to end."
    ),
    "too_many_streams": Code(
        429, "The tenant follows too many jobs", "Close some streams, or poll instead."
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

# The first match counts, so subclasses stand before their parents.
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
SHOWN_FAULTS = 20
# What Starlette and FastAPI say, word for word.
NO_FILE = "Expected UploadFile"
UNREADABLE = "There was an error parsing the body"

# Clients of these show nothing of a problem in another shape than they know.
OPENAI_PATHS = ("/v1/embeddings", "/v1/models", "/v1/vector_stores")
DIFY_PATH = "/retrieval"
INVALID = "invalid_request_error"
OPENAI_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
}
DIFY_NUMBERS = {"unauthenticated": 1002, "forbidden": 1002, "not_found": 2001}

M = TypeVar("M", bound=BaseModel)


class Problem(HTTPException):
    """An error with a code of the list; *more* are further members of its JSON."""

    def __init__(
        self,
        code: str,
        detail: str = "",
        *,
        headers: Mapping[str, str] | None = None,
        **more: Any,  # noqa: ANN401 -- anything that JSON can hold
    ) -> None:
        known = CODES[code]
        super().__init__(known.status, detail or known.advice, headers=headers)
        self.code = code
        self.more = more

    def as_data(self, request_id: str) -> dict[str, Any]:
        """Return the members of the problem as JSON."""
        known = CODES[self.code]
        return {
            "type": f"urn:kept:problem:{self.code}",
            "title": known.title,
            "status": known.status,
            "detail": self.detail,
            "instance": f"urn:kept:request:{request_id}",
            "code": self.code,
            **self.more,
        }

    def response(self, request_id: str, path: str = "") -> JSONResponse:
        """Return the response to the client, in the shape that *path* is read in."""
        body, media_type = self.as_data(request_id), MEDIA_TYPE
        if path.startswith(OPENAI_PATHS):
            body, media_type = self._openai(), "application/json"
        elif path == DIFY_PATH:
            body, media_type = self._dify(), "application/json"
        return JSONResponse(
            body,
            status_code=self.status_code,
            headers=dict(self.headers or {}),
            media_type=media_type,
        )

    def _openai(self) -> dict[str, Any]:
        """Return the error as OpenAI's clients read it."""
        wrong = self.more.get("errors") or [{}]
        places = [part for part in wrong[0].get("at", ()) if part != "body"]
        kind = "server_error" if self.status_code >= SERVER_ERROR else INVALID
        return {
            "error": {
                "message": self.detail,
                "type": OPENAI_TYPES.get(self.status_code, kind),
                "param": ".".join(places) or None,
                "code": self.code,
            }
        }

    def _dify(self) -> dict[str, Any]:
        """Return the error as Dify reads it, which knows the numbers of its own API."""
        number = DIFY_NUMBERS.get(self.code, self.status_code)
        return {"error_code": number, "error_msg": self.detail}


def code_of(error: errors.KeptError) -> str:
    """Return the code of an error of the library."""
    return next(code for kind, code in ERRORS if isinstance(error, kind))


def problem_of(error: Exception) -> Problem:
    """Return the problem that a client gets for *error*.

    The sentence of a server error stays in the log: it may name paths and hosts.
    """
    if isinstance(error, Problem):
        return error
    if isinstance(error, errors.KeptError):
        code = code_of(error)
        internal = CODES[code].status >= SERVER_ERROR
        return Problem(code, "" if internal else _without_commands(str(error)))
    if isinstance(error, RequestValidationError):
        return _of_validation(error)
    if isinstance(error, HTTPException):
        return _of_http(error)
    return Problem("internal")


def validated(model: type[M], given: object, whole: str) -> M:
    """Return *given* as a model; a problem names the first wrong field, else *whole*.

    For forms, and JSON in a form: FastAPI validates the other bodies itself.
    """
    try:
        return model.model_validate(given)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, fault["loc"])) or whole
        detail = f"{where}: {_plain(fault['msg'])}"
        raise Problem("invalid_input", detail) from None


# Messages advise commands that a client of the service cannot run.
COMMANDS = (
    (re.compile("'kept (documents|aliases)' lists"), r"the list of \1 has"),
    (re.compile("'kept why-not'"), "why-not"),
    (re.compile("'kept references build'"), "building references"),
)


def _without_commands(message: str) -> str:
    for command, instead in COMMANDS:
        message = command.sub(instead, message)
    return message


def _of_validation(error: RequestValidationError) -> Problem:
    """Name every field that is wrong, without repeating its value."""
    faults = error.errors()
    if isinstance(error.body, bytes):
        msg = "the body is not sent as JSON; say Content-Type: application/json"
        return Problem("unsupported_media_type", msg)
    if any(fault["type"] == "json_invalid" for fault in faults):
        return Problem("invalid_json", "the body is not valid JSON")
    shown = [
        {"at": [str(part) for part in fault["loc"]], "message": _plain(fault["msg"])}
        for fault in faults[:SHOWN_FAULTS]
    ]
    first = shown[0]
    detail = f"{'.'.join(first['at'])}: {first['message']}"
    return Problem("invalid_request", detail, errors=shown)


def _plain(message: str) -> str:
    """Return a message about a field without words of the framework."""
    plain = message.removeprefix("Value error, ")
    return "expected a file with a name" if plain.startswith(NO_FILE) else plain


_CODE_OF_STATUS = {
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
    code = _CODE_OF_STATUS.get(error.status_code, "internal")
    detail = error.detail if code == "invalid_form" else ""
    return Problem(code, detail, headers=error.headers)
