"""Options that commands share, and what they open."""

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from kept.doors.cli.progress import bar
from kept.doors.cli.unknown_variables import tell_mistyped
from kept.errors import InputError, NotFoundError, SettingsError
from kept.kernel.filters import LARGEST
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import Settings
from kept.knowledge_base.wiring import (
    Progress,
    embedder_name,
    refuse_unknown_models,
    store_exists,
    store_writable,
)
from kept.models import weights as models
from kept.stores.addresses import without_secrets

SHOWN_TENANTS = 5
OPTIONAL = frozenset({"store", "tenant", "preset", "embedder", "max_chunks"})
"""Settings that commands have options for, named alike."""

Store = Annotated[
    str | None,
    typer.Option(
        "--store",
        help="Folder of the knowledge base, or the URL of a server.",
        show_default="./.kept",
        metavar="STORE",
    ),
]
Tenant = Annotated[
    str | None,
    typer.Option("--tenant", help="Whose knowledge base.", show_default="default"),
]
PresetName = Annotated[
    str | None,
    typer.Option("--preset", help="How passages are chosen.", show_default="default"),
]
Embedder = Annotated[
    str | None,
    typer.Option(
        "--embedder",
        help="What turns text into vectors: minilm, hash, openai or an added model.",
        show_default="minilm",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def settings_of(**given: Any) -> Settings:  # noqa: ANN401 -- checked by the settings
    """Return the settings, what was *given* on the command line before all else.

    A mistyped variable is reported on standard error.
    """
    typed = {
        name: str(value) if isinstance(value, Path) else value
        for name, value in given.items()
        if value is not None
    }
    try:
        settings = Settings.of(typed)
        refuse_unknown_models(settings)
    except SettingsError as error:
        raise SettingsError(_as_typed(str(error), typed)) from error
    tell_mistyped(settings.preset)
    return settings


def _as_typed(problem: str, typed: Iterable[str]) -> str:
    """Name the option, too, where a value came from one."""
    for field in OPTIONAL.intersection(typed):
        variable, option = Settings.variable(field), field.replace("_", "-")
        problem = problem.replace(f"{variable} is", f"--{option} ({variable}) is")
    return problem


@contextmanager
def opened(
    settings: Settings, *, make: bool = False, for_all: bool = False
) -> Iterator[KnowledgeBase]:
    """Open a knowledge base for one command; only *make* makes a missing one.

    A folder that cannot be written to is opened to be read. A tenant that is not
    there is refused, unless the command is *for_all* of them.
    """
    if not make and not store_exists(settings):
        where = without_secrets(settings.store)
        msg = (
            f"there is no knowledge base in {where}; "
            f"'kept ingest PATH --store {where}' makes one"
        )
        raise InputError(msg)
    writable = make or store_writable(settings)
    base = KnowledgeBase(settings, writable=writable, progress=told_on_stderr())
    try:
        if not make and not for_all:
            _check_tenant(base)
        yield base
    finally:
        base.close()


def _check_tenant(base: KnowledgeBase) -> None:
    known = base.store.tenants()
    if base.tenant not in known:
        there = ", ".join(map(repr, known[:SHOWN_TENANTS])) or "none yet"
        more = ", …" if len(known) > SHOWN_TENANTS else ""
        advice = f"known are: {there}{more}; 'kept ingest' makes one"
        raise NotFoundError("tenant", base.tenant, advice)


@contextmanager
def fetching(model: str = "minilm") -> Iterator[Progress]:
    """Show how a model is fetched: a bar on a terminal, else a line for each step."""
    with bar(f"fetching {model}", of_bytes=True) as report:
        yield report if sys.stderr.isatty() else told_on_stderr()


def fetch_model(settings: Settings) -> None:
    """Install the model on a terminal, if the embedder needs it and it is not there.

    Before the bar of other work, as a terminal shows one at a time. Elsewhere the
    embedder installs it at its first text.
    """
    missing = sys.stderr.isatty() and not models.model_folder().is_dir()
    if missing and embedder_name(settings) == "minilm":
        with fetching() as report:
            models.install(progress=report)


def told_on_stderr() -> Progress:
    """Return a progress callback that prints what is being fetched, once a step."""
    shown: set[str] = set()

    def report(step: str, done: int, total: int) -> None:
        if step not in shown:
            shown.add(step)
            sys.stderr.write(f"kept: {step}\n")

    return report


def demand_writable(*files: Path | None) -> None:
    """Refuse a report that could not be written, before the work for it is done."""
    for path in files:
        if path is None or path.is_fifo() or path.is_char_device():
            continue
        made = not path.exists()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("ab").close()
        if made:
            path.unlink()


def pairs(option: str, given: list[str] | None) -> dict[str, str]:
    """Return KEY=VALUE options as a mapping."""
    found: dict[str, str] = {}
    for pair in given or ():
        key, equals, value = pair.partition("=")
        if not equals or not key:
            msg = f"{option} is {pair!r}; expected KEY=VALUE"
            raise InputError(msg)
        found[key] = value
    return found


def scores(option: str, given: list[str] | None) -> dict[str, int]:
    """Return ITEM=SCORE options as a mapping to whole numbers."""
    found: dict[str, int] = {}
    for item, score in pairs(option, given).items():
        if not (score.isascii() and score.isdecimal()):
            msg = f"{option} is '{item}={score}'; expected ITEM=SCORE, SCORE 0 or more"
            raise InputError(msg)
        found[item] = int(score)
    return found


def values(option: str, given: list[str] | None) -> dict[str, str | float]:
    """Return KEY=VALUE options as a mapping of texts, numbers and flags."""
    return {key: value_of(text) for key, text in pairs(option, given).items()}


def value_of(text: str) -> str | float:
    """Return *text* as JSON reads a number, true, false or a text in quotes.

    All else is a text as it is typed, and so is a number that no filter could be
    held against.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(value, int | float) and abs(value) <= LARGEST:
        return value
    return value if isinstance(value, str) else text
