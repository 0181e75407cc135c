"""Cutting: a draft becomes a document with its chunks, every id stable."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kept.errors import InputError, UnreadableSourceError
from kept.ingest.plain_words import sketch_of
from kept.ingest.receipts import NewChunk, NewDocument, TextName
from kept.kernel.model import Chunk, Document
from kept.text.access import UNDECLARED, acl_text
from kept.text.chunking import chunk_text
from kept.text.draft import Draft, DraftPiece
from kept.text.sections import DEFAULT_SECTION_TAGS
from kept.text.tokens import count_tokens, detect_language, index_terms

_OF_DOCUMENTS = ("type", "title", "authority", "confidence", "time_horizon")
_OF_CHUNKS = ("role", "excerpt", "labels")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cutting:
    """How a text becomes chunks; *max_chunks* 0 lifts the cap."""

    max_chars: int = 800
    max_chunks: int = 0
    section_tags: Mapping[str, Sequence[str]] = field(
        default_factory=lambda: DEFAULT_SECTION_TAGS, hash=False
    )


def drafted(draft: Draft, tenant: str, uri: str, cutting: Cutting) -> NewDocument:
    """Return a draft as a document with its chunks cut and analysed."""
    text = _storable(draft.text)
    pieces = _pieces(draft, text, cutting)
    if not pieces[0]:
        problem, advice = "there is no text in it", "hand in something to read"
        raise UnreadableSourceError(uri, problem, advice)
    language = detect_language(text) or ""
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    return NewDocument(
        id=document_id(tenant, TextName(draft.type, sha256, acl_text(draft.readers))),
        type=draft.type,
        title=draft.title,
        source_uri=uri,
        sha256=sha256,
        text=text,
        language=language,
        sketch=sketch_of(text),
        chars_left_out=pieces[1],
        authority=draft.authority,
        confidence=draft.confidence,
        time_horizon=draft.time_horizon,
        metadata=draft.metadata,
        readers=draft.readers,
        chunks=tuple(
            NewChunk(
                text=piece.text,
                terms=tuple(
                    index_terms(titled(draft.title, piece.text), language or None)
                ),
                language=language,
                token_len=count_tokens(piece.text),
                tags=tuple(dict.fromkeys((*draft.tags, *piece.tags))),
                role=draft.role,
                excerpt=draft.excerpt,
                labels={**draft.labels, **piece.labels},
                metadata=piece.metadata,
            )
            for piece in pieces[0]
        ),
    )


def for_readers(
    new: NewDocument, tenant: str, readers: tuple[str, ...] | None
) -> NewDocument:
    """Return a document for other readers than were declared, which is another one."""
    made = replace(new, readers=readers)
    return replace(made, id=document_id(tenant, made.name))


def _pieces(draft: Draft, text: str, cutting: Cutting) -> tuple[list[DraftPiece], int]:
    """Return the chunks with the tags of their sections, and what was left out."""
    if draft.pieces is not None:
        given = [
            replace(piece, text=_storable(piece.text))
            for piece in draft.pieces
            if piece.text.strip()
        ]
        most = cutting.max_chunks or len(given)
        return given[:most], sum(len(piece.text) for piece in given[most:])
    cut = chunk_text(
        text,
        max_chars=cutting.max_chars,
        max_chunks=cutting.max_chunks,
        section_tags=cutting.section_tags,
    )
    pieces = [DraftPiece(piece.text, piece.tags) for piece in cut.pieces]
    return pieces, cut.chars_left_out


def _storable(text: str) -> str:
    """Return *text* with a replacement for every half a character."""
    return text.encode("utf-8", "replace").decode()


def revised(
    document: Document, chunks: Sequence[Chunk], changes: Mapping[str, Any], text: str
) -> Draft:
    """Return the draft of a stored document with *text* and *changes*.

    Metadata is merged key by key, and None removes a key.
    """
    declared = redeclared(document, chunks)
    merged = {**declared["metadata"], **(changes.get("metadata") or {})}
    metadata = {key: value for key, value in merged.items() if value is not None}
    return Draft(**{**declared, **changes, "metadata": metadata, "text": text})


def demand_same_cut(
    draft: Draft, document: Document, chunks: Sequence[Chunk], cutting: Cutting
) -> None:
    """Raise unless the text of a stored document is still cut as it was."""
    new = drafted(draft, "", document.source_uri, cutting)
    if [chunk.text for chunk in new.chunks] != [chunk.text for chunk in chunks]:
        msg = (
            f"document {document.id} was cut in another way than the settings say; "
            "give its text too, or ingest its source again"
        )
        raise InputError(msg)


def redeclared(document: Document, chunks: Sequence[Chunk]) -> dict[str, Any]:
    """Return the fields that a stored document's draft declared."""
    first = chunks[0]
    return {
        **{name: getattr(document, name) for name in _OF_DOCUMENTS},
        **{name: getattr(first, name) for name in _OF_CHUNKS},
        # Declared tags are on every chunk; a section's own tags are on some.
        "tags": [tag for tag in first.tags if all(tag in c.tags for c in chunks)],
        "metadata": dict(document.metadata),
    }


def passage(new: NewDocument, place: int) -> str:
    """Return what is embedded for a chunk: its text, under the document's title."""
    return titled(new.title, new.chunks[place].text)


def titled(title: str, text: str) -> str:
    """Return *text* under *title*, unless it holds it already."""
    return text if not title or title in text else f"{title}\n{text}"


def document_id(tenant: str, name: TextName) -> str:
    """Return the id of a document: the same tenant, type and text give the same.

    Declared readers are part of it: the same text for others is another document.
    """
    return _digest("d", tenant, *_named(name))


def alias_id(tenant: str, new: NewDocument, uri: str) -> str:
    """Return the id of an alias, the same on every machine."""
    return _digest("a", tenant, *_named(new.name), uri)


def _named(name: TextName) -> tuple[str, ...]:
    """Return what names a text; the readers only where some are declared."""
    own = (name.type, name.sha256)
    return own if name.acl == UNDECLARED else (*own, name.acl)


def _digest(kind: str, *parts: str) -> str:
    joined = "\0".join((kind, *parts)).encode("utf-8", "surrogatepass")
    return kind + hashlib.sha256(joined).hexdigest()[:23]
