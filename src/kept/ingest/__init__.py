"""The writing line: sources are read, cut, checked for duplicates and stored."""
