"""The demo: the main job on the documents that come with Kept."""

import sys
from pathlib import Path

from kept.doors.cli import options
from kept.doors.cli.ingest import handing_of, take_in
from kept.doors.cli.output import say, shortened
from kept.evaluation import examples
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import NO_SERVER
from kept.search.answer.extractive import extracts, snippet_of
from kept.search.render import decision_line
from kept.search.retrieve import Found

CITED = "How many days may I work from another country in a year?"
IDENTIFIER = "INV-49302"
JAPANESE = "通勤手当の上限はいくらですか"
FAR = "Who won the football world cup in Brazil?"
CHAT = "hey this is a test message"


def demo(store: options.Store = None, embedder: options.Embedder = None) -> None:
    """Take the example handbook in, ask it questions and explain the answers."""
    folder = store or ".kept-demo"
    settings = options.settings_of(store=folder, tenant="demo", embedder=embedder)
    if store is None:
        settings = settings.model_copy(update=NO_SERVER)
    handbook = str(Path(examples.__file__).parent / "handbook")
    say("Taking in the example handbook")
    with options.opened(settings, make=True) as base:
        handing = handing_of(settings)
        say(take_in(base, handing, [handbook], quiet=True).summary())
        cited = _ask(base, CITED, "a passage to cite")
        _ask(base, IDENTIFIER, "an identifier, as typed")
        _ask(base, JAPANESE, "a question in Japanese")
        _ask(base, FAR, "a question that these documents do not answer")
        _ask(base, CHAT, "small talk")
        _explain(cited)
    say()
    say("Ask your own:")
    say(f'  kept search "…" --store {folder} --tenant demo --explain')
    if not cited.selection.candidates:
        sys.exit(1)


def _ask(base: KnowledgeBase, question: str, what: str) -> Found:
    found = base.search(question, k=3)
    say()
    say(f"{what}: {question}")
    if found.refused is not None:
        say(f"  refused ({found.refused.reason}): {found.refused.message}")
    sentences = extracts(question, found.selection.candidates)
    for place, candidate in enumerate(found.selection.candidates, start=1):
        relevance = candidate.signals["relevance"]
        title, uri = candidate.document.title, candidate.document.source_uri
        say(f"  [{place}] {title} ({Path(uri).name}), relevance {relevance:.0%}")
        told_best = snippet_of(place, sentences, candidate.chunk.text)
        say(f"      {shortened(told_best, 160)}")
    return found


def _explain(found: Found) -> None:
    selection = found.selection
    say()
    say(
        f"Why these: {selection.recalled} recalled, {len(selection.candidates)} "
        f"selected, {len(selection.dropped)} dropped. One that was dropped:"
    )
    for candidate in selection.dropped[:1]:
        say(f"  {candidate.document.title}: {shortened(candidate.chunk.text, 100)}")
        for stage, decision in selection.explain(candidate.id):
            say(f"  {decision_line(stage, decision)}")
