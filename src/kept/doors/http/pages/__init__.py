"""The pages of the service, rendered here and usable without scripts.

One module per page, each with a ``router``; docs/how-to/add-a-page.md says how to
write one.
"""

from kept.doors.http.pages import (
    ask,
    audit,
    documents,
    evaluation,
    keys,
    ledger,
    settings,
    sign_in,
    templating,
    thresholds,
    traces,
)

_MODULES = (ask, documents, ledger, traces, thresholds, evaluation, audit, settings)
PAGES = tuple(page.router for page in (*_MODULES, keys, sign_in, templating))
