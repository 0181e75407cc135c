"""Stores: where documents live, one technology per module."""
