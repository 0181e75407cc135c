"""The gate: whether a question is worth a search at all."""

from collections.abc import Callable

from kept.kernel.presets.plan import GateRules
from kept.kernel.record import Refusal
from kept.kernel.signals import QueryTerms
from kept.text.tokens import content_words, domain_tokens

GUIDANCE = (
    "Ask about something specific in these documents: a topic, a name, an "
    "identifier or a file, in a few words."
)
# A word in more than a tenth of the chunks does not say what is asked. In a small
# knowledge base a tenth is a handful, hence at least twenty.
RARE_SHARE = 0.1
FEW_CHUNKS = 20


def turned_away(
    rules: GateRules, question: str, weigh: Callable[[], QueryTerms]
) -> Refusal | None:
    """Return why *question* is not searched for, or None if it names something.

    Enough content words do, or one token that only a search can mean. Where the
    rules ask the knowledge base, fewer words will do if it holds one of them that is
    rare in it; only then does the gate *weigh* them.
    """
    words = content_words(question)
    if len(words) >= rules.min_content_words or domain_tokens(question):
        return None
    if words and rules.ask_knowledge_base and _known_and_rare(weigh()):
        return None
    return Refusal(
        reason="query_quality",
        message=GUIDANCE,
        evidence={"content_words": len(words), "at_least": rules.min_content_words},
    )


def _known_and_rare(terms: QueryTerms) -> bool:
    """Return whether some word is in the knowledge base, and in few of its chunks."""
    most = max(RARE_SHARE * terms.chunks, FEW_CHUNKS)
    return bool(((terms.known > 0) & (terms.known <= most)).any())
