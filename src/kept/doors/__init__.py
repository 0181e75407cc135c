"""The doors: Python, command line, HTTP, MCP, frameworks; one JSON through all."""
