"""The routes of the API: parse, call the library, render; a module per noun."""

from kept.doors.http.routes import (
    administration,
    compatible,
    documents,
    health,
    openai,
    records,
    references,
    search,
)

_MODULES = (
    search,
    references,
    documents,
    records,
    administration,
    openai,
    compatible,
    health,
)
ROUTERS = tuple(module.router for module in _MODULES)
