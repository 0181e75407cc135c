"""The embedded store: a folder with SQLite as the truth and indexes beside it."""
