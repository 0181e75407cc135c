"""The composition root: settings, wiring, and the knowledge base a caller holds."""
