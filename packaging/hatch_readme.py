"""The README of the package index: without links that lead nowhere there."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PICTURE = re.compile(r"^!\[[^\]]*\]\((?!https:)[^)]*\)\n+", re.MULTILINE)
LINK = re.compile(r"\[([^\]]+)\]\((?!https:)[^)]*\)")


class ReadmeWithoutLinks(MetadataHookInterface):
    """Set the description: relative links become their text."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Read README.md, which is written for the repository."""
        text = (Path(self.root) / "README.md").read_text("utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": LINK.sub(r"\1", PICTURE.sub("", text)),
        }
