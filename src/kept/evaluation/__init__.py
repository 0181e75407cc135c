"""Evaluation: from judged data to a verdict, with intervals.

Collections come in (`collection`, `loaders`, `trec`), a system is asked (`suite`,
`arms`, `sweep`), records go out (`runs`) and are read (`measures`, `abstention`,
`ordinal`, `duplicates`, `compare`, `gate`), gathered (`report`) and shown (`tables`,
`junit`, `page`).
"""
