"""Prompt templates: text files with a version and a recorded checksum."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from kept.errors import NotFoundError, SettingsError
from kept.models.prompts.records import ContextRecord

BUILT_IN = Path(__file__).parent
CHECKSUMS = "checksums.json"

_FIELD = re.compile(r"\{\{(\w+)\}\}")
_ROLE = re.compile(r"^## (system|user)\n", re.MULTILINE)
_FILE = re.compile(r"(?P<name>[a-z_]+)\.v(?P<version>\d+)\.txt")


@dataclass(frozen=True, slots=True)
class Template:
    """A prompt with gaps, in one version.

    *recorded* is the checksum under which the version was released; None if it
    never was.
    """

    name: str
    version: int
    text: str
    recorded: str | None = None

    @property
    def checksum(self) -> str:
        """The checksum of the text as it is now."""
        return checksum_of(self.text)

    @property
    def drifted(self) -> bool:
        """Whether the text is no longer the one that was released."""
        return self.recorded is not None and self.checksum != self.recorded

    def messages(self, **fields: str) -> tuple[Mapping[str, str], ...]:
        """Fill the gaps and return the conversation.

        Gaps are filled in one pass: what a field holds is never read as a gap.
        """
        wanted = frozenset(_FIELD.findall(self.text))
        if wanted != fields.keys():
            msg = (
                f"template {self.name} v{self.version} has the gaps "
                f"{sorted(wanted)}, but was given {sorted(fields)}"
            )
            raise SettingsError(msg)
        _, *parts = _ROLE.split(self.text)
        return tuple(
            {"role": role, "content": _filled(text.strip("\n"), fields)}
            for role, text in zip(parts[::2], parts[1::2], strict=True)
        )


@dataclass(frozen=True, slots=True)
class Drift:
    """A template that is no longer what its checksum says."""

    name: str
    version: int
    recorded: str
    found: str

    def __str__(self) -> str:
        return (
            f"template {self.name} v{self.version} has changed: recorded "
            f"{self.recorded[:12]}, found {self.found[:12]}; give a changed template "
            "a new version"
        )


def checksum_of(text: str) -> str:
    """Return the sha256 of *text*, whatever its line ends."""
    return sha256(text.replace("\r\n", "\n").encode()).hexdigest()


def template(
    name: str, version: int | None = None, folder: Path = BUILT_IN
) -> Template:
    """Return a template, by default in its newest version."""
    versions = _versions(name, folder)
    chosen = max(versions, default=0) if version is None else version
    if chosen not in versions:
        key = name if version is None else f"{name} v{version}"
        advice = f"the versions in {folder.name!r} are: {sorted(versions) or 'none'}"
        raise NotFoundError(kind="template", key=key, advice=advice)
    text = versions[chosen].read_text(encoding="utf-8").replace("\r\n", "\n")
    return Template(name, chosen, text, _recorded(folder).get(f"{name}.v{chosen}"))


def drift(folder: Path = BUILT_IN) -> tuple[Drift, ...]:
    """Return every template of *folder* that no longer matches its checksum.

    A template that is gone has the empty checksum.
    """
    found = []
    for key, recorded in sorted(_recorded(folder).items()):
        name, _, version = key.partition(".v")
        file = folder / f"{key}.txt"
        now = checksum_of(file.read_text(encoding="utf-8")) if file.exists() else ""
        if now != recorded:
            found.append(Drift(name, int(version), recorded, now))
    return tuple(found)


def drifted(record: ContextRecord, folder: Path = BUILT_IN) -> Drift | None:
    """Return how the template of *record* has changed since, if it has."""
    try:
        now = template(record.template, record.version, folder).checksum
    except NotFoundError:
        now = ""
    if now == record.checksum:
        return None
    return Drift(record.template, record.version, record.checksum, now)


def _versions(name: str, folder: Path) -> Mapping[int, Path]:
    files = ((_FILE.fullmatch(file.name), file) for file in folder.glob("*.txt"))
    return {
        int(match["version"]): file
        for match, file in files
        if match and match["name"] == name
    }


@cache
def _recorded(folder: Path) -> Mapping[str, str]:
    file = folder / CHECKSUMS
    if not file.exists():
        return {}
    recorded: Mapping[str, str] = json.loads(file.read_text(encoding="utf-8"))
    return recorded


def _filled(text: str, fields: Mapping[str, str]) -> str:
    return _FIELD.sub(lambda gap: fields[gap[1]], text)
