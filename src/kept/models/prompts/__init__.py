"""Prompts: versioned templates, their checksums, and a record of each one built."""

from kept.models.prompts.building import Context, build
from kept.models.prompts.records import ContextRecord, Prompt, Recorder, log_context
from kept.models.prompts.templates import (
    BUILT_IN,
    Drift,
    Template,
    checksum_of,
    drift,
    drifted,
    template,
)

__all__ = [
    "BUILT_IN",
    "Context",
    "ContextRecord",
    "Drift",
    "Prompt",
    "Recorder",
    "Template",
    "build",
    "checksum_of",
    "drift",
    "drifted",
    "log_context",
    "template",
]
