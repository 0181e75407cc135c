"""The indexes of one tenant, derived from SQLite and rebuilt at will."""
