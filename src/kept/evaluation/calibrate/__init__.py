"""Calibrate: fit relevance and floors to your own judged questions."""
