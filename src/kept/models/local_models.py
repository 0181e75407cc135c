"""Models added by hand: any ONNX encoder or cross-encoder, from a folder or a hub.

``kept models add`` copies the graph and its tokenizer into the models folder, with a
card that says how the model is used. What a repository declares in the files of
sentence-transformers counts; options and known recipes fill in the rest.
"""

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, get_args

from kept.errors import ModelMissingError, NotFoundError, SettingsError
from kept.models.local_session import Kind, LocalSession, Pooling
from kept.models.weight_sources import HUB, Progress
from kept.models.weights import FILES, models_folder, silent

CARD = "card.json"
GRAPH = "model.onnx"
TOKENIZER = "tokenizer.json"
GRAPHS = ("onnx/model.onnx", "model.onnx")
CONFIGS = (
    "config.json",
    "tokenizer_config.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "1_Pooling/config.json",
    "modules.json",
)
# By sentence-transformers' names, whose files had a flag for each before version 6.
POOLINGS: Mapping[str, Pooling] = {"cls": "cls", "lasttoken": "last", "mean": "mean"}
POOLING_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_lasttoken": "lasttoken",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_weightedmean_tokens": "weightedmean",
}
MOST_TOKENS = 512
# Tokenizer configurations say 1e30 where they mean "no limit".
NO_LIMIT = 100_000
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,79}")
REPOSITORY = re.compile(r"\w[\w.-]*/\w[\w.-]*")
NOT_FOUND = 404


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUse:
    """How a model is used; what is None is found out."""

    pooling: Pooling | None = None
    query_prefix: str | None = None
    passage_prefix: str | None = None
    max_tokens: int | None = None

    def over(self, other: "ModelUse") -> "ModelUse":
        """Return this, and what it leaves open as *other* has it."""
        own = {name: v for name, v in asdict(self).items() if v is not None}
        return replace(other, **own)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCard:
    """A model that was added: what it is, how it is used, and its files' sha256."""

    name: str
    kind: Kind
    source: str
    pooling: Pooling
    query_prefix: str
    passage_prefix: str
    max_tokens: int
    dimension: int
    files: Mapping[str, str]

    @property
    def id(self) -> str:
        """Name the model and everything that decides what it returns."""
        used = (
            sorted(self.files.items()),
            self.pooling,
            self.query_prefix,
            self.passage_prefix,
            self.max_tokens,
        )
        digest = hashlib.sha256(json.dumps(used).encode()).hexdigest()[:12]
        return f"{self.name}:{digest}:{self.dimension}"

    @property
    def folder(self) -> Path:
        """Where its files are."""
        return added_folder() / self.name


_INSTRUCT = (
    "Instruct: Given a web search query, retrieve relevant passages that answer the "
    "query\nQuery:"
)
_REPRESENT = "Represent this sentence for searching relevant passages: "
# For families whose repositories do not declare it: the model cards do, in prose.
RECIPES: tuple[tuple[str, ModelUse], ...] = (
    (r"e5-.*instruct", ModelUse(query_prefix=_INSTRUCT + " ", pooling="mean")),
    (
        r"e5-(small|base|large)",
        ModelUse(query_prefix="query: ", passage_prefix="passage: ", pooling="mean"),
    ),
    (r"bge-(small|base|large)-en", ModelUse(query_prefix=_REPRESENT, pooling="cls")),
    (r"arctic-embed-(?!.*v2)", ModelUse(query_prefix=_REPRESENT, pooling="cls")),
    (r"mxbai-embed", ModelUse(query_prefix=_REPRESENT, pooling="cls")),
    (
        r"nomic-embed-text",
        ModelUse(
            query_prefix="search_query: ",
            passage_prefix="search_document: ",
            pooling="mean",
        ),
    ),
    (r"qwen3-embedding", ModelUse(query_prefix=_INSTRUCT, pooling="last")),
)


def recipe_for(source: str) -> ModelUse:
    """Return how models of a known family are used, by the name of the repository."""
    name = source.rstrip("/").rpartition("/")[2].lower()
    return next((use for part, use in RECIPES if re.search(part, name)), ModelUse())


def added_folder() -> Path:
    """Return where models are that were added."""
    return models_folder() / "added"


def added() -> list[ModelCard]:
    """Return the models that were added, by name; damaged ones are left out."""
    folders = sorted(added_folder().glob(f"*/{CARD}"))
    cards = []
    for path in folders:
        with suppress(OSError, ValueError, TypeError, KeyError):
            cards.append(ModelCard(**json.loads(path.read_text("utf-8"))))
    return cards


def added_names(kind: Kind) -> list[str]:
    """Return the names of the added models of one kind."""
    return [card.name for card in added() if card.kind == kind]


def card_of(name: str, kind: Kind | None = None) -> ModelCard:
    """Return the card of an added model, or say which there are."""
    cards = {card.name: card for card in added() if kind in (None, card.kind)}
    if name not in cards:
        known = ", ".join(cards) or "none"
        advice = f"'kept models add' adds one; there are: {known}"
        raise NotFoundError(kind or "added model", name, advice)
    return cards[name]


