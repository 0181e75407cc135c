"""Rendering: templates, what they are given, and the headers of every page."""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from kept.http.pages.assets import asset
from kept.render import short

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {"content-security-policy": POLICY, "cache-control": "no-store"}
THEME_COOKIE = "kept_theme"
THEMES = ("system", "light", "dark")
NOTICES: Mapping[str, str] = {
    "signed-out": "You are signed out.",
    "document-deleted": "The document is deleted. The ledger keeps a line of it.",
    "job-cancelled": "The job stops behind the document that is being stored.",
    "alias-undone": "The text is a document of its own now.",
    "alias-forgotten": "The exact copy is forgotten; its document stays.",
    "setting-saved": "The setting is saved, and counts from now on.",
    "setting-back": "The tenant's own value is taken back.",
    "policy-saved": "What is kept of questions is decided anew, from now on.",
    "key-revoked": "The key opens nothing any more.",
    "tenant-changed": "You are now in the tenant named on the left.",
}
KILO = 1000


def rendered(
    request: Request, template: str, given: Mapping[str, object], status: int = 200
) -> HTMLResponse:
    """Return a page; every template knows the theme and the path it is shown at."""
    theme = request.cookies.get(THEME_COOKIE, "")
    shown = {
        "visit": None,
        "theme": theme if theme in THEMES else THEMES[0],
        "path": request.url.path,
        "notice": NOTICES.get(request.query_params.get("notice", ""), ""),
        **given,
    }
    text = _templates().get_template(template).render(shown)
    return HTMLResponse(text.encode("utf-8", "replace"), status, HEADERS)


@cache
def _templates() -> Environment:
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters.update(
        plain=plain, percent=percent, when=when, count=count, size=size
    )
    templates.globals.update(asset=asset, themes=THEMES)
    return templates


def plain(value: object) -> str:
    """Return a value in a reader's words: yes and no, a dash, four digits."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "\u2013" if value is None else short(value)


def percent(value: float) -> str:
    """Return a share as whole percents; only nothing is 0 %, only all is 100 %."""
    whole = round(value * 100)
    if value > 0 and whole == 0:
        return "<1\u202f%"
    if value < 1 and whole == 100:  # noqa: PLR2004 -- all
        return ">99\u202f%"
    return f"{whole}\u202f%"


def when(moment: str) -> str:
    """Return a moment as it is read best: to the minute, in UTC."""
    try:
        at = datetime.fromisoformat(moment)
    except ValueError:
        return moment
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def count(number: int, one: str, many: str = "") -> str:
    """Return a number with what is counted."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def size(number: float) -> str:
    """Return a number of bytes in the unit that fits."""
    for unit in ("bytes", "kB", "MB"):
        if number < KILO:
            return f"{number:.3g} {unit}"
        number /= KILO
    return f"{number:.3g} GB"
