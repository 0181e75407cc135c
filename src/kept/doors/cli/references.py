"""Few-shot references: kept references."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from kept.doors.cli import options
from kept.doors.cli.output import complain, counted, print_json, say, say_all
from kept.doors.cli.progress import bar
from kept.errors import InputError
from kept.few_shot import examples as examples_few_shot
from kept.few_shot.extraction import (
    ChunkScorer,
    ChunkScores,
    EvidenceExtractor,
    hinted,
    load_scores,
)
from kept.few_shot.questionnaire import (
    KeywordTagger,
    Questionnaire,
    load_questionnaire,
    phq8,
)
from kept.few_shot.store import (
    ChosenReferences,
    ReferenceStore,
    read_evidence,
    read_split,
    scored,
)
from kept.few_shot.transcripts import ReferenceBuilder, ReferenceChunk, read_transcripts
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import NO_SERVER, Settings
from kept.knowledge_base.wiring import LanguageModels, process_secret
from kept.search.render import receipt_json
from kept.stores.addresses import beside

SCORES = "reference-scores.json"
PRESET = "few_shot"

references_app = typer.Typer(
    help="Labelled passages as examples for a prompt.", no_args_is_help=True
)

QuestionnaireFile = Annotated[
    Path | None,
    typer.Option(
        "--questionnaire",
        help="Items and scores, as YAML.",
        show_default="the eight items of PHQ-8",
    ),
]
TagFile = Annotated[
    Path | None,
    typer.Option(
        "--tags",
        help="Keywords of each item, as YAML.",
        show_default="those of the questionnaire",
    ),
]


@references_app.command("build")
def build(
    transcripts: Annotated[
        Path, typer.Argument(help="Labelled transcripts, one JSON object a line.")
    ],
    store: options.Store = None,
    tenant: options.Tenant = None,
    embedder: options.Embedder = None,
    questionnaire: QuestionnaireFile = None,
    tags: TagFile = None,
    scores: Annotated[
        Path | None,
        typer.Option("--scores", help="Labels of chunks that a model has given."),
    ] = None,
    score_with_llm: Annotated[
        bool,
        typer.Option("--score-with-llm", help="Let the model label each chunk."),
    ] = False,
    evaluation_split: Annotated[
        Path | None,
        typer.Option(
            "--evaluation-split", help="Participants who must not be references."
        ),
    ] = None,
    size: Annotated[int, typer.Option("--window", min=1, help="Lines of a chunk.")] = 8,
    step: Annotated[
        int, typer.Option("--step", min=1, help="Lines from chunk to chunk.")
    ] = 2,
    as_json: options.AsJson = False,
) -> None:
    """Make the participants of TRANSCRIPTS the references of a knowledge base.

    References of an earlier build that are not in TRANSCRIPTS are let go of.

    For example: kept references build interviews.jsonl --store ./references
    """
    if scores and score_with_llm:
        msg = "--scores and --score-with-llm exclude each other; give one of them"
        raise InputError(msg)
    asked = _questionnaire(questionnaire)
    builder = ReferenceBuilder(
        questionnaire=asked,
        tagger=_tagger(tags, asked),
        evaluation=read_split(evaluation_split) if evaluation_split else frozenset(),
        size=size,
        step=step,
    )
    chunks = _chunks(builder, transcripts)
    settings = _settings(store, tenant, embedder)
    with options.opened(settings, make=True) as base:
        given = load_scores(scores, asked).checked(chunks) if scores else None
        if score_with_llm:
            given = _scored(base, asked, chunks)
        if given:
            labelled = replace(builder, scores=given.labels)
            chunks = _chunks(labelled, transcripts)
        take_in(ReferenceStore(base, asked), chunks, given, as_json=as_json)


@references_app.command("for")
def choose(
    evidence: Annotated[Path, typer.Argument(help="Quotes for each item, as JSON.")],
    store: options.Store = None,
    tenant: options.Tenant = None,
    embedder: options.Embedder = None,
    questionnaire: QuestionnaireFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Choose the references for EVIDENCE, ready to stand in a prompt.

    The settings are those of the preset few_shot, such as
    EMBEDDING_TOP_K_REFERENCES. Nothing is printed where nothing is left.

    For example: kept references for evidence.json --store ./references
    """
    participant, given = read_evidence(evidence)
    settings = _settings(store, tenant, embedder)
    with options.opened(settings) as base:
        references = ReferenceStore(base, _questionnaire(questionnaire))
        chosen = references.choose(given, participant)
    if chosen.skipped:
        complain(f"too little evidence to search for: {', '.join(chosen.skipped)}")
    if as_json:
        print_json(chosen.as_data())
    elif chosen.bundle.text:
        say_all(chosen.bundle.text)


