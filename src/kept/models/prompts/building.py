"""Prompt building: fill a template for a model and record it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kept.kernel.model import Scalar
from kept.kernel.ports import ChatModel
from kept.models.prompts.records import ContextRecord, Prompt
from kept.models.prompts.templates import template


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What went into a prompt beside its template.

    *parameters* are added to those that the model reports.
    """

    chunk_ids: tuple[str, ...] = ()
    metrics: Mapping[str, Scalar] = field(default_factory=dict, hash=False)
    redactions: Mapping[str, int] = field(default_factory=dict, hash=False)
    parameters: Mapping[str, Scalar] = field(default_factory=dict, hash=False)


def build(
    name: str, fields: Mapping[str, str], model: ChatModel, context: Context
) -> Prompt:
    """Fill the newest version of a template for *model* and record it."""
    chosen = template(name)
    own: Mapping[str, Scalar] = getattr(model, "parameters", {})
    record = ContextRecord(
        template=chosen.name,
        version=chosen.version,
        checksum=chosen.checksum,
        drifted=chosen.drifted,
        chunk_ids=context.chunk_ids,
        model=model.id,
        parameters={**own, **context.parameters},
        metrics=context.metrics,
        redactions=context.redactions,
    )
    return Prompt(chosen.messages(**fields), record)
