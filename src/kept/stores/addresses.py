"""Addresses of stores: a folder, or a server whose URL has a scheme."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from kept._runtime import needing, pluggable, plugged
from kept.errors import SettingsError

POSTGRES = "postgresql"
MILVUS = "milvus"
PLUGGED = "kept.stores"
SERVERS = {
    POSTGRES: ("kept.stores.postgres.open", "postgres"),
    "postgres": ("kept.stores.postgres.open", "postgres"),
    MILVUS: ("kept.stores.milvus.open", "milvus"),
}
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_LOGIN = re.compile(r"(?<=://)[^?#]*@")
_SECRET = re.compile(r"(?<=[?&])(password|token)=[^&]*", re.IGNORECASE)


def scheme_of(address: str) -> str | None:
    """Return the scheme of a server's address; a folder has none."""
    found = _SCHEME.match(address)
    return found[1].lower() if found else None


def folder_of(address: str) -> Path | None:
    """Return the folder that an address is, if it is one."""
    return Path(address).expanduser() if scheme_of(address) is None else None


def whole_address(address: str) -> str:
    """Return an address that is the same in any working directory."""
    folder = folder_of(address)
    return address if folder is None else str(folder.resolve())


def beside(address: str, name: str) -> Path:
    """Return where a file of this name belongs: in the store's folder, else here."""
    folder = folder_of(address)
    return Path(name) if folder is None else folder / name


def without_secrets(address: str) -> str:
    """Return an address without the secrets in it."""
    if scheme_of(address) is None:
        return address
    return _SECRET.sub(r"\1=…", _LOGIN.sub("", address))


def server_of(address: str) -> Any:  # noqa: ANN401 -- a module
    """Return what opens the server's store, or say how to get it.

    It has *open_store* and *exists*, both of which take the settings of the store.
    """
    scheme = str(scheme_of(address))
    if scheme not in SERVERS:
        found = plugged(PLUGGED, scheme)
        if found is not None:
            return found
        names = (POSTGRES, MILVUS, *pluggable(PLUGGED))
        known = ", ".join(f"{name}://…" for name in names)
        msg = (
            f"KEPT_STORE is {without_secrets(address)!r}, but there is no store for "
            f"{scheme}://; expected the path of a folder, or one of: {known}"
        )
        raise SettingsError(msg)
    module, extra = SERVERS[scheme]
    with needing(extra, f"the store {without_secrets(address)!r}"):
        return import_module(module)
