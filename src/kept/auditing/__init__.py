"""Auditing: somebody else's retriever, questioned until it shows what it does.

>>> from kept.auditing import audit
>>> def search(question, k):
...     return [("28 days of leave a year", 1.0), ("The pump costs 410 euro", 0.0)][:k]
>>> report = audit(search, ["days of leave", "price of the pump"], k=2)
>>> report.problems > 0
True
"""

from kept.auditing.observing import Effort, audit
from kept.auditing.report import Finding, Report

__all__ = ["Effort", "Finding", "Report", "audit"]
