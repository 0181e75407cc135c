"""Migration: copy one store into another, verify it, then mark it done."""
