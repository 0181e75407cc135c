"""The tables of documents, chunks and what makes them findable.

A tenant's rows are shown to that tenant only; the list of tenants' names is not
secret. Texts that are JSON stay as they were written, since the fingerprint of a
state is made from them.
"""

from kept.stores.postgres.migrations import Module, guarded

_TABLES = """
CREATE TABLE kept.meta (key text PRIMARY KEY, value text NOT NULL);
CREATE TABLE kept.tenants (
    no integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE pg_catalog."C" NOT NULL UNIQUE
);
CREATE FUNCTION kept.current_tenant() RETURNS integer
    LANGUAGE sql STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS $$
        SELECT no FROM kept.tenants
        WHERE name = pg_catalog.current_setting('kept.tenant', true)
    $$;
CREATE TABLE kept.states (
    tenant_no integer PRIMARY KEY REFERENCES kept.tenants (no),
    seq bigint NOT NULL DEFAULT 0,
    chunks bigint NOT NULL DEFAULT 0,
    terms bigint NOT NULL DEFAULT 0,
    state bytea NOT NULL,
    overrides text NOT NULL DEFAULT '{}'
);
CREATE TABLE kept.changes (
    tenant_no integer NOT NULL,
    seq bigint NOT NULL,
    document_no bigint NOT NULL,
    chunks integer NOT NULL,
    PRIMARY KEY (tenant_no, seq)
);
CREATE TABLE kept.documents (
    tenant_no integer NOT NULL REFERENCES kept.tenants (no),
    no bigint NOT NULL,
    id text COLLATE pg_catalog."C" NOT NULL,
    type text COLLATE pg_catalog."C" NOT NULL,
    title text NOT NULL,
    source_uri text NOT NULL,
    sha256 text COLLATE pg_catalog."C" NOT NULL,
    text text NOT NULL,
    opening text COLLATE pg_catalog."C" NOT NULL,
    language text NOT NULL,
    authority text,
    confidence double precision,
    time_horizon text,
    metadata text NOT NULL,
    chunk_count integer NOT NULL,
    chars_left_out bigint NOT NULL,
    age bigint NOT NULL,
    live boolean NOT NULL,
    superseded_by text,
    created_at text NOT NULL,
    PRIMARY KEY (tenant_no, no),
    UNIQUE (tenant_no, id),
    UNIQUE (tenant_no, type, sha256)
);
CREATE INDEX documents_by_age ON kept.documents (tenant_no, type, age);
CREATE INDEX documents_by_opening
    ON kept.documents (tenant_no, type, pg_catalog.substr(opening, 1, 48));
CREATE TABLE kept.chunks (
    tenant_no integer NOT NULL,
    no bigint NOT NULL,
    document_no bigint NOT NULL,
    ord integer NOT NULL,
    text text NOT NULL,
    token_len integer NOT NULL,
    tags text NOT NULL,
    role text,
    excerpt boolean NOT NULL,
    labels text NOT NULL,
    metadata text NOT NULL,
    language text NOT NULL,
    length integer NOT NULL,
    terms bytea NOT NULL,
    PRIMARY KEY (tenant_no, no),
    FOREIGN KEY (tenant_no, document_no)
        REFERENCES kept.documents (tenant_no, no) ON DELETE CASCADE
);
CREATE INDEX chunks_by_document ON kept.chunks (tenant_no, document_no, ord);
CREATE TABLE kept.vectors (
    tenant_no integer NOT NULL,
    epoch integer NOT NULL,
    no bigint NOT NULL,
    live boolean NOT NULL,
    embedding {vector}.vector NOT NULL,
    PRIMARY KEY (tenant_no, epoch, no),
    FOREIGN KEY (tenant_no, no)
        REFERENCES kept.chunks (tenant_no, no) ON DELETE CASCADE
);
CREATE INDEX vectors_by_chunk ON kept.vectors (tenant_no, no);
CREATE TABLE kept.postings (
    tenant_no integer NOT NULL,
    length integer NOT NULL,
    key bigint NOT NULL,
    no bigint NOT NULL,
    count integer NOT NULL
);
CREATE UNIQUE INDEX postings_by_key
    ON kept.postings (tenant_no, key, no) INCLUDE (count, length);
CREATE TABLE kept.terms (
    tenant_no integer NOT NULL,
    df integer NOT NULL,
    key bigint NOT NULL,
    PRIMARY KEY (tenant_no, key)
) WITH (fillfactor = 80);
CREATE TABLE kept.languages (
    tenant_no integer NOT NULL,
    language text COLLATE pg_catalog."C" NOT NULL,
    chunks bigint NOT NULL,
    PRIMARY KEY (tenant_no, language)
);
CREATE TABLE kept.chunk_tags (
    tenant_no integer NOT NULL,
    no bigint NOT NULL,
    tag text COLLATE pg_catalog."C" NOT NULL,
    PRIMARY KEY (tenant_no, tag, no)
);
CREATE TABLE kept.facts (
    tenant_no integer NOT NULL,
    document_no bigint NOT NULL,
    key bigint NOT NULL,
    atom bigint,
    shown text COLLATE pg_catalog."C",
    FOREIGN KEY (tenant_no, document_no)
        REFERENCES kept.documents (tenant_no, no) ON DELETE CASCADE
);
CREATE INDEX facts_by_document ON kept.facts (tenant_no, document_no);
CREATE INDEX facts_by_atom ON kept.facts (tenant_no, atom) WHERE atom IS NOT NULL;
CREATE INDEX facts_by_key
    ON kept.facts (tenant_no, key, shown) WHERE shown IS NOT NULL;
CREATE TABLE kept.aliases (
    tenant_no integer NOT NULL,
    id text COLLATE pg_catalog."C" NOT NULL,
    document_no bigint NOT NULL,
    type text COLLATE pg_catalog."C" NOT NULL,
    title text NOT NULL,
    source_uri text NOT NULL,
    sha256 text COLLATE pg_catalog."C" NOT NULL,
    text text NOT NULL,
    draft text NOT NULL,
    rule text NOT NULL,
    similarity double precision NOT NULL,
    evidence text NOT NULL,
    live boolean NOT NULL,
    created_at text NOT NULL,
    PRIMARY KEY (tenant_no, id),
    FOREIGN KEY (tenant_no, document_no)
        REFERENCES kept.documents (tenant_no, no) ON DELETE CASCADE
);
CREATE INDEX aliases_by_document ON kept.aliases (tenant_no, document_no);
CREATE INDEX aliases_by_sha ON kept.aliases (tenant_no, type, sha256);
CREATE TABLE kept.sources (
    tenant_no integer NOT NULL,
    uri text COLLATE pg_catalog."C" NOT NULL,
    raw_sha256 text NOT NULL,
    document_no bigint NOT NULL,
    alias_id text COLLATE pg_catalog."C",
    PRIMARY KEY (tenant_no, uri),
    FOREIGN KEY (tenant_no, document_no)
        REFERENCES kept.documents (tenant_no, no) ON DELETE CASCADE
);
CREATE INDEX sources_by_document ON kept.sources (tenant_no, document_no);
CREATE INDEX sources_by_alias ON kept.sources (tenant_no, alias_id);
CREATE TABLE kept.ledger (
    tenant_no integer NOT NULL,
    number bigint NOT NULL,
    at text NOT NULL,
    status text NOT NULL,
    document_id text COLLATE pg_catalog."C",
    alias_id text,
    source_uri text NOT NULL,
    rule text,
    similarity double precision,
    chunks integer NOT NULL,
    chars bigint NOT NULL,
    chars_left_out bigint NOT NULL,
    evidence text NOT NULL,
    error text,
    PRIMARY KEY (tenant_no, number)
);
CREATE INDEX ledger_by_document ON kept.ledger (tenant_no, document_id);
CREATE TABLE kept.similarities (
    tenant_no integer NOT NULL,
    no bigint GENERATED ALWAYS AS IDENTITY,
    rule text NOT NULL,
    similarity double precision NOT NULL,
    accepted boolean NOT NULL,
    PRIMARY KEY (tenant_no, no)
);
ALTER TABLE kept.tenants ENABLE ROW LEVEL SECURITY;
ALTER TABLE kept.tenants FORCE ROW LEVEL SECURITY;
CREATE POLICY names_are_known ON kept.tenants FOR SELECT USING (true);
CREATE POLICY of_one_tenant ON kept.tenants FOR INSERT
    WITH CHECK (name = pg_catalog.current_setting('kept.tenant', true));
"""
GUARDED = (
    "states",
    "changes",
    "documents",
    "chunks",
    "vectors",
    "postings",
    "terms",
    "languages",
    "chunk_tags",
    "facts",
    "aliases",
    "sources",
    "ledger",
    "similarities",
)

