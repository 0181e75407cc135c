"""Text: how sources become drafts, drafts become passages, passages become terms."""
