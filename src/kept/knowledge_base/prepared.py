"""A prepared search: what answers one request, from one read of the tenant's state."""

from dataclasses import dataclass
from typing import Any

from kept.kernel.presets.plan import Configured
from kept.search.retrieve import Retriever


@dataclass(frozen=True, slots=True)
class PreparedSearch:
    """What answers one request: the tenant's configuration, and a retriever.

    *version* is that of the tenant's documents when this was built.
    """

    configured: Configured
    retriever: Retriever
    version: tuple[Any, ...]
