"""The gate: is this question worth a search?"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kept.decisions import Refusal
from kept.signals import QueryTerms
from kept.text.tokens import content_words, domain_tokens

GUIDANCE = (
    "Ask about something specific in these documents: a topic, a name, an "
    "identifier or a file, in a few words."
)
RARE_SHARE = 0.1
FEW_CHUNKS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """Lets a question through that names something.

    Enough content words, or one token that only a search can mean. With
    *ask_knowledge_base*, fewer words will do if the knowledge base holds them
    all and each of them is rare in it.
    """

    min_content_words: int = 3
    ask_knowledge_base: bool = False

    def __call__(self, question: str, terms: QueryTerms) -> Refusal | None:
        """Return why *question* is not searched for, or None."""
        words = content_words(question)
        if len(words) >= self.min_content_words or domain_tokens(question):
            return None
        if words and self.ask_knowledge_base and _known_and_rare(terms):
            return None
        evidence: Mapping[str, Any] = {
            "content_words": len(words),
            "at_least": self.min_content_words,
        }
        return Refusal(reason="query_quality", message=GUIDANCE, evidence=evidence)


def _known_and_rare(terms: QueryTerms) -> bool:
    """Tell whether every word is in the knowledge base, and in few of its chunks."""
    if not len(terms.known):
        return False
    most = max(RARE_SHARE * terms.chunks, FEW_CHUNKS)
    return bool((terms.known > 0).all() and (terms.known <= most).all())