_SKETCHES = """
CREATE TABLE kept.sketches (
    tenant_no integer NOT NULL,
    key bigint NOT NULL,
    document_no bigint NOT NULL,
    PRIMARY KEY (tenant_no, key, document_no)
);
"""

# The list of readers stands beside the tenant in keys: four bytes that were padding.
_ACLS = """
CREATE TABLE kept.acls (
    tenant_no integer NOT NULL,
    no integer NOT NULL,
    readers text COLLATE pg_catalog."C" NOT NULL,
    chunks bigint NOT NULL DEFAULT 0,
    terms bigint NOT NULL DEFAULT 0,
    state bytea NOT NULL,
    PRIMARY KEY (tenant_no, no),
    UNIQUE (tenant_no, readers)
);
CREATE TABLE kept.acl_readers (
    tenant_no integer NOT NULL,
    reader text COLLATE pg_catalog."C" NOT NULL,
    acl_no integer NOT NULL,
    PRIMARY KEY (tenant_no, reader, acl_no)
);
ALTER TABLE kept.states ADD COLUMN closed boolean NOT NULL DEFAULT false;
ALTER TABLE kept.states NO FORCE ROW LEVEL SECURITY;
INSERT INTO kept.acls SELECT tenant_no, 0, '', chunks, terms, state FROM kept.states;
ALTER TABLE kept.states FORCE ROW LEVEL SECURITY;
ALTER TABLE kept.documents
    ADD COLUMN readers text COLLATE pg_catalog."C" NOT NULL DEFAULT '',
    ADD COLUMN acl_no integer NOT NULL DEFAULT 0,
    DROP CONSTRAINT documents_tenant_no_type_sha256_key,
    ADD CONSTRAINT documents_of_one_text UNIQUE (tenant_no, type, sha256, readers);
ALTER TABLE kept.chunks ADD COLUMN acl_no integer NOT NULL DEFAULT 0;
ALTER TABLE kept.vectors ADD COLUMN acl_no integer NOT NULL DEFAULT 0;
ALTER TABLE kept.postings ADD COLUMN acl_no integer NOT NULL DEFAULT 0;
DROP INDEX kept.postings_by_key;
CREATE UNIQUE INDEX postings_by_key
    ON kept.postings (tenant_no, acl_no, key, no) INCLUDE (count, length);
ALTER TABLE kept.terms
    ADD COLUMN acl_no integer NOT NULL DEFAULT 0,
    DROP CONSTRAINT terms_pkey,
    ADD PRIMARY KEY (tenant_no, acl_no, key);
ALTER TABLE kept.languages
    ADD COLUMN acl_no integer NOT NULL DEFAULT 0,
    DROP CONSTRAINT languages_pkey,
    ADD PRIMARY KEY (tenant_no, acl_no, language);
CREATE FUNCTION kept.sees_all() RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS $$
        SELECT current_setting('kept.readers', true) = '*'
            OR current_setting('kept.readers', true) <> '' AND NOT coalesce(
                (SELECT closed FROM kept.states
                 WHERE tenant_no = kept.current_tenant()), false)
    $$;
CREATE FUNCTION kept.readable() RETURNS integer[]
    LANGUAGE sql STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS $$
        SELECT array_agg(acl_no) FROM kept.acl_readers
        WHERE tenant_no = kept.current_tenant() AND reader IN (
            SELECT json_array_elements_text(
                CASE WHEN current_setting('kept.readers', true) IN ('', '*')
                    THEN '[]' ELSE current_setting('kept.readers', true) END::json))
    $$;
"""
_SEES_ALL = "(SELECT kept.sees_all())"
_LISTED = f"{_SEES_ALL} OR {{}} = ANY ((SELECT kept.readable())::integer[])"
_OF_DOCUMENT = (
    f"{_SEES_ALL} OR EXISTS (SELECT 1 FROM kept.documents d"  # noqa: S608 -- ours
    " WHERE d.tenant_no = {0}.tenant_no AND d.no = {0}.document_no)"
)
_READABLE = {
    "documents": f"{_SEES_ALL} OR (live AND {_LISTED.format('acl_no')})",
    **dict.fromkeys(
        ("chunks", "vectors", "postings", "terms", "languages"),
        _LISTED.format("acl_no"),
    ),
    "acls": _LISTED.format("no"),
    "chunk_tags": f"{_SEES_ALL} OR EXISTS (SELECT 1 FROM kept.chunks c"  # noqa: S608 -- ours
    " WHERE c.tenant_no = chunk_tags.tenant_no AND c.no = chunk_tags.no)",
    **{name: _OF_DOCUMENT.format(name) for name in ("facts", "aliases", "sources")},
    "ledger": f"{_SEES_ALL} OR EXISTS (SELECT 1 FROM kept.documents d"  # noqa: S608 -- ours
    " WHERE d.tenant_no = ledger.tenant_no AND d.id = ledger.document_id)",
    # They are of pairs of documents, one of which may not be readable.
    "similarities": _SEES_ALL,
    "sketches": _SEES_ALL,
}


def readable(table: str, condition: str) -> str:
    """Return SQL that shows a principal only the rows of *table* that it may read."""
    return (
        f"CREATE POLICY readable ON kept.{table} AS RESTRICTIVE FOR SELECT"
        f" USING ({condition});\n"
    )


TABLES = Module(
    "core",
    (
        _TABLES + "".join(map(guarded, GUARDED)),
        _SKETCHES + guarded("sketches"),
        _ACLS
        + "".join(map(guarded, ("acls", "acl_readers")))
        + "".join(readable(*one) for one in _READABLE.items()),
        "ALTER TABLE kept.sources ADD COLUMN readers text;",
    ),
)
