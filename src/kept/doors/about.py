"""About this Kept: what it was built from, and what it runs on."""

import json
import platform
import re
from dataclasses import asdict, dataclass
from importlib import resources
from importlib.metadata import PackageNotFoundError, metadata, version
from typing import Any

import apsw

from kept._runtime import DISTRIBUTION
from kept.stores.sqlite.schema import VERSION as STORE_SCHEMA

BUILD_FACTS = "build.json"
_OF_AN_EXTRA = re.compile(
    r"^(?P<package>[A-Za-z0-9._-]+).*;.*\bextra == [\"'](?P<extra>[^\"']+)[\"']"
)


@dataclass(frozen=True, slots=True)
class About:
    """What a person who reports a fault is asked first."""

    version: str
    commit: str | None
    python: str
    platform: str
    sqlite: str
    store_schema: int
    extras: dict[str, dict[str, str | None]]

    def as_json(self) -> dict[str, Any]:
        """Return the facts by their names."""
        return asdict(self)

    def as_lines(self) -> list[str]:
        """Return the facts for people, the version first."""
        built = f" (commit {self.commit})" if self.commit else ""
        return [
            f"kept {self.version}{built}",
            f"Python {self.python} on {self.platform}",
            f"SQLite {self.sqlite}, store schema {self.store_schema}",
            f"extras: {', '.join(map(self._told, self.extras)) or 'none'}",
        ]

    def _told(self, extra: str) -> str:
        missing = [name for name, met in self.extras[extra].items() if met is None]
        return f"{extra} (not installed)" if missing else extra


def about() -> About:
    """Return the facts of the Kept that runs."""
    return About(
        version=version(DISTRIBUTION),
        commit=_commit(),
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}",
        sqlite=apsw.sqlite_lib_version(),
        store_schema=STORE_SCHEMA,
        extras=_extras(),
    )


def _commit() -> str | None:
    """Return the commit that the wheel was built from; a checkout has no such note."""
    note = resources.files("kept") / BUILD_FACTS
    if not note.is_file():
        return None
    return str(json.loads(note.read_text("utf-8"))["commit"])


def _extras() -> dict[str, dict[str, str | None]]:
    """Return each extra's packages with the versions that are installed."""
    found: dict[str, dict[str, str | None]] = {}
    for line in metadata(DISTRIBUTION).get_all("Requires-Dist", []):
        if asked := _OF_AN_EXTRA.match(line):
            packages = found.setdefault(asked["extra"], {})
            packages[asked["package"]] = _installed(asked["package"])
    return dict(sorted(found.items()))


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