@references_app.command("extract")
def extract(
    transcript: Annotated[Path, typer.Argument(help="A transcript, as text.")],
    questionnaire: QuestionnaireFile = None,
    tags: TagFile = None,
    llm: Annotated[
        bool,
        typer.Option(
            "--llm", help="Let the model find the quotes, not the keywords of items."
        ),
    ] = False,
    participant: Annotated[
        str | None, typer.Option("--participant", help="Whose transcript it is.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Find the quotes of TRANSCRIPT for each item; every one of them is in it.

    With --json, the output is what 'kept references for' reads.
    """
    asked = _questionnaire(questionnaire)
    text = _text(transcript)
    found: dict[str, Any] = {"participant": participant or transcript.stem}
    if llm:
        found |= _extracted(text, asked)
    else:
        found["evidence"] = hinted(text, _tagger(tags, asked))
    if as_json:
        print_json(found)
        return
    for item, quotes in found["evidence"].items():
        say(item)
        for quote in quotes:
            say(f"    {quote}")


@references_app.command("demo")
def demo(store: options.Store = None, embedder: options.Embedder = None) -> None:
    """Build references of the invented interviews, and choose some of them."""
    folder = store or ".kept-references"
    builder = ReferenceBuilder(
        questionnaire=phq8(),
        tagger=KeywordTagger.for_items(phq8()),
        evaluation=read_split(examples_few_shot.EVALUATION),
    )
    settings = _settings(folder, None, embedder)
    if store is None:
        settings = settings.model_copy(update=NO_SERVER)
    say("Six invented interviews become references:")
    with options.opened(settings, make=True) as base:
        references = ReferenceStore(base, phq8())
        chunks = builder(read_transcripts(examples_few_shot.INTERVIEWS))
        take_in(references, chunks, None, as_json=False)
        participant, given = read_evidence(examples_few_shot.EVIDENCE)
        chosen = references.choose(given, participant)
    say()
    say(f"For {participant} these are chosen:")
    say()
    say_all(chosen.bundle.text)
    _tell_funnels(chosen)
    say()
    say("Give evidence of your own:")
    say(f"  kept references for EVIDENCE.json --store {folder}")


def take_in(
    references: ReferenceStore,
    chunks: Sequence[ReferenceChunk],
    scores: ChunkScores | None,
    *,
    as_json: bool,
) -> None:
    """Build, and print the outcome of each participant."""
    counts: dict[str, int] = {}
    for receipt in references.build(chunks, scores):
        counts[receipt.status] = counts.get(receipt.status, 0) + 1
        if as_json:
            print_json(receipt_json(receipt))
        elif receipt.status != "unchanged":
            name = receipt.source_uri.partition(":")[2]
            passages = f", {counted(receipt.chunks, 'chunk')}" if receipt.chunks else ""
            say(f"{receipt.status:<10} {name}{passages}")
    if not as_json:
        say(", ".join(f"{count} {status}" for status, count in counts.items()))


def _extracted(text: str, questionnaire: Questionnaire) -> dict[str, Any]:
    """Ask the model for quotes, and print those that are not in the text."""
    models = LanguageModels(Settings())
    try:
        extractor = EvidenceExtractor(
            model=models.extractor("kept references extract --llm"),
            secret=process_secret(),
            questionnaire=questionnaire,
        )
        found = extractor(text)
    finally:
        models.close()
    for quote in found.rejected:
        complain(f"not in the transcript, rejected for {quote.item}: {quote.text!r}")
    return {
        "evidence": found.by_item,
        "rejected": [{"item": q.item, "text": q.text} for q in found.rejected],
        "record": found.record.as_data(),
    }


def _scored(
    base: KnowledgeBase, questionnaire: Questionnaire, chunks: list[ReferenceChunk]
) -> ChunkScores:
    scorer = ChunkScorer(
        model=base.models.extractor("--score-with-llm"),
        secret=process_secret(),
        questionnaire=questionnaire,
    )
    path = beside(base.settings.store, SCORES)
    with bar("scoring") as report:
        found = scored(
            scorer, chunks, path, lambda done: report("scoring", done, len(chunks))
        )
    complain(f"the scores are kept in {path}")
    return found


def _chunks(builder: ReferenceBuilder, path: Path) -> list[ReferenceChunk]:
    """Cut the transcripts, or say that nothing came of one."""
    if not path.is_file():
        msg = f"there is no file {str(path)!r}; expected transcripts as JSON lines"
        raise InputError(msg)
    rows = list(read_transcripts(path))
    chunks = builder(rows)
    with_text = {chunk.participant for chunk in chunks}
    for row in rows:
        if (name := str(row["participant"]).strip()) not in with_text:
            msg = f"participant {name!r} says nothing; leave the row out"
            raise InputError(msg)
    if not chunks:
        msg = f"{path.name} holds no transcript; expected one JSON object a line"
        raise InputError(msg)
    return chunks


def _tell_funnels(chosen: ChosenReferences) -> None:
    say()
    say("How they were chosen:")
    for item, found in chosen.found.items():
        steps = (f"{s.stage} {s.before} → {s.after}" for s in found.selection.trace)
        say(f"  {item}: {', '.join(steps)}")


def _questionnaire(path: Path | None) -> Questionnaire:
    return phq8() if path is None else load_questionnaire(path)


def _tagger(path: Path | None, questionnaire: Questionnaire) -> KeywordTagger:
    if path is None:
        return KeywordTagger.for_items(questionnaire)
    return KeywordTagger.load(path, questionnaire)


def _settings(store: str | None, tenant: str | None, embedder: str | None) -> Settings:
    return options.settings_of(
        store=store, tenant=tenant, embedder=embedder, preset=PRESET
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{path.name} cannot be read ({error}); expected a text in UTF-8"
        raise InputError(msg) from error
