"""Logs: the record of a query as structured lines, without the question's text."""

import logging
from dataclasses import asdict

import structlog

from kept.counters import counters
from kept.retrieve import Found

logger = structlog.get_logger(__name__)


def tell(found: Found) -> None:
    """Log an answered query, and at debug level each decision that was made.

    Where nobody has set logging up, nothing is logged.
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


def whisper(event: str, **fields: object) -> None:
    """Log at debug level, where somebody has set logging up."""
    if heard(logging.DEBUG):
        logger.debug(event, **fields)


def heard(level: int) -> bool:
    """Tell whether lines of *level* reach anybody who asked for them."""
    if not structlog.is_configured():
        return False
    bound = logger.bind()
    for name in ("is_enabled_for", "isEnabledFor"):
        if hasattr(type(bound), name):
            return bool(getattr(bound, name)(level))
    return True
