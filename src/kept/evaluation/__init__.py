"""Evaluation: from judged data to a verdict, with intervals.

Collections come in (`collection`, `loaders`, `trec`), a system is asked (`suite`,
`fixture`), records go out (`runs`) and are read (`measures`, `selective`,
`ordinal`, `duplicates`, `compare`) and shown (`tables`, `junit`, `page`).
"""
