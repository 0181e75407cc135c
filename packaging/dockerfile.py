"""Reading a Dockerfile: its instructions, its stages, and rules that they keep."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Instruction:
    """One line of a Dockerfile, with the number of the stage that it belongs to."""

    stage: int
    name: str
    rest: str

    @property
    def command(self) -> list[str] | None:
        """The words of a command that no shell reads; None for other forms."""
        listed = self.rest[self.rest.find("[") :]
        return json.loads(listed) if listed.startswith("[") else None


def instructions(path: Path) -> list[Instruction]:
    """Return the instructions in order."""
    text = re.sub(r"\\\n\s*", " ", path.read_text("utf-8"))
    found: list[Instruction] = []
    stage = -1
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, _, rest = line.strip().partition(" ")
        stage += name == "FROM"
        found.append(Instruction(stage, name, rest.strip()))
    return found


def faults(found: list[Instruction], context: Path) -> Iterator[str]:
    """Yield what is wrong with an image, in words."""
    last = max(one.stage for one in found)
    final = {one.name: one for one in found if one.stage == last}
    bases = dict(one.rest.partition("=")[::2] for one in found if one.name == "ARG")
    for one in found:
        yield from _of_one(one, context, bases)
    user = final["USER"].rest if "USER" in final else "root"
    if user.partition(":")[0] in ("root", "0"):
        yield "the last stage runs as root; name another USER"
    for name in ("HEALTHCHECK", "ENTRYPOINT", "EXPOSE", "STOPSIGNAL"):
        if name not in final:
            yield f"the last stage has no {name}"
    for name in ("ENTRYPOINT", "CMD"):
        if name in final and final[name].command is None:
            yield f"{name} goes through a shell, which hides signals from the service"


def _of_one(
    one: Instruction, context: Path, arguments: Mapping[str, str]
) -> Iterator[str]:
    named = one.rest.split(" ")[0]
    image = arguments.get(named.strip("${}"), named)
    if one.name == "FROM" and not re.search(r":(?!latest)[^@]+@sha256:\w{64}$", image):
        yield f"FROM {image} names no version with its digest"
    if one.name == "ADD":
        yield f"ADD {one.rest}: COPY says what it does"
    if one.name in ("ARG", "ENV") and re.search(
        r"(PASSWORD|SECRET|TOKEN|ADMIN_KEY)\w*=\S", one.rest
    ):
        yield f"{one.name} {one.rest.partition('=')[0]} bakes a secret in"
    if one.name == "COPY" and not one.rest.startswith("--from"):
        for source in one.rest.split()[:-1]:
            if not (context / source).exists():
                yield f"COPY {source}: there is no such file"
    if one.name == "RUN" and re.search(r"\b(sudo|curl|wget)\b", one.rest):
        yield f"RUN {one.rest}: fetches outside the package manager"
