"""``kept audit-retriever``: checks a retriever in a module of the user."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import copy

import pytest

from commands import kept

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "docs" / "examples"
GUIDE = ROOT / "docs" / "how-to" / "audit-a-retriever.md"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Work in a folder of its own, and forget what was imported from it."""
    for name in ("toy_retriever.py", "questions.txt"):
        copy(EXAMPLES / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def test_the_guide_shows_the_real_output() -> None:
    """What docs/how-to/audit-a-retriever.md prints is what is printed."""
    [shown] = re.findall(
        r"```console\n\$ kept (audit-retriever [^\n]*)\n(.*?)```",
        GUIDE.read_text("utf-8"),
        re.DOTALL,
    )
    command, output = shown

    ran = kept(*command.split())

    assert ran.out == output
    assert (ran.code, ran.err) == (24, "")


def test_json_and_a_page(here: Path) -> None:
    """The same findings for machines and for a browser; prints do not mix in."""
    (here / "chatty.py").write_text(
        "from toy_retriever import search as find\n"
        "def search(question, k):\n    print('hello')\n    return find(question, k)\n"
    )

    ran = kept(
        *("audit-retriever", "chatty:search", "--queries", "questions.txt"),
        *("--json", "--html", "audit.html"),
    )

    assert ran.json["counts"]["problem"] == 4
    assert "hello" in ran.err
    assert "min-max" in (here / "audit.html").read_text("utf-8")


def test_a_file_can_be_named_by_its_path(here: Path) -> None:
    """Without it being a module of the current folder; --limit asks fewer."""
    (here / "deep").mkdir()
    (here / "toy_retriever.py").rename(here / "deep" / "other_toy.py")

    ran = kept(
        *("audit-retriever", "deep/other_toy.py:search", "--limit", 3, "--json"),
        *("--queries", "questions.txt"),
    )

    assert ran.json["questions"] == 3


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("toy_retriever", "'toy_retriever' names no retriever; expected module:funct"),
        ("nowhere:search", "there is no module 'nowhere' here; looked in"),
        ("toy_retriever:find", "'toy_retriever' has no 'find'; there is: bm25, search"),
        ("toy_retriever:HANDBOOK", "cannot be called"),
        ("broken:search", "importing 'broken' failed: ZeroDivisionError: division by"),
        ("garbled:search", "importing 'garbled' failed: SyntaxError: "),
        ("needy:search", "importing 'needy' failed: ModuleNotFoundError: No module na"),
        ("raising:search", "raising:search raised ValueError: no index ("),
        ("quitting:search", "quitting:search raised SystemExit: bye"),
        ("empty:search", "empty:search: it returned None; expected a list of texts"),
    ],
)
def test_errors_of_the_retriever_are_shown_with_their_location(
    here: Path, reference: str, message: str
) -> None:
    """One line: their exception, their file, their line; no traceback of ours."""
    for name, code in {
        "broken": "1 / 0\n",
        "garbled": "def search(:\n",
        "needy": "import no_such_package_of_anyone\n",
        "raising": "def search(q, k):\n    raise ValueError('no index')\n",
        "quitting": "import sys\ndef search(q, k):\n    sys.exit('bye')\n",
        "empty": "def search(q, k):\n    pass\n",
    }.items():
        (here / f"{name}.py").write_text(code)

    ran = kept("audit-retriever", reference, "--queries", "questions.txt")

    complaint = ran.complaint(3)
    assert message in complaint
    if reference == "raising:search":
        assert "raising.py, line 2)" in complaint


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "holds no questions"),
        ('{"id": 1}\n', "questions.txt, line 1: no question in it"),
        ("{nonsense\n", "questions.txt, line 1: not JSON"),
    ],
)
def test_a_file_without_questions_is_rejected(
    here: Path, content: str, message: str
) -> None:
    """Where, and what was expected."""
    (here / "questions.txt").write_text(content)

    ran = kept("audit-retriever", "toy_retriever:search", "--queries", "questions.txt")

    assert message in ran.complaint(3)


def test_a_missing_file_of_questions_is_rejected() -> None:
    """By its name."""
    ran = kept("audit-retriever", "toy_retriever:search", "--queries", "none.txt")

    assert "none.txt: No such file" in ran.complaint(3)


def test_questions_may_be_json_lines(here: Path) -> None:
    """As in BEIR's queries; each question is asked once."""
    line = '{"_id": "1", "text": "When does the Leeds office open?"}\n'
    (here / "questions.txt").write_text(line * 2)

    ran = kept(
        *("audit-retriever", "toy_retriever:search", "--queries", "questions.txt"),
        "--json",
    )

    assert ran.json["questions"] == 1
