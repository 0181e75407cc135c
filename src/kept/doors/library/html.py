"""Drawing an answer as HTML for a notebook: no script, no style of its own needed."""

from html import escape

from kept.search.funnel import account, funnel_rows
from kept.search.retrieve import Found

WIDTH, ROW, LABEL, ROOM = 640, 22, 170, 330
LOW = 0.5


def answer_html(found: Found) -> str:
    """Return the passages with their relevance, and the funnel folded away."""
    if found.refused is not None:
        head = (
            f"<p><strong>Nothing to cite.</strong> {escape(found.refused.message)}</p>"
        )
    else:
        passages = "".join(
            f"<li><strong>{escape(c.document.title or c.document.source_uri)}</strong> "
            f"{_relevance(c.signals.get('relevance'))}<br>{escape(c.chunk.text)}</li>"
            for c in found.selection.candidates
        )
        head = f"<ol>{passages}</ol>"
    return (
        f"<p><em>{escape(found.request.question)}</em></p>{head}"
        f"<details><summary>How it came about</summary>{funnel_html(found)}</details>"
    )


def funnel_html(found: Found) -> str:
    """Draw how many candidates each stage took in and let through."""
    rows = funnel_rows(found)
    most = max([1, *(max(before or 0, after) for _, before, after, _ in rows)])
    bars = "".join(
        _bar(place * ROW, stage, before, after, most, told)
        for place, (stage, before, after, told) in enumerate(rows)
    )
    label = escape(f"Candidates by stage: {account(found.selection)}")
    return (
        f'<svg role="img" aria-label="{label}" viewBox="0 0 {WIDTH} {len(rows) * ROW}" '
        f'width="100%" fill="currentColor" font-family="sans-serif" font-size="12">'
        f"{bars}</svg><p>{escape(account(found.selection))}</p>"
    )


def _bar(  # noqa: PLR0913 -- all of one line
    top: int, stage: str, before: int | None, after: int, most: int, told: str
) -> str:
    def rectangle(count: int, opacity: float) -> str:
        return (
            f'<rect x="{LABEL}" y="{top + 3}" width="{ROOM * count / most:.1f}" '
            f'height="{ROW - 6}" fill-opacity="{opacity}"/>'
        )

    shown = f"{after}" if before is None else f"{before} → {after}"
    lost = "" if before is None else rectangle(before, 0.15)
    return (
        f"<g><title>{escape(f'{stage}: {told}')}</title>"
        f'<text x="{LABEL - 8}" y="{top + 15}" text-anchor="end">{escape(stage)}</text>'
        f"{lost}{rectangle(after, 0.55)}"
        f'<text x="{LABEL + ROOM + 8}" y="{top + 15}">{shown}</text></g>'
    )


def _relevance(relevance: float | None) -> str:
    if relevance is None:
        return ""
    low = " (low relevance)" if relevance < LOW else ""
    return f"{relevance:.0%}{low}"
