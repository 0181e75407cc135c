"""Audit: question any retriever, and report what it does wrong.

>>> from kept.evaluation.retriever_check import audit
>>> def search(question, k):
...     return [("28 days of leave a year", 1.0), ("The pump costs 410 euro", 0.0)][:k]
>>> report = audit(search, ["days of leave", "price of the pump"], k=2)
>>> report.problems > 0
True
"""

from kept.evaluation.retriever_check.questioning import QuestioningEffort, audit
from kept.evaluation.retriever_check.report import CheckFinding, RetrieverReport

__all__ = ["CheckFinding", "QuestioningEffort", "RetrieverReport", "audit"]
