"""The query log: an answered query as structured lines, without the question's text."""

import logging
from dataclasses import asdict
from typing import Any

from kept._runtime import Logger, heard
from kept.kernel.counters import counters
from kept.search.candidate_rows import candidate_rows
from kept.search.retrieve import Found

logger = Logger(__name__)


def log_search(found: Found) -> None:
    """Log an answered query; at debug level also every decision and candidate.

    Nothing is logged where logging is not configured.
    """
    if not heard(logging.INFO):
        return
    selection = found.selection
    logger.info(
        "query_answered",
        tenant=found.request.tenant,
        refused=found.refused.reason if found.refused else None,
        recalled=selection.recalled,
        selected=len(selection.candidates),
        **counters(selection, found.refused),
        **asdict(found.fingerprints),
        timings=dict(found.timings),
    )
    if not heard(logging.DEBUG):
        return
    for step in selection.trace:
        for decision in step.decisions:
            logger.debug(
                "candidate_decided",
                tenant=found.request.tenant,
                stage=step.stage,
                chunk_id=decision.chunk_id,
                verdict=str(decision.verdict),
                reason=str(decision.reason),
                evidence=dict(decision.evidence),
            )
    for row in candidate_rows(selection, titled=False):
        logger.debug("candidate_traced", tenant=found.request.tenant, **row)


def search_facts(found: Found, preset: str) -> dict[str, Any]:
    """Return the state and the numbers that a search rests on, for the audit."""
    selection = found.selection
    pool = (*selection.candidates, *selection.dropped)
    counted = counters(selection, found.refused)

    def most(signal: str) -> float | None:
        return max(
            (c.signals[signal] for c in pool if signal in c.signals), default=None
        )

    return {
        "preset": preset,
        **asdict(found.fingerprints),
        "vectorMax": most("cosine"),
        "keywordMax": most("bm25"),
        "combinedTop": most("fused"),
        "relevanceTop": most("relevance"),
        "rerankMs": found.timings.get("rerank"),
        "usedRerank": bool(counted["reranked"]),
        "filteredByFloor": bool(counted["filtered_by_floor"]),
        "counts": {
            "recalled": selection.recalled,
            "added": selection.added,
            "selected": len(selection.candidates),
            "dropped": len(selection.dropped),
            **counted,
        },
    }
