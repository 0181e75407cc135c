"""The reading line: retrieve, select, answer, record and render."""
