"""Few-shot references: labelled passages, chosen as examples for a prompt."""
