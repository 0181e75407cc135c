"""Places: every page of the site in the states that are worth a look."""

from collections.abc import Callable
from dataclasses import dataclass

from playwright.sync_api import Page
from watching import Visitor


@dataclass(frozen=True)
class Place:
    """A page in one state; *prepare* brings it there once it is open."""

    name: str
    path: str
    prepare: Callable[[Page], object] = id

    def opened(self, visitor: Visitor) -> Page:
        """Open the page and bring it into its state."""
        page = visitor.goto(self.path)
        self.prepare(page)
        return page


PLACES = (Place("tenant", "/tenant"),)
