"""Assets: style and scripts, under a path that changes whenever they do."""

import hashlib
from functools import cache
from pathlib import Path

from fastapi import APIRouter
from starlette.responses import Response

from kept.http.problems import Problem

FOLDER = Path(__file__).parent / "static"
FOREVER = "public, max-age=31536000, immutable"
TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

router = APIRouter(include_in_schema=False)


@cache
def files() -> dict[str, bytes]:
    """Return every asset by its name; they are few and small."""
    return {
        path.relative_to(FOLDER).as_posix(): path.read_bytes()
        for path in sorted(FOLDER.rglob("*"))
        if path.is_file()
    }


@cache
def version() -> str:
    """Return a digest of all assets, so that scripts that belong together stay so."""
    digest = hashlib.sha256()
    for name, content in files().items():
        digest.update(f"{name}\n{len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


def asset(name: str) -> str:
    """Return the path of an asset as it is now."""
    if name not in files():
        msg = f"there is no asset {name!r} in {FOLDER}"
        raise KeyError(msg)
    return f"/static/{version()}/{name}"


@router.get("/static/{digest}/{name:path}")
async def read_asset(digest: str, name: str) -> Response:
    """Return an asset; one of an older version of the pages is not kept by anybody."""
    if name not in files():
        raise Problem("no_such_route")
    kind = TYPES[Path(name).suffix]
    cached = FOREVER if digest == version() else "no-store"
    return Response(files()[name], media_type=kind, headers={"cache-control": cached})
