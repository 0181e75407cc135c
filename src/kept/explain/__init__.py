"""Explaining answers: why, why not, replay, and the diff of two configurations."""
