"""Write the bill of materials: what is installed for Kept, as CycloneDX JSON.

The same environment gives the same bytes: there is no time and no random number in it.
"""

import json
import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

NAME = "kept-rag"
Spec = dict[str, Any]


def main() -> None:
    """Write the bill into the folder that is named."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "dist")
    bill = bill_of_materials()
    version = bill["metadata"]["component"]["version"]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{NAME}-{version}.cdx.json"
    path.write_text(json.dumps(bill, indent=2, ensure_ascii=False) + "\n", "utf-8")
    print(f"{len(bill['components'])} components in {path}")


def bill_of_materials() -> Spec:
    """Return Kept, all that it needs and what its installed extras need."""
    extras = frozenset(distribution(NAME).metadata.get_all("Provides-Extra", []))
    always = _closure(frozenset())
    known = always | _closure(extras)
    needed = dict.fromkeys(always, "required")
    others = sorted(known.keys() - {NAME})
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": _component(NAME, "application")},
        "components": [
            _component(name, "library", needed.get(name, "optional")) for name in others
        ],
        "dependencies": [
            {
                "ref": _reference(name),
                "dependsOn": [_reference(below) for below in sorted(known[name])],
            }
            for name in sorted(known)
        ],
    }


def _closure(extras: frozenset[str]) -> dict[str, set[str]]:
    """Return each distribution that is needed, with those it needs itself."""
    needs: dict[str, set[str]] = {}
    asked: set[tuple[str, frozenset[str]]] = set()
    waiting = [(NAME, extras)]
    while waiting:
        name, wanted = waiting.pop()
        if (name, wanted) in asked:
            continue
        asked.add((name, wanted))
        below = needs.setdefault(name, set())
        for requirement in _requirements(distribution(name), wanted):
            required = _normal(requirement.name)
            below.add(required)
            waiting.append((required, frozenset(requirement.extras)))
    return needs


def _requirements(found: Distribution, extras: frozenset[str]) -> Iterator[Requirement]:
    """Yield what applies here and is installed; an extra may be left out."""
    for line in found.requires or ():
        requirement = Requirement(line)
        marker = requirement.marker
        choices = [{"extra": extra} for extra in sorted(extras | {""})]
        if marker is None or any(marker.evaluate(choice) for choice in choices):
            try:
                distribution(requirement.name)
            except PackageNotFoundError:
                continue
            yield requirement


def _component(name: str, kind: str, scope: str | None = None) -> Spec:
    found = distribution(name)
    described: Spec = {"type": kind, "bom-ref": _reference(name), "name": name}
    described["version"] = found.version
    if scope is not None:
        described["scope"] = scope
    if licences := _licences(found):
        described["licenses"] = licences
    described["purl"] = _reference(name)
    return described


def _licences(found: Distribution) -> list[Spec]:
    """Return the licence as the package states it: an expression, or by name."""
    if expression := found.metadata.get("License-Expression"):
        return [{"expression": expression}]
    classifiers = found.metadata.get_all("Classifier", [])
    named = [
        line.rpartition(" :: ")[2] for line in classifiers if line.startswith("License")
    ]
    if not named and (stated := (found.metadata.get("License") or "").strip()):
        named = [stated.splitlines()[0]]
    return [{"license": {"name": name}} for name in sorted(set(named))]


def _reference(name: str) -> str:
    return f"pkg:pypi/{name}@{distribution(name).version}"


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    main()
