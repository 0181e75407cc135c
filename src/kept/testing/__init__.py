"""Testing: tables, fakes and contracts for stages, stores and embedders."""
