"""Packages: XML parts in a ZIP file, as office programs write them."""

import io
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from posixpath import normpath
from xml.etree import ElementTree as ET

from kept.errors import UnreadableSourceError

MAX_UNPACKED_BYTES = 1_000_000_000
_DOCTYPE = re.compile(rb"<!DOCTYPE", re.IGNORECASE)
_HEAD_BYTES = 4_096
_ENTITIES = (
    b"<!ENTITY",
    "<!ENTITY".encode("utf-16-le"),
    "<!ENTITY".encode("utf-16-be"),
)
Xml = ET.Element


@dataclass(frozen=True)
class Package:
    """The parts of a ZIP file by their names."""

    archive: zipfile.ZipFile

    def data(self, name: str) -> bytes | None:
        """Return a part, or None if there is none of this name."""
        try:
            return self.archive.read(name.lstrip("/"))
        except KeyError:
            return None

    def xml(self, name: str) -> Xml | None:
        """Return the root of a part, or None if there is none of this name."""
        data = self.data(name)
        return None if data is None else parse_xml(data)

    def related(self, name: str) -> dict[str, tuple[str, str]]:
        """Return the kinds and names of the parts that a part refers to, by id."""
        path = PurePosixPath(name)
        root = self.xml(f"{path.parent}/_rels/{path.name}.rels".removeprefix("./"))
        found: dict[str, tuple[str, str]] = {}
        for one in root if root is not None else ():
            target = one.get("Target", "")
            if one.get("TargetMode") != "External":
                inside = target.startswith("/")
                target = normpath(target if inside else f"{path.parent}/{target}")
                target = target.lstrip("/")
            kind = one.get("Type", "").rpartition("/")[2]
            found[one.get("Id", "")] = (kind, target)
        return found


@contextmanager
def opened(data: bytes, source: str, kind: str) -> Iterator[Package]:
    """Yield the parts of a file; raise if it is no *kind* of file, or a broken one."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
            if size > MAX_UNPACKED_BYTES:
                raise UnreadableSourceError(
                    source, f"it unpacks to {size:,} bytes", "hand in a smaller file"
                )
            yield Package(archive)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise UnreadableSourceError(
            source,
            f"this is no {kind} file, or a broken or encrypted one",
            "open it in an office program and save it again, without a password",
        ) from error
    except (ET.ParseError, KeyError, ValueError, RuntimeError) as error:
        # A RecursionError is a RuntimeError, and so is the want of a password.
        raise UnreadableSourceError(
            source,
            f"this {kind} file is broken: what should be in it is missing or misplaced",
            "open it in an office program and save it again",
        ) from error


def parse_xml(data: bytes) -> Xml:
    """Return the root of an XML document that declares no entities of its own."""
    if any(mark in data for mark in _ENTITIES):
        msg = "it declares entities"
        raise ValueError(msg)
    return ET.fromstring(data)  # noqa: S314 -- without entities there is nothing to expand


def local(node: Xml) -> str:
    """Return the name of an element without its namespace: there are two of each."""
    return node.tag.rpartition("}")[2] if isinstance(node.tag, str) else ""


def attribute(node: Xml | None, name: str) -> str | None:
    """Return an attribute by its name without the namespace."""
    if node is None:
        return None
    for key, value in node.attrib.items():
        if key.rpartition("}")[2] == name:
            return value
    return None


def child(node: Xml | None, *path: str) -> Xml | None:
    """Return the first element at a path of names below *node*."""
    for name in path:
        if node is None:
            return None
        node = next((one for one in node if local(one) == name), None)
    return node


def inner(node: Xml, name: str) -> Xml:
    """Return the element of a name in *node*, or *node* if there is none."""
    found = child(node, name)
    return node if found is None else found