def add(
    source: str,
    *,
    name: str | None = None,
    usage: ModelUse | None = None,
    revision: str = "main",
    progress: Progress = silent,
) -> ModelCard:
    """Add the model in the folder or hub repository *source*, tried before it counts.

    What *usage* says counts before what the repository declares, and that before the
    recipe of its family.
    """
    folder = Path(source).expanduser()
    local = folder.is_dir()
    if not local and not REPOSITORY.fullmatch(source):
        msg = (
            f"{source!r} is neither a folder nor a repository of a model hub; expected "
            "a folder with model.onnx and tokenizer.json, or OWNER/NAME"
        )
        raise SettingsError(msg)
    chosen = _name_of(name or (folder.resolve().name if local else source))
    added_folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(
        dir=added_folder(), prefix=".", ignore_cleanup_errors=True
    ) as scratch:
        built = Path(scratch) / chosen
        built.mkdir()
        if local:
            configs = _copied(folder, built, progress)
        else:
            configs = _fetched(source, revision, built, progress)
        _refuse_layers(configs)
        declared = _declared(configs)
        found = (usage or ModelUse()).over(declared.over(recipe_for(source)))
        progress(f"trying {chosen}", 0, 0)
        card = _tried(chosen, source, built, found)
        text = json.dumps(asdict(card), indent=2, sort_keys=True)
        (built / CARD).write_text(text + "\n", "utf-8")
        # An older one of this name goes into the scratch folder, and so away.
        if card.folder.exists():
            card.folder.rename(Path(scratch) / "before")
        built.rename(card.folder)
    return card


def verify(card: ModelCard) -> list[str]:
    """Return what is wrong with the files of an added model."""
    return [
        f"{file} has changed since it was added, or is gone"
        for file, digest in card.files.items()
        if _digest(card.folder / file) != digest
    ]


def remove(name: str) -> Path:
    """Delete an added model."""
    folder = card_of(name).folder
    shutil.rmtree(folder)
    return folder


def _name_of(given: str) -> str:
    name = given.rpartition("/")[2].lower()
    if name in FILES or name in ("hash", "openai") or not NAME.fullmatch(name):
        msg = (
            f"a model cannot be called {name!r}; give --name: small letters, digits, "
            "dots and dashes, and not the name of one of Kept's own"
        )
        raise SettingsError(msg)
    return name


def _copied(source: Path, folder: Path, progress: Progress) -> dict[str, Any]:
    """Copy graph and tokenizer, and return the configurations beside them."""
    graph = next((source / one for one in GRAPHS if (source / one).is_file()), None)
    if graph is None or not (source / TOKENIZER).is_file():
        missing = GRAPH if graph is None else TOKENIZER
        msg = (
            f"{source} has no {missing}; expected a folder with model.onnx (or "
            "onnx/model.onnx) and tokenizer.json, as 'optimum-cli export onnx' writes"
        )
        raise ModelMissingError(msg)
    progress(f"copying {graph.name}", 0, 0)
    shutil.copyfile(source / TOKENIZER, folder / TOKENIZER)
    shutil.copyfile(graph, folder / GRAPH)
    for data in graph.parent.glob(f"{graph.name}[._]data"):
        shutil.copyfile(data, folder / data.name)
    texts = {one: source / one for one in CONFIGS}
    return {
        name: _json(path.read_text("utf-8"))
        for name, path in texts.items()
        if path.is_file()
    }


@dataclass(frozen=True, slots=True)
class _Repository:
    """A repository of the model hub at one revision."""

    name: str
    revision: str
    hub: str

    def address(self, file: str) -> str:
        return f"{self.hub}/{self.name}/resolve/{self.revision}/{file}"

    def fetch(self, file: str, folder: Path, progress: Progress) -> bool:
        """Download a file into *folder*; return False if there is none."""
        # Imported here: httpx takes a third of a cold start.
        from kept.models.download import FileAddress, download  # noqa: PLC0415

        address = FileAddress.of(self.address(file))
        # Named after the address, so that a download that broke off is continued.
        stem = hashlib.sha256(address.url.encode()).hexdigest()[:16]
        part = added_folder() / f".{stem}.part"
        try:
            target = folder / PurePosixPath(file).name
            download(address, target, part, None, progress)
        except ModelMissingError as error:
            if not _is_missing(error):
                raise
            part.unlink(missing_ok=True)
            return False
        return True

    def config(self, file: str) -> Any:  # noqa: ANN401 -- JSON
        """Return a file of JSON; an empty object if there is none."""
        from kept.models.download import FileAddress, page  # noqa: PLC0415 -- as above

        try:
            _, _, text = page(FileAddress.of(self.address(file)), "application/json")
        except ModelMissingError as error:
            if not _is_missing(error):
                raise
            return {}
        return _json(text)


