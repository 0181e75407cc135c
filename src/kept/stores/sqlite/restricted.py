"""Restricted reading: a connection that shows what one principal may read.

SQLite has no row-level security, but names of the temporary schema go before those of
the file. So views of the names of our tables stand between a statement and its table,
and every statement, whoever wrote it, meets the readable rows alone: also those that
count, and the sums behind word weights and fingerprints.
"""

import apsw

from kept.stores.row_writer import ORD_BITS
from kept.stores.sql import first
from kept.text.access import Principal

# Similarities are of pairs of documents, one of which may not be readable.
_VIEWS = """
CREATE TEMP TABLE readable (
    tenant_no INTEGER, acl_no INTEGER, PRIMARY KEY (tenant_no, acl_no)
) WITHOUT ROWID;
CREATE TEMP TABLE asking (key TEXT);

CREATE TEMP VIEW documents AS SELECT * FROM main.documents t
    WHERE t.live AND (t.tenant_no, t.acl_no) IN temp.readable;
CREATE TEMP VIEW chunks AS SELECT * FROM main.chunks t
    WHERE EXISTS (SELECT 1 FROM temp.documents d WHERE d.no = t.document_no);
CREATE TEMP VIEW vectors AS SELECT * FROM main.vectors t
    WHERE EXISTS (SELECT 1 FROM temp.documents d WHERE d.no = t.no >> :ord_bits);
CREATE TEMP VIEW chunk_tags AS SELECT * FROM main.chunk_tags t
    WHERE EXISTS (SELECT 1 FROM temp.documents d WHERE d.no = t.no >> :ord_bits);
CREATE TEMP VIEW sketches AS SELECT * FROM main.sketches t
    WHERE EXISTS (SELECT 1 FROM temp.documents d WHERE d.no = t.document_no);
CREATE TEMP VIEW aliases AS SELECT * FROM main.aliases t
    WHERE EXISTS (SELECT 1 FROM temp.documents d WHERE d.no = t.document_no);
CREATE TEMP VIEW sources AS SELECT * FROM main.sources t
    WHERE EXISTS (SELECT 1 FROM temp.documents d WHERE d.no = t.document_no);
CREATE TEMP VIEW similarities AS SELECT * FROM main.similarities WHERE FALSE;
CREATE TEMP VIEW ledger AS SELECT * FROM main.ledger t
    WHERE EXISTS (SELECT 1 FROM temp.documents d WHERE d.id = t.document_id);
CREATE TEMP VIEW queries AS SELECT * FROM main.queries t
    WHERE t.asker IN (SELECT key FROM temp.asking);

CREATE TEMP VIEW acls AS SELECT * FROM main.acls t
    WHERE (t.tenant_no, t.no) IN temp.readable;
CREATE TEMP VIEW terms AS SELECT * FROM main.terms t
    WHERE (t.tenant_no, t.acl_no) IN temp.readable;
CREATE TEMP VIEW languages AS SELECT * FROM main.languages t
    WHERE (t.tenant_no, t.acl_no) IN temp.readable;
""".replace(":ord_bits", str(ORD_BITS))


def veil(connection: apsw.Connection) -> None:
    """Put the views in front of the tables; they show nothing yet."""
    connection.pragma("temp_store", "memory")
    connection.execute(_VIEWS)


def show(connection: apsw.Connection, tenant: str | None, asker: Principal) -> None:
    """Show what *asker* may read of a tenant, and nothing of any other."""
    connection.execute("DELETE FROM temp.readable; DELETE FROM temp.asking")
    connection.execute("INSERT INTO temp.asking VALUES (?)", (asker.key,))
    connection.executemany(
        "INSERT OR IGNORE INTO temp.readable SELECT r.tenant_no, r.acl_no"
        " FROM main.acl_readers r JOIN main.tenants t ON t.no = r.tenant_no"
        " WHERE t.name = ? AND r.reader = ?",
        [(tenant, name) for name in asker.names],
    )


def is_closed(connection: apsw.Connection, tenant: str) -> bool:
    """Return whether readers were declared in a tenant, so that all have to be."""
    sql = "SELECT 1 FROM main.tenants WHERE name = ? AND closed"
    return first(connection, sql, (tenant,)) is not None
