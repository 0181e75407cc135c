"""Readers: files, bytes and pages as drafts, one module per format."""
