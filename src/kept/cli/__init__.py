"""The command line: parse, one call, render."""

from kept.cli.main import main

__all__ = ["main"]
