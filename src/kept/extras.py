"""Extras: packages that are there only where somebody asked for them."""

import re
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from kept.errors import SettingsError


@dataclass(frozen=True, slots=True)
class Extra:
    """An optional *package*, in the versions from *at_least* on and *below* another.

    The extra of ours that brings it is called *name*.
    """

    name: str
    package: str
    at_least: str
    below: str

    @property
    def requirement(self) -> str:
        """The range as pip writes it."""
        return f"{self.package}>={self.at_least},<{self.below}"

    def demand(self) -> None:
        """Refuse to go on without the package, or with a version never tried."""
        try:
            found = version(self.package)
        except PackageNotFoundError:
            msg = (
                f"{self.package} is not installed; run "
                f"'pip install \"kept[{self.name}]\"'"
            )
            raise SettingsError(msg) from None
        if not _numbers(self.at_least) <= _numbers(found) < _numbers(self.below):
            msg = (
                f"{self.package} {found} is installed; expected a version from "
                f"{self.at_least} on and below {self.below}: run "
                f"'pip install \"{self.requirement}\"'"
            )
            raise SettingsError(msg)


ARROW = Extra("frames", "pyarrow", "17", "100")
PANDAS = Extra("frames", "pandas", "2.2", "4")
HAYSTACK = Extra("haystack", "haystack-ai", "2.20", "4")
LANGCHAIN = Extra("langchain", "langchain-core", "1.0", "2")
LLAMA_INDEX = Extra("llama-index", "llama-index-core", "0.14", "0.15")
MILVUS = Extra("milvus", "pymilvus", "3.0", "4")
RAY = Extra("ray", "ray", "2.40", "3")


def _numbers(text: str) -> tuple[int, ...]:
    """Return the release numbers of a version; what follows them does not count."""
    release = re.match(r"[0-9.]*", text)
    found = release.group() if release else ""
    return tuple(int(part) for part in found.split(".") if part)
