"""Navigation: which pages there are, and who may open them."""

from dataclasses import dataclass

from kept.stores.access import Key, Role

HOME = "/ask"


@dataclass(frozen=True, slots=True)
class Entry:
    """A page of the navigation: its name, its path, and the least that opens it."""

    name: str
    path: str
    role: Role = Role.READER
    every_tenant: bool = False

    def open_to(self, key: Key) -> bool:
        """Tell whether a key may open the page."""
        alone = key.tenant is not None and self.every_tenant
        return key.role.includes(self.role) and not alone


ENTRIES = (
    Entry("Ask", "/ask"),
    Entry("Traces", "/traces"),
    Entry("Documents", "/documents"),
    Entry("Ledger", "/ledger"),
    Entry("Thresholds", "/thresholds"),
    Entry("Evaluation", "/evaluation", Role.ADMIN, every_tenant=True),
    Entry("Audit", "/audit", Role.ADMIN),
    Entry("Settings", "/settings"),
    Entry("Keys", "/keys", Role.ADMIN),
)


def entries_of(key: Key) -> tuple[Entry, ...]:
    """Return the pages that a key may open."""
    return tuple(entry for entry in ENTRIES if entry.open_to(key))


def within(path: str, entry: Entry) -> bool:
    """Tell whether a path belongs to a page of the navigation."""
    return path == entry.path or path.startswith(f"{entry.path}/")
