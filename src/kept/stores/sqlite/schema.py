"""The tables of the embedded store, and their migrations."""

import apsw

from kept.errors import StoreError, StoreTooNewError

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE tenants (
        no INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        seq INTEGER NOT NULL DEFAULT 0,
        chunks INTEGER NOT NULL DEFAULT 0,
        terms INTEGER NOT NULL DEFAULT 0,
        state BLOB NOT NULL,
        overrides TEXT NOT NULL DEFAULT '{}'
    );
    CREATE TABLE documents (
        no INTEGER PRIMARY KEY,
        tenant_no INTEGER NOT NULL REFERENCES tenants (no),
        id TEXT NOT NULL UNIQUE,
        type TEXT NOT NULL,
        title TEXT NOT NULL,
        source_uri TEXT NOT NULL,
        sha256 TEXT NOT NULL,
        text TEXT NOT NULL,
        opening TEXT NOT NULL,
        language TEXT NOT NULL,
        authority TEXT,
        confidence REAL,
        time_horizon TEXT,
        metadata TEXT NOT NULL,
        chunk_count INTEGER NOT NULL,
        chars_left_out INTEGER NOT NULL,
        age INTEGER NOT NULL,
        live INTEGER NOT NULL,
        superseded_by TEXT,
        created_at TEXT NOT NULL,
        UNIQUE (tenant_no, type, sha256)
    );
    CREATE INDEX documents_by_age ON documents (tenant_no, type, age);
    CREATE INDEX documents_by_opening
        ON documents (tenant_no, type, substr(opening, 1, 48));
    CREATE TABLE chunks (
        no INTEGER PRIMARY KEY,
        document_no INTEGER NOT NULL REFERENCES documents (no),
        ord INTEGER NOT NULL,
        text TEXT NOT NULL,
        token_len INTEGER NOT NULL,
        tags TEXT NOT NULL,
        role TEXT,
        excerpt INTEGER NOT NULL,
        labels TEXT NOT NULL,
        metadata TEXT NOT NULL,
        language TEXT NOT NULL,
        length INTEGER NOT NULL,
        terms BLOB NOT NULL
    );
    CREATE INDEX chunks_by_document ON chunks (document_no, ord);
    CREATE TABLE vectors (no INTEGER PRIMARY KEY, data BLOB NOT NULL);
    CREATE TABLE chunk_tags (
        tenant_no INTEGER NOT NULL, tag TEXT NOT NULL, no INTEGER NOT NULL,
        PRIMARY KEY (tenant_no, tag, no)
    ) WITHOUT ROWID;
    CREATE TABLE terms (
        tenant_no INTEGER NOT NULL, key INTEGER NOT NULL, df INTEGER NOT NULL,
        PRIMARY KEY (tenant_no, key)
    ) WITHOUT ROWID;
    CREATE TABLE languages (
        tenant_no INTEGER NOT NULL, language TEXT NOT NULL, chunks INTEGER NOT NULL,
        PRIMARY KEY (tenant_no, language)
    ) WITHOUT ROWID;
    CREATE TABLE changes (
        seq INTEGER PRIMARY KEY,
        tenant_no INTEGER NOT NULL,
        document_no INTEGER NOT NULL,
        chunks INTEGER NOT NULL
    );
    CREATE INDEX changes_by_tenant ON changes (tenant_no, seq);
    CREATE TABLE aliases (
        id TEXT PRIMARY KEY,
        tenant_no INTEGER NOT NULL,
        document_no INTEGER NOT NULL,
        type TEXT NOT NULL,
        title TEXT NOT NULL,
        source_uri TEXT NOT NULL,
        sha256 TEXT NOT NULL,
        text TEXT NOT NULL,
        draft TEXT NOT NULL,
        rule TEXT NOT NULL,
        similarity REAL NOT NULL,
        evidence TEXT NOT NULL,
        live INTEGER NOT NULL,
        created_at TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX aliases_by_document ON aliases (document_no);
    CREATE INDEX aliases_by_sha ON aliases (tenant_no, type, sha256);
    CREATE TABLE sources (
        tenant_no INTEGER NOT NULL,
        uri TEXT NOT NULL,
        raw_sha256 TEXT NOT NULL,
        document_no INTEGER NOT NULL,
        alias_id TEXT,
        PRIMARY KEY (tenant_no, uri)
    ) WITHOUT ROWID;
    CREATE INDEX sources_by_document ON sources (document_no);
    CREATE TABLE ledger (
        no INTEGER PRIMARY KEY,
        tenant_no INTEGER NOT NULL,
        at TEXT NOT NULL,
        status TEXT NOT NULL,
        document_id TEXT,
        alias_id TEXT,
        source_uri TEXT NOT NULL,
        rule TEXT,
        similarity REAL,
        chunks INTEGER NOT NULL,
        chars INTEGER NOT NULL,
        chars_left_out INTEGER NOT NULL,
        evidence TEXT NOT NULL,
        error TEXT
    );
    CREATE INDEX ledger_by_tenant ON ledger (tenant_no, no);
    CREATE TABLE similarities (
        no INTEGER PRIMARY KEY,
        tenant_no INTEGER NOT NULL,
        rule TEXT NOT NULL,
        similarity REAL NOT NULL,
        accepted INTEGER NOT NULL
    );
    CREATE INDEX similarities_by_tenant ON similarities (tenant_no, rule);
    CREATE TABLE queries (
        no INTEGER PRIMARY KEY,
        tenant_no INTEGER NOT NULL,
        at TEXT NOT NULL,
        preset TEXT NOT NULL,
        question TEXT,
        question_sha256 TEXT NOT NULL,
        request TEXT NOT NULL,
        knowledge_base TEXT NOT NULL,
        configuration TEXT NOT NULL,
        code TEXT NOT NULL,
        result_sha256 TEXT NOT NULL,
        result TEXT NOT NULL
    );
    CREATE INDEX queries_by_tenant ON queries (tenant_no, no);
    """,
    """
    CREATE TABLE access_keys (
        id TEXT PRIMARY KEY,
        tenant TEXT,
        principal TEXT NOT NULL,
        role TEXT NOT NULL,
        digest BLOB NOT NULL,
        rate INTEGER,
        created_at TEXT NOT NULL,
        revoked_at TEXT
    ) WITHOUT ROWID;
    CREATE TABLE browser_sessions (
        digest BLOB PRIMARY KEY,
        key_id TEXT NOT NULL REFERENCES access_keys (id),
        expires INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE tenant_policies (
        tenant TEXT PRIMARY KEY, policy TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE jobs (
        no INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        tenant TEXT NOT NULL,
        principal TEXT NOT NULL,
        key_id TEXT NOT NULL,
        state TEXT NOT NULL,
        cancel INTEGER NOT NULL DEFAULT 0,
        items TEXT NOT NULL,
        done INTEGER NOT NULL DEFAULT 0,
        counts TEXT NOT NULL DEFAULT '{}',
        error TEXT,
        created_at TEXT NOT NULL,
        started_at TEXT,
        ended_at TEXT
    );
    CREATE INDEX jobs_by_tenant ON jobs (tenant, no);
    CREATE INDEX jobs_by_state ON jobs (state, no);
    CREATE TABLE job_receipts (
        job_no INTEGER NOT NULL REFERENCES jobs (no),
        place INTEGER NOT NULL,
        receipt TEXT NOT NULL,
        PRIMARY KEY (job_no, place)
    ) WITHOUT ROWID;
    CREATE TABLE audit (
        tenant TEXT NOT NULL,
        no INTEGER NOT NULL,
        at TEXT NOT NULL,
        principal TEXT NOT NULL,
        key_id TEXT NOT NULL,
        role TEXT NOT NULL,
        action TEXT NOT NULL,
        outcome TEXT NOT NULL,
        target TEXT,
        question TEXT,
        question_sha256 TEXT,
        facts TEXT NOT NULL,
        PRIMARY KEY (tenant, no)
    ) WITHOUT ROWID;
    CREATE TABLE idempotency (
        tenant TEXT NOT NULL,
        key_id TEXT NOT NULL,
        key TEXT NOT NULL,
        request TEXT NOT NULL,
        run TEXT NOT NULL,
        status INTEGER,
        headers TEXT,
        body BLOB,
        at INTEGER NOT NULL,
        PRIMARY KEY (tenant, key_id, key)
    ) WITHOUT ROWID;
    CREATE INDEX idempotency_by_age ON idempotency (at);
    """,
    """
    ALTER TABLE queries ADD COLUMN number INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE queries ADD COLUMN id TEXT NOT NULL DEFAULT '';
    ALTER TABLE queries ADD COLUMN path BLOB;
    UPDATE queries SET number = counted.number FROM (
        SELECT no, ROW_NUMBER() OVER (PARTITION BY tenant_no ORDER BY no) AS number
        FROM queries
    ) AS counted WHERE counted.no = queries.no;
    DROP INDEX queries_by_tenant;
    CREATE UNIQUE INDEX queries_by_number ON queries (tenant_no, number);
    CREATE INDEX queries_by_id ON queries (tenant_no, id) WHERE id <> '';
    ALTER TABLE ledger ADD COLUMN number INTEGER NOT NULL DEFAULT 0;
    UPDATE ledger SET number = counted.number FROM (
        SELECT no, ROW_NUMBER() OVER (PARTITION BY tenant_no ORDER BY no) AS number
        FROM ledger
    ) AS counted WHERE counted.no = ledger.no;
    DROP INDEX ledger_by_tenant;
    CREATE UNIQUE INDEX ledger_by_number ON ledger (tenant_no, number);
    """,
    """
    CREATE VIEW states AS
        SELECT no AS tenant_no, seq, chunks, terms, state, overrides FROM tenants;
    """,
    """
    CREATE TABLE sketches (
        tenant_no INTEGER NOT NULL, key INTEGER NOT NULL, document_no INTEGER NOT NULL,
        PRIMARY KEY (tenant_no, key, document_no)
    ) WITHOUT ROWID;
    ALTER TABLE changes ADD COLUMN token INTEGER NOT NULL DEFAULT 0;
    """,
    # SQLite cannot add a column to a UNIQUE constraint or a primary key, so documents,
    # terms and languages are made again. Renaming the old table first would rename it
    # in the foreign keys that refer to it, too.
    """
    ALTER TABLE tenants ADD COLUMN closed INTEGER NOT NULL DEFAULT 0;
    DROP VIEW states;
    CREATE VIEW states AS
        SELECT no AS tenant_no, seq, chunks, terms, state, overrides, closed
        FROM tenants;
    CREATE TABLE acls (
        tenant_no INTEGER NOT NULL,
        no INTEGER NOT NULL,
        readers TEXT NOT NULL,
        chunks INTEGER NOT NULL DEFAULT 0,
        terms INTEGER NOT NULL DEFAULT 0,
        state BLOB NOT NULL,
        PRIMARY KEY (tenant_no, no)
    ) WITHOUT ROWID;
    CREATE UNIQUE INDEX acls_by_readers ON acls (tenant_no, readers);
    CREATE TABLE acl_readers (
        tenant_no INTEGER NOT NULL, reader TEXT NOT NULL, acl_no INTEGER NOT NULL,
        PRIMARY KEY (tenant_no, reader, acl_no)
    ) WITHOUT ROWID;
    INSERT INTO acls SELECT no, 0, '', chunks, terms, state FROM tenants;
    CREATE TABLE documents_new (
        no INTEGER PRIMARY KEY,
        tenant_no INTEGER NOT NULL REFERENCES tenants (no),
        id TEXT NOT NULL UNIQUE,
        type TEXT NOT NULL,
        title TEXT NOT NULL,
        source_uri TEXT NOT NULL,
        sha256 TEXT NOT NULL,
        text TEXT NOT NULL,
        opening TEXT NOT NULL,
        language TEXT NOT NULL,
        authority TEXT,
        confidence REAL,
        time_horizon TEXT,
        metadata TEXT NOT NULL,
        chunk_count INTEGER NOT NULL,
        chars_left_out INTEGER NOT NULL,
        age INTEGER NOT NULL,
        live INTEGER NOT NULL,
        superseded_by TEXT,
        created_at TEXT NOT NULL,
        readers TEXT NOT NULL DEFAULT '',
        acl_no INTEGER NOT NULL DEFAULT 0,
        UNIQUE (tenant_no, type, sha256, readers)
    );
    INSERT INTO documents_new SELECT *, '', 0 FROM documents;
    DROP TABLE documents;
    ALTER TABLE documents_new RENAME TO documents;
    CREATE INDEX documents_by_age ON documents (tenant_no, type, age);
    CREATE INDEX documents_by_opening
        ON documents (tenant_no, type, substr(opening, 1, 48));
    CREATE INDEX documents_by_acl ON documents (tenant_no, acl_no, live, chunk_count);
    CREATE TABLE terms_new (
        tenant_no INTEGER NOT NULL, key INTEGER NOT NULL, acl_no INTEGER NOT NULL,
        df INTEGER NOT NULL,
        PRIMARY KEY (tenant_no, key, acl_no)
    ) WITHOUT ROWID;
    INSERT INTO terms_new SELECT tenant_no, key, 0, df FROM terms;
    DROP TABLE terms;
    ALTER TABLE terms_new RENAME TO terms;
    CREATE TABLE languages_new (
        tenant_no INTEGER NOT NULL, language TEXT NOT NULL, acl_no INTEGER NOT NULL,
        chunks INTEGER NOT NULL,
        PRIMARY KEY (tenant_no, language, acl_no)
    ) WITHOUT ROWID;
    INSERT INTO languages_new SELECT tenant_no, language, 0, chunks FROM languages;
    DROP TABLE languages;
    ALTER TABLE languages_new RENAME TO languages;
    ALTER TABLE queries ADD COLUMN asker TEXT NOT NULL DEFAULT '';
    """,
    """
    ALTER TABLE access_keys ADD COLUMN groups TEXT;
    """,
    """
    ALTER TABLE sources ADD COLUMN readers TEXT;
    """,
)

VERSION = len(MIGRATIONS)


def migrate(connection: apsw.Connection, where: str) -> None:
    """Bring the tables up to this version, or say that they are from a newer one."""
    if _version(connection) == VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        found = _version(connection)
        if found > VERSION:
            msg = (
                f"{where} has schema {found}, this version of Kept knows up to "
                f"{VERSION}; upgrade Kept to open it"
            )
            raise StoreTooNewError(msg)
        if not found and connection.execute("SELECT 1 FROM sqlite_schema").fetchone():
            msg = (
                f"{where} holds tables of another program, which stay as they are; "
                "choose another --store"
            )
            raise StoreError(msg)
        for script in MIGRATIONS[found:]:
            connection.execute(script)
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _version(connection: apsw.Connection) -> int:
    return int(connection.pragma("user_version"))
