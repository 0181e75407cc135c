"""What is built runs elsewhere: with what it declares, from an empty folder."""

import json
import re
import signal
import subprocess
import tarfile
import tomllib
import zipfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from urllib.request import urlopen

import pytest
from pyroma import projectdata, ratings
from twine.commands.check import check as twine_check

from fresh import ROOT, Fresh, built, fresh
from kept.models import weights

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
    "optional-dependencies"
]
LARGEST = 1_000_000
HASH = ("--embedder", "hash")


@pytest.fixture(scope="module")
def artefacts(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return a wheel and an sdist of the checkout."""
    folder = tmp_path_factory.mktemp("dist")
    wheel, sdist = built(folder, "wheel", "sdist", KEPT_BUILD_COMMIT="0123456789ab")
    return wheel, sdist


@pytest.fixture(scope="module")
def installed(
    artefacts: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> Fresh:
    """Return a fresh environment with the wheel."""
    return fresh(tmp_path_factory.mktemp("fresh") / "venv", artefacts[0])


@pytest.fixture
def run(
    installed: Fresh, tmp_path: Path
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs a command of the environment in an empty folder."""

    def command(*words: object, **env: str) -> subprocess.CompletedProcess[str]:
        return installed.run("kept", *words, cwd=tmp_path, **env)

    return command


Run = Callable[..., subprocess.CompletedProcess[str]]


def test_the_sdist_has_what_a_build_and_the_tests_need(
    artefacts: tuple[Path, Path],
) -> None:
    """Sources, tests, documentation and recipes; nothing large, nothing left over."""
    with tarfile.open(artefacts[1]) as sdist:
        sizes = {
            member.name.partition("/")[2]: member.size
            for member in sdist.getmembers()
            if member.isfile()
        }

    wanted = (
        *("pyproject.toml", "Makefile", "constraints.txt", "README.md", "LICENSE"),
        *("src/kept/__init__.py", "src/kept/build.json", "tests/test_packaging.py"),
        *("docs/index.md", "docs/man/kept.1", "packaging/hatch_build.py"),
        *("Dockerfile", "compose.yaml"),
    )
    leftovers = re.compile(r"__pycache__|\.pyc$|(^|/)\.(?!gitignore)|^(dist|site)/")
    assert [name for name in wanted if name not in sizes] == []
    assert [name for name in sizes if leftovers.search(name)] == []
    assert {n: size for n, size in sizes.items() if size > LARGEST} == {}


def test_the_wheel_has_pages_prompts_types_and_the_manual(
    artefacts: tuple[Path, Path],
) -> None:
    """Whatever is read at run time travels with the modules, and tests do not."""
    names = zipfile.ZipFile(artefacts[0]).namelist()

    source = ROOT / "src"
    files = (p for p in (source / "kept").rglob("*") if p.is_file())
    missing = {
        str(path.relative_to(source))
        for path in files
        if "__pycache__" not in path.parts
    } - set(names)
    assert missing == set()
    assert any(name.endswith("share/man/man1/kept.1") for name in names)
    assert [name for name in names if name.startswith(("tests", "docs"))] == []


def test_a_wheel_from_the_sdist_is_the_same_wheel(
    artefacts: tuple[Path, Path], tmp_path: Path
) -> None:
    """The sdist is complete, builds are repeatable, and the commit stays known."""
    wheel, sdist = artefacts
    with tarfile.open(sdist) as packed:
        packed.extractall(tmp_path, filter="data")
    [unpacked] = tmp_path.iterdir()

    [again] = built(tmp_path / "dist", "wheel", source=unpacked)

    assert contents(again) == contents(wheel)


def contents(wheel: Path) -> dict[str, bytes]:
    """Return the files of a wheel, less the list of them, whose order may differ."""
    with zipfile.ZipFile(wheel) as files:
        names = [name for name in files.namelist() if not name.endswith("/RECORD")]
        return {name: files.read(name) for name in names}


def test_a_fresh_environment_shows_its_version(run: Run) -> None:
    """The version, the commit of the build, and extras as they are: missing."""
    output = run("--version")
    facts = json.loads(run("--version", "--json").stdout)

    assert output.stdout.splitlines()[0] == (
        f"kept {version('kept-rag')} (commit 0123456789ab)"
    )
    assert facts["commit"] == "0123456789ab"
    assert facts["store_schema"] >= 1
    assert set(facts["extras"]) == set(EXTRAS)
    assert not any(any(packages.values()) for packages in facts["extras"].values())


def test_the_demo_runs_from_an_empty_folder(run: Run) -> None:
    """The examples are there, and a passage is found in them."""
    ran = run("demo", *HASH)

    assert (ran.returncode, ran.stderr) == (0, "")
    assert "INV-49302" in ran.stdout


def test_documents_go_in_and_come_out(run: Run, tmp_path: Path) -> None:
    """Ingest and search, with nothing but the declared dependencies."""
    (tmp_path / "leave.md").write_text("# Leave\n\nEmployees have 28 days of leave.\n")

    taken = run("ingest", "leave.md", *HASH)
    found = run("search", "How many days of leave?", "--json", *HASH)

    assert taken.returncode == 0, taken.stderr
    [selected] = json.loads(found.stdout)["selected"]
    assert "28 days" in selected["text"]


def test_the_service_shows_its_pages(
    artefacts: tuple[Path, Path], tmp_path: Path
) -> None:
    """Templates, styles and scripts are found in the wheel."""
    installed = fresh(tmp_path / "venv", artefacts[0], "serve")
    process = subprocess.Popen(
        [installed.folder / "bin" / "kept", "serve", "--port", "0", *HASH],
        cwd=tmp_path,
        env=installed.environment(tmp_path),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        lines = iter(process.stdout.readline, "")
        address = next(line for line in lines if "http" in line).split()[-1]
        with urlopen(f"{address}/sign-in", timeout=60) as page:  # noqa: S310 -- loopback
            text = page.read().decode()
        links = re.findall(r'(?:href|src)="(/[^"]+\.(?:css|js|svg)[^"]*)"', text)
        for link in links:
            urlopen(f"{address}{link}", timeout=60).close()  # noqa: S310 -- loopback
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        process.stdout.close()

    assert len(links) >= 3
    assert "Sign in" in text


@pytest.mark.model
@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_the_readme_works_as_it_is_typed(
    tool: str, artefacts: tuple[Path, Path], tmp_path: Path
) -> None:
    """Under pip, and under uv, whose environments have no pip."""
    made = fresh(tmp_path / "venv", artefacts[0], tool=tool)
    models = {"KEPT_MODELS_DIR": str(weights.models_folder())}
    text = (ROOT / "README.md").read_text("utf-8")
    [example] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    [printed] = re.findall(r"prints\n\n```text\n(.*?)```", text, re.DOTALL)

    demo = made.run("kept-rag", "demo", cwd=tmp_path, **models)
    ran = made.run("python", "-c", example, cwd=tmp_path, **models)

    assert demo.returncode == 0, demo.stderr
    assert "refused (nothing_relevant)" in demo.stdout
    assert (ran.stdout, ran.stderr) == (printed, "")


def test_the_index_accepts_the_artefacts(artefacts: tuple[Path, Path]) -> None:
    """Twine renders the description as the index does."""
    checked = twine_check(list(map(str, artefacts)), strict=True)

    assert checked is False


def test_the_metadata_are_those_of_a_good_package() -> None:
    """Pyroma misses only what would have to be made up: addresses."""
    facts = projectdata.build_metadata(str(ROOT), isolated=False)

    rating, missed = ratings.rate(facts)

    assert rating >= 8
    assert [what for what in missed if "email" not in what and "url" not in what] == []


def test_the_description_has_no_link_that_leads_nowhere(
    artefacts: tuple[Path, Path],
) -> None:
    """On the index there are no files beside it."""
    with zipfile.ZipFile(artefacts[0]) as wheel:
        [name] = [one for one in wheel.namelist() if one.endswith("/METADATA")]
        text = wheel.read(name).decode()

    assert "# Kept" in text
    assert re.findall(r"\]\((?!https:)[^)]*\)", text) == []


MISSING = {
    "eval": ("eval", "collection", "nowhere", "--measure", "ERR@10"),
    "frames": "import kept; kb = kept.open('kb', create=True, embedder='hash'); "
    "kb.search('q').to_pandas()",
    "haystack": "import kept.doors.haystack",
    "langchain": "import kept.doors.langchain",
    "llama-index": "import kept.doors.llama_index",
    "mcp": ("mcp", "--store", "kb"),
    "milvus": ("ingest", "note.md", "--store", "milvus://localhost:1?metadata=kb"),
    "otel": ("ingest", "note.md"),
    "postgres": ("search", "q", "--store", "postgresql://localhost:1/kept"),
    "serve": ("serve",),
    "ray": ("ingest", "note.md", "--ray", "local"),
}


@pytest.mark.parametrize("extra", MISSING)
def test_a_missing_extra_error_names_the_command(
    extra: str, installed: Fresh, tmp_path: Path
) -> None:
    """What is missing and the pip command that brings it, for each extra."""
    asked = MISSING[extra]
    (tmp_path / "note.md").write_text("Employees have 28 days of leave.\n")
    telemetry = "otlp" if extra == "otel" else "off"
    env = {"KEPT_EMBEDDER": "hash", "KEPT_TELEMETRY": telemetry}

    ran = (
        installed.run("python", "-c", asked, cwd=tmp_path, **env)
        if isinstance(asked, str)
        else installed.run("kept", *asked, cwd=tmp_path, **env)
    )

    assert ran.returncode != 0
    assert f'pip install "kept-rag[{extra}]"' in ran.stderr.splitlines()[-1]


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_is_named_in_the_documentation(extra: str) -> None:
    """Some guide says how to get it, and the list of dependencies has it."""
    guides = (ROOT / "docs" / "how-to").glob("*.md")
    reported = f'pip install "kept-rag[{extra}]"'

    assert any(reported in guide.read_text("utf-8") for guide in guides)
    assert f"| {extra} |" in (ROOT / "docs" / "dependencies.md").read_text("utf-8")


def test_the_shell_completes_commands_and_options(run: Run) -> None:
    """What bash asks for on a tab is what can be typed there."""
    asked = {"_KEPT_COMPLETE": "complete_bash", "COMP_CWORD": "1"}
    commands = run(COMP_WORDS="kept se", **asked).stdout.split()
    options = run(COMP_WORDS="kept search --ex", **asked | {"COMP_CWORD": "2"}).stdout

    assert {"search", "select", "serve", "settings"} <= set(commands)
    assert "--explain" in options


def test_completion_is_installed_for_the_shell_that_asks(
    installed: Fresh, tmp_path: Path
) -> None:
    """One command writes it where bash looks."""
    shell = ["bash", "--norc", "-c", "kept --install-completion; exit $?"]

    ran = subprocess.run(
        shell,
        cwd=tmp_path,
        env=installed.environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr
    assert "_KEPT_COMPLETE" in (tmp_path / ".bash_completions" / "kept.sh").read_text()
