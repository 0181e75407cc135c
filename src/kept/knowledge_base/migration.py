"""Migration: copy everything of one store into another, and verify it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kept.errors import InputError, StoreError
from kept.knowledge_base.settings import Settings
from kept.knowledge_base.wiring import any_store_of, store_exists, store_writable
from kept.stores.addresses import folder_of, without_secrets
from kept.stores.migrate.copy import BEGIN_AGAIN, copy
from kept.stores.migrate.mark import alone, begin, end, refuse_unfinished
from kept.stores.migrate.verify import Compared, compared
from kept.stores.ports import ManagedStore
from kept.text.tokens import analysis_id

Report = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrated:
    """What was carried from one store to another, part by part, all of it the same."""

    source: str
    target: str
    resumed: bool
    parts: tuple[Compared, ...]


def migrate(settings: Settings, source: str, target: str, report: Report) -> Migrated:
    """Carry all tenants of *source* to *target*, two addresses, and verify it.

    Nothing is embedded. Interrupted, the same call goes on where it stopped. The
    target can be used when the call has returned, and not before.
    """
    origin, aim = _named(source), _named(target)
    if origin == aim:
        msg = f"{origin} cannot be migrated into itself; name another target"
        raise InputError(msg)
    settings = settings.changed(store_replica=None)
    from_settings = settings.changed(store=source)
    if not store_exists(from_settings):
        msg = f"there is no knowledge base in {origin}; check the address to move from"
        raise InputError(msg)
    writable = store_writable(from_settings)
    taken = any_store_of(from_settings, writable=writable)
    try:
        refuse_unfinished(taken)
        _check_words(taken)
        given = any_store_of(settings.changed(store=target), writable=True)
        try:
            with alone(given):
                resumed = begin(given, origin)
                copy(taken, given, report)
                given.sweep()
                parts = _verified(taken, given, report)
                end(given)
        finally:
            given.close()
    finally:
        taken.close()
    return Migrated(source=origin, target=aim, resumed=resumed, parts=parts)


def _verified(
    source: ManagedStore, target: ManagedStore, report: Report
) -> tuple[Compared, ...]:
    parts: list[Compared] = []
    for part in compared(source, target):
        parts.append(part)
        report("verifying", len(parts), len(parts))
    wrong = [part for part in parts if not part.same]
    if wrong:
        shown = "; ".join(
            f"{part.what} of {part.tenant or 'the store'}: {part.rows} rows there, "
            f"{part.arrived} arrived"
            for part in wrong[:3]
        )
        msg = (
            f"what arrived in {target.where} is not what {source.where} holds "
            f"({shown}); {BEGIN_AGAIN}"
        )
        raise StoreError(msg)
    return tuple(parts)


def _check_words(source: ManagedStore) -> None:
    """Refuse words of another analysis, which the target would take for ours."""
    with source.database.reading() as connection:
        rows = connection.execute("SELECT value FROM meta WHERE key = 'analysis'")
        found = rows.fetchone()
    if found is not None and found[0] != analysis_id():
        msg = (
            f"the words of {source.where} were made by another version of Kept; run "
            "'kept doctor' on it first"
        )
        raise StoreError(msg)


def _named(address: str) -> str:
    """Return an address without secrets, the same from every folder."""
    folder = folder_of(address)
    return without_secrets(address) if folder is None else str(Path(folder).resolve())
