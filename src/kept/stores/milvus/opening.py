"""Opening a Milvus store from the settings."""

from pathlib import Path
from typing import Protocol

from pydantic import SecretStr

from kept.stores.milvus.address import address_of
from kept.stores.milvus.store import MilvusStore, store_at
from kept.stores.sqlite import FILE


class StoreSettings(Protocol):
    """The settings that a store is opened by."""

    @property
    def store(self) -> str:
        """The address."""
        ...

    @property
    def store_token(self) -> SecretStr | None:
        """What the server knows us by."""
        ...


def open_store(settings: StoreSettings, *, writable: bool) -> MilvusStore:
    """Return the store that the settings name."""
    token = settings.store_token
    secret = token.get_secret_value() if token else None
    return store_at(settings.store, writable=writable, token=secret)


def exists(settings: StoreSettings) -> bool:
    """Tell whether there is a knowledge base: its documents, not its indexes."""
    folder = Path(address_of(settings.store).metadata).expanduser()
    return (folder / FILE).exists()
