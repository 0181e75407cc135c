"""Kept: the passages that deserve to be cited, and for every candidate why."""
