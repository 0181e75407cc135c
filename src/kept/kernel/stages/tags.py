"""Tags and labels: only what belongs to the item asked about."""

from dataclasses import dataclass
from typing import ClassVar

from kept.errors import InputError
from kept.kernel.model import Query
from kept.kernel.outcome import Outcome, sifted
from kept.kernel.pool import Pool
from kept.kernel.record import Drop, Reason


@dataclass(frozen=True)
class TagFilter:
    """Drop candidates that carry none of *any_of*; without any, the query's item."""

    name: ClassVar[str] = "tag_filter"

    any_of: tuple[str, ...] = ()

    def __call__(self, query: Query, pool: Pool) -> Outcome:
        """Compare each candidate's tags with those asked for."""
        wanted = self.any_of or (_item(query, self.name),)

        def untagged(row: int) -> Drop | None:
            tags = pool.roll.entries[row].chunk.tags
            if any(tag in tags for tag in wanted):
                return None
            return Drop.because(
                Reason.TAG_FILTER, tags=", ".join(tags), any_of=", ".join(wanted)
            )

        return sifted(pool, untagged)


@dataclass(frozen=True)
class LabelRequired:
    """Drop candidates that have no label for the query's item."""

    name: ClassVar[str] = "label_required"

    def __call__(self, query: Query, pool: Pool) -> Outcome:
        """Look the item up in each candidate's labels."""
        item = _item(query, self.name)

        def unlabelled(row: int) -> Drop | None:
            label = pool.roll.entries[row].chunk.labels.get(item)
            if label is not None:
                return None
            return Drop.because(Reason.LABEL_REQUIRED, item=item, label=label)

        return sifted(pool, unlabelled)


def _item(query: Query, stage: str) -> str:
    if query.item is None:
        msg = f"{stage}: the query names no item; give it one, such as item 'Sleep'"
        raise InputError(msg)
    return query.item