def _fetched(
    repository: str, revision: str, folder: Path, progress: Progress
) -> dict[str, Any]:
    """Download graph and tokenizer, and return the configurations beside them."""
    hub = os.environ.get("KEPT_MODEL_HUB") or os.environ.get("HF_ENDPOINT") or HUB
    found = _Repository(repository, revision, hub.rstrip("/"))
    if not found.fetch(TOKENIZER, folder, progress):
        msg = (
            f"the model hub has no {repository} with a tokenizer.json; check the name, "
            "or export the model with 'optimum-cli export onnx' and add the folder"
        )
        raise ModelMissingError(msg)
    graphs = (one for one in GRAPHS if found.fetch(one, folder, progress))
    graph = next(graphs, None)
    if graph is None:
        msg = (
            f"{repository} has no ONNX graph ({' or '.join(GRAPHS)}); export it with "
            "'optimum-cli export onnx' and add the folder"
        )
        raise ModelMissingError(msg)
    # Graphs of more than 2 GB keep their weights in a file beside them.
    found.fetch(f"{graph}_data", folder, progress)
    return {name: found.config(name) for name in CONFIGS}


def _is_missing(error: ModelMissingError) -> bool:
    reply = getattr(error.__cause__, "response", None)
    return getattr(reply, "status_code", None) == NOT_FOUND


def _json(text: str) -> Any:  # noqa: ANN401 -- an object, or a list of modules
    try:
        made = json.loads(text)
    except ValueError:
        return {}
    return made if isinstance(made, dict | list) else {}


def _declared(configs: Mapping[str, Any]) -> ModelUse:
    """Return what the files of sentence-transformers say about a model's use."""
    prompts = configs.get("config_sentence_transformers.json", {}).get("prompts") or {}
    return ModelUse(
        pooling=_pooling(configs.get("1_Pooling/config.json", {})),
        query_prefix=_prompt(prompts, "query"),
        passage_prefix=_prompt(prompts, "document", "passage"),
        max_tokens=min(_limits(configs), default=None),
    )


def _refuse_layers(configs: Mapping[str, Any]) -> None:
    """Refuse a model with layers behind the pooling: its graph ends before them."""
    modules = configs.get("modules.json", {})
    kinds = [str(one.get("type", "")).rpartition(".")[2] for one in modules or []]
    if "Dense" in kinds:
        msg = (
            "the model has a Dense layer after the pooling, which its graph does not "
            "contain; hand it in from Python (docs/how-to/bring-your-own-models.md)"
        )
        raise ModelMissingError(msg)


def _pooling(config: Mapping[str, Any]) -> Pooling | None:
    """Return how the repository pools, or refuse a way that is not known here."""
    named = [name for flag, name in POOLING_FLAGS.items() if config.get(flag)]
    modes = named or list(filter(None, [config.get("pooling_mode")]))
    if not modes:
        return None
    if len(modes) > 1 or modes[0] not in POOLINGS:
        msg = (
            f"the model pools by {' and '.join(map(str, modes))}, expected one of: "
            f"{', '.join(POOLINGS)}; export it with a sentence_embedding output"
        )
        raise ModelMissingError(msg)
    return POOLINGS[modes[0]]


def _prompt(prompts: Mapping[str, Any], *names: str) -> str | None:
    """Return the prompt of one of these names; an empty one counts as not declared."""
    return next((str(prompts[name]) for name in names if prompts.get(name)), None)


def _limits(configs: Mapping[str, Any]) -> Iterator[int]:
    for file, field in (
        ("sentence_bert_config.json", "max_seq_length"),
        ("tokenizer_config.json", "model_max_length"),
        ("config.json", "max_position_embeddings"),
    ):
        limit = configs.get(file, {}).get(field)
        if isinstance(limit, int | float) and 0 < limit < NO_LIMIT:
            # RoBERTa counts its positions from 2.
            yield int(limit) - 2 * (field == "max_position_embeddings")


def _tried(name: str, source: str, folder: Path, usage: ModelUse) -> ModelCard:
    """Return the card of a model that was loaded and run once."""
    if usage.pooling not in (None, *get_args(Pooling)):
        known = ", ".join(get_args(Pooling))
        msg = f"the pooling is {usage.pooling!r}; expected one of: {known}"
        raise SettingsError(msg)
    most = usage.max_tokens or MOST_TOKENS
    loaded = LocalSession.load(folder, max_tokens=most, pooling=usage.pooling or "mean")
    loaded.demand_sane(name)
    files: Sequence[Path] = sorted(folder.iterdir())
    return ModelCard(
        name=name,
        kind=loaded.kind,
        source=source,
        pooling=loaded.pooling,
        query_prefix=usage.query_prefix or "",
        passage_prefix=usage.passage_prefix or "",
        max_tokens=most,
        dimension=loaded.dimension,
        files={path.name: str(_digest(path)) for path in files},
    )


def _digest(path: Path) -> str | None:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return None
