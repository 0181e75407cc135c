"""Integrations: Kept inside other frameworks, a module for each.

Every one has two shapes: a retriever over a knowledge base, and a guard over
somebody else's retriever. Documents that come out carry ``metadata["kept"]``.
"""
