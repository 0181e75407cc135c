"""Routes: parse, one call, render; one module per noun."""

from kept.http.routes import (
    administration,
    asking,
    compatible,
    documents,
    jobs,
    ledger,
    operation,
    records,
    references,
    selecting,
)

ROUTERS = (
    asking.router,
    references.router,
    selecting.router,
    documents.router,
    jobs.router,
    ledger.router,
    records.router,
    administration.router,
    compatible.router,
    operation.router,
)
