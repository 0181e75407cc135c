"""The registry: every stage under the name it has in a trace."""

import re

from kept.kernel import stages
from kept.kernel.stages import STAGES


def test_every_stage_is_registered_under_its_name() -> None:
    """The name is the class name in snake case."""
    for name, stage in STAGES.items():
        assert name == stage.name
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", stage.__name__).lower()
        assert name == words


def test_every_exported_stage_is_in_the_registry() -> None:
    """Nothing is exported that cannot be looked up."""
    exported = [getattr(stages, name) for name in stages.__all__]

    assert {s for s in exported if hasattr(s, "name")} == set(STAGES.values())
