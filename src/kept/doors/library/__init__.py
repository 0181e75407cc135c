"""Kept for people: a knowledge base and answers that show themselves in a notebook.

`kept.open` returns a `Base`: a knowledge base that takes paths, and whose searches
tell how they came about. Nothing here decides anything.
"""

from kept.doors.library.base import (
    Base,
    ReceiptList,
    open_base,
)
from kept.doors.library.selected import Explanation, Selected

__all__ = ["Base", "Explanation", "ReceiptList", "Selected", "open_base"]
