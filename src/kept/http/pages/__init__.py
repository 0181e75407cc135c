"""Pages: what people see of the service, rendered here and useful without scripts.

One module per page, each with a ``router``; ``PAGES`` lists them for the app. To add
a page:

1. **A module** ``pages/<noun>.py`` with ``router = APIRouter(include_in_schema=False)``
   (a page is no part of the OpenAPI). List it in ``PAGES`` below. Its entry in the
   navigation is a line of ``navigation.ENTRIES``, with the least role that may open it.
2. **A visit.** A route takes ``visit: ReaderVisit`` (or ``WriterVisit``,
   ``AdminVisit``) from ``visiting``. Whoever is not signed in is sent to the sign-in
   page and back; whoever lacks the role sees a page that says so. A route that changes
   something is a POST and takes a visit too: the visit has then read ``visit.form`` and
   checked its CSRF token and tenant. Never read a form in another way.
3. **The work.** ``visit.caller`` is the same ``Caller`` that the API knows: its
   ``base()``, ``pages`` and ``service`` are the tenant's own. Blocking work runs in
   ``await visit.work(lambda: ...)``. What the API does too is called, not repeated:
   move it from the route into a function both call. Writes leave a row with
   ``caller.note(action, outcome, target=...)``.
4. **The page.** ``return visit.page("<noun>.html", name=value)`` renders
   ``templates/<noun>.html``; after a change ``return visit.back_to("/path", "notice")``
   redirects, and the next page says the sentence that ``rendering.NOTICES`` has.
5. **The template** extends ``base.html`` and fills the blocks ``title``, ``heading``
   (the h1), ``lead`` (one sentence below it), ``actions`` (beside it), ``main``, and
   ``scripts``. Common parts are macros of ``parts.html``:
   ``{% import "parts.html" as parts with context %}``, then ``parts.table``,
   ``parts.empty``, ``parts.badge``, ``parts.pager``, ``parts.relevance``,
   ``parts.field``, ``parts.notice``, ``parts.confirm``, ``parts.form``. Every form
   comes from ``parts.form`` or ``parts.confirm``, which add token and tenant. Filters:
   ``|percent``, ``|when``, ``|count``, ``|size``. Everything is escaped; ``|safe`` is
   never used.
6. **Scripts** only add to what works without them. A page's own is an ES module
   ``static/<noun>.js``, loaded with
   ``<script type="module" src="{{ asset('<noun>.js') }}"></script>`` in the block
   ``scripts``. ``static/kept.js`` exports ``call`` (JSON by fetch, with the CSRF token
   and the tenant), ``events`` (server-sent events), ``say`` (tell the reader) and
   ``element`` (build nodes; never innerHTML). The policy of the pages forbids inline
   scripts and styles, also ``style=`` attributes: use classes, ``<meter>``, SVG
   attributes, or ``element.style`` from a script.
7. **Styles** are in ``static/kept.css``: a page that needs more adds a section there,
   from the variables at its top and of ``static/house.css``, which the documentation
   shares, and nothing else.

Errors need no care: raise as in the API, and ``failures`` makes a page of it.
"""

from kept.http.pages import (
    ask,
    assets,
    audit,
    documents,
    evaluation,
    keys,
    ledger,
    settings,
    signing_in,
    thresholds,
    traces,
)

PAGES = (
    ask.router,
    documents.router,
    ledger.router,
    traces.router,
    thresholds.router,
    evaluation.router,
    audit.router,
    settings.router,
    keys.router,
    signing_in.router,
    assets.router,
)
