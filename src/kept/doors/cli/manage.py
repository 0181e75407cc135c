"""Looking after a knowledge base: documents, ledger, aliases, delete."""

from pathlib import Path
from typing import Annotated

import typer

from kept.doors.cli import options
from kept.doors.cli.output import (
    complain,
    counted,
    number,
    print_json,
    print_table,
    say,
    shortened,
)
from kept.errors import NotFoundError
from kept.knowledge_base.readers import assign_readers, assignments_in
from kept.search.render import alias_json, document_json, ledger_json, receipt_json

SOME_UNKNOWN = 7


def documents(
    store: options.Store = None,
    tenant: options.Tenant = None,
    all_versions: Annotated[
        bool, typer.Option("--all", help="Superseded versions too.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """List the documents, oldest first."""
    with options.opened(options.settings_of(store=store, tenant=tenant)) as base:
        rows = base.store.documents(base.tenant, all_versions=all_versions)
    if as_json:
        print_json({"documents": [document_json(row) for row in rows]})
        return
    print_table(
        ("document", "title", "chunks", "left out", "language", "readers", "source"),
        [
            (
                row.document.id,
                shortened(row.document.title, 50),
                row.document.chunk_count,
                row.chars_left_out or "",
                row.language,
                ", ".join(row.readers or ()),
                row.document.source_uri,
            )
            for row in rows
        ],
    )


def ledger(
    store: options.Store = None,
    tenant: options.Tenant = None,
    limit: Annotated[int, typer.Option(min=1, help="How many lines.")] = 100,
    similarities: Annotated[
        bool,
        typer.Option("--similarities", help="Distribution of compared similarities."),
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Show what became of everything that was handed in."""
    with options.opened(options.settings_of(store=store, tenant=tenant)) as base:
        if similarities:
            histogram = base.similarity_histogram()
            if as_json:
                print_json({"similarities": histogram})
            else:
                print_table(
                    ("rule", "from", "accepted", "rejected"),
                    [
                        (row["rule"], row["from"], row["accepted"], row["rejected"])
                        for row in histogram
                    ],
                )
            return
        rows = base.store.ledger(base.tenant, limit)
    if as_json:
        print_json({"ledger": [ledger_json(row) for row in rows]})
        return
    print_table(
        ("at", "status", "rule", "similarity", "chunks", "left out", "source", "error"),
        [
            (
                row.at[:19],
                row.receipt.status,
                row.receipt.rule,
                number(row.receipt.similarity),
                row.receipt.chunks,
                row.receipt.chars_left_out or "",
                row.receipt.source_uri,
                row.receipt.error,
            )
            for row in rows
        ],
    )


def aliases(
    undo: Annotated[
        str | None,
        typer.Option(
            "--undo",
            help="Make this alias a document of its own; an exact copy is forgotten.",
        ),
    ] = None,
    store: options.Store = None,
    tenant: options.Tenant = None,
    embedder: options.Embedder = None,
    as_json: options.AsJson = False,
) -> None:
    """List the texts that were reused rather than stored, or undo one."""
    settings = options.settings_of(store=store, tenant=tenant, embedder=embedder)
    with options.opened(settings) as base:
        if undo is not None:
            receipt = base.undo(undo)
            if as_json:
                print_json(receipt_json(receipt))
            elif receipt.status == "deleted":
                say(f"forgotten: an exact copy of {receipt.document_id}, which stays")
            else:
                say(f"{receipt.status}: {receipt.document_id}")
            return
        rows = base.store.aliases(base.tenant)
    if as_json:
        print_json({"aliases": [alias_json(row) for row in rows]})
        return
    print_table(
        ("alias", "stands for", "rule", "similarity", "source"),
        [
            (row.id, row.canonical_id, row.rule, number(row.similarity), row.source_uri)
            for row in rows
        ],
    )


def readers(
    assigned: Annotated[
        Path,
        typer.Argument(help="JSON lines or CSV with source_uri and readers."),
    ],
    store: options.Store = None,
    tenant: options.Tenant = None,
    embedder: options.Embedder = None,
    as_json: options.AsJson = False,
) -> None:
    """Assign readers to sources by a list, whatever their files declare.

    They stay with a source when its file changes, until another list assigns others;
    null takes them away. Ends with 7 if sources of the list are unknown.

    For example: kept readers access.jsonl --store ./kb
    """
    rows = list(assignments_in(assigned))
    unknown = 0
    settings = options.settings_of(store=store, tenant=tenant, embedder=embedder)
    with options.opened(settings) as base:
        for row in rows:
            try:
                receipt = assign_readers(base, row.source_uri, row.readers)
            except NotFoundError as error:
                unknown += 1
                complain(str(error))
                continue
            if as_json:
                print_json(receipt_json(receipt))
    if not as_json:
        say(f"{counted(len(rows) - unknown, 'source')} assigned, {unknown} unknown")
    if unknown:
        raise typer.Exit(SOME_UNKNOWN)


def delete(
    document: Annotated[str, typer.Argument(help="The document id.")],
    store: options.Store = None,
    tenant: options.Tenant = None,
    with_aliases: Annotated[
        bool, typer.Option("--with-aliases", help="The texts it stands for too.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Delete DOCUMENT for good."""
    with options.opened(options.settings_of(store=store, tenant=tenant)) as base:
        receipt = base.delete(document, with_aliases=with_aliases)
    if as_json:
        print_json(receipt_json(receipt))
    else:
        say(f"deleted {receipt.document_id} ({counted(receipt.chunks, 'chunk')})")
