"""Failures: what a browser is shown instead of a problem in JSON."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from kept.http.pages.rendering import rendered
from kept.http.pages.visiting import SEE_OTHER, path_of, sign_in_path, visit_of
from kept.http.problems import CODES, SERVER_ERROR, Shown
from kept.http.sessions import SAFE_METHODS

HTML = "text/html"
TITLES = {
    "no_such_route": "There is no such page",
    "unauthenticated": "Sign in to see this",
    "csrf_failed": "The page was out of date",
    "forbidden": "Your key does not open this",
    "internal": "This should not have happened",
}
DETAILS = {
    "no_such_route": "The address is mistyped, or nothing is shown there any more.",
    "internal": "It is a mistake in Kept. Please report it with the number below.",
    "unauthenticated": "The session has ended; what was sent was not done.",
}


def is_for_people(path: str, accepted: str, api: tuple[str, ...]) -> bool:
    """Tell whether an answer is read by a person and not by a program."""
    return HTML in accepted and not path.startswith(api)


def failure_page(request: Request, problem: Shown) -> Response:
    """Return a page that says what went wrong and what to do.

    Whoever is not signed in is asked to, and comes back to where they wanted to go.
    A link from another site comes without the cookie even of somebody who is, so the
    page is first asked for once more, by ourselves.
    """
    if problem.code == "unauthenticated" and request.method in SAFE_METHODS:
        if request.headers.get("sec-fetch-site") == "cross-site":
            return rendered(request, "onwards.html", {"here": path_of(request)})
        return RedirectResponse(sign_in_path(request), SEE_OTHER)
    known = CODES[problem.code]
    shown = {
        "visit": visit_of(request),
        "title": TITLES.get(problem.code, known.title),
        "detail": DETAILS.get(problem.code, problem.detail),
        "status": known.status,
        "instance": problem.instance,
        "ours": known.status >= SERVER_ERROR,
    }
    response = rendered(request, "failure.html", shown, known.status)
    response.headers.update(problem.headers or {})
    return response
