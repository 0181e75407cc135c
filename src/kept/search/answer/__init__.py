"""Answers: text whose every marker leads to a source."""
