"""The query log: an answered query as structured lines, without the question's text."""

import logging
from dataclasses import asdict

from kept.counters import counters
from kept.logs import Logger, heard
from kept.retrieve import Found

logger = Logger(__name__)


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
