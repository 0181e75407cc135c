"""The PostgreSQL store: many nodes, one database, pgvector and row-level security."""
