"""Templates and assets: how pages are rendered, and the files they load."""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from fastapi import APIRouter
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from kept.doors.http.problems import Problem
from kept.search.render import rating_of, short

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {"content-security-policy": POLICY, "cache-control": "no-store"}
THEME_COOKIE = "kept_theme"
THEMES = ("system", "light", "dark")
KILO = 1000
FOLDER = Path(__file__).parent / "static"
FOREVER = "public, max-age=31536000, immutable"
TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

router = APIRouter(include_in_schema=False)


def rendered(
    request: Request, template: str, given: Mapping[str, object], status: int = 200
) -> HTMLResponse:
    """Return a page; every template gets the theme, the path and the notice."""
    theme = request.cookies.get(THEME_COOKIE, "")
    shown = {
        "visit": None,
        "theme": theme if theme in THEMES else THEMES[0],
        "path": request.url.path,
        "notice": request.query_params.get("notice", ""),
        **given,
    }
    text = _templates().get_template(template).render(shown)
    # A recorded question may hold half a surrogate pair, which UTF-8 cannot.
    return HTMLResponse(text.encode("utf-8", "replace"), status, HEADERS)


@cache
def _templates() -> Environment:
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        # A misspelt name fails a test instead of showing nothing.
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters.update(
        plain=plain,
        percent=percent,
        rating=rating_of,
        when=when,
        count=count,
        size=size,
        svg=Markup,
    )
    templates.globals.update(asset=asset, themes=THEMES)
    return templates


def plain(value: object) -> str:
    """Return a value for people: yes and no, a dash for none, four digits."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "\u2013" if value is None else short(value)


def percent(value: float) -> str:
    """Return a share as whole percents; 0 % and 100 % only where they are exact."""
    whole = round(value * 100)
    if value > 0 and whole == 0:
        return "<1\u202f%"
    if value < 1 and whole == 100:  # noqa: PLR2004 -- all
        return ">99\u202f%"
    return f"{whole}\u202f%"


def when(moment: str) -> str:
    """Return a time to the minute, in UTC."""
    try:
        at = datetime.fromisoformat(moment)
    except ValueError:
        return moment
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def count(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def size(number: float) -> str:
    """Return a number of bytes in a unit that fits."""
    for unit in ("bytes", "kB", "MB"):
        if number < KILO:
            return f"{number:.3g} {unit}"
        number /= KILO
    return f"{number:.3g} GB"


@cache
def files() -> dict[str, bytes]:
    """Return every asset by its name."""
    return {
        path.relative_to(FOLDER).as_posix(): path.read_bytes()
        for path in sorted(FOLDER.rglob("*"))
        if path.is_file()
    }


@cache
def version() -> str:
    """Return one digest of all assets, so that scripts never mix two versions."""
    digest = hashlib.sha256()
    for name, content in files().items():
        digest.update(f"{name}\n{len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


def asset(name: str) -> str:
    """Return the present path of an asset."""
    if name not in files():
        msg = f"there is no asset {name!r} in {FOLDER}"
        raise KeyError(msg)
    return f"/static/{version()}/{name}"


@router.get("/static/{digest}/{name:path}")
async def read_asset(digest: str, name: str) -> Response:
    """Return an asset; under the path of another version it must not be cached."""
    if name not in files():
        raise Problem("no_such_route")
    kind = TYPES[Path(name).suffix]
    cached = FOREVER if digest == version() else "no-store"
    return Response(files()[name], media_type=kind, headers={"cache-control": cached})
