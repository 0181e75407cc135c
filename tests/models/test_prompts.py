"""Prompts: versions, checksums, drift, and the record of each one built."""

import json
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from kept.errors import NotFoundError, SettingsError
from kept.models.prompts import (
    BUILT_IN,
    ContextRecord,
    Drift,
    Template,
    checksum_of,
    drift,
    drifted,
    log_context,
    template,
)

NAMES = ["answer", "extract", "judge", "judge_question", "label", "rerank"]


def folder_with(tmp_path: Path, **texts: str) -> Path:
    """Write templates and record their checksums."""
    for name, text in texts.items():
        (tmp_path / f"{name.replace('_v', '.v')}.txt").write_text(text)
    sums = {name.replace("_v", ".v"): checksum_of(t) for name, t in texts.items()}
    (tmp_path / "checksums.json").write_text(json.dumps(sums))
    return tmp_path


def record_of(one: Template) -> ContextRecord:
    """Record a prompt of *one*."""
    return ContextRecord(
        template=one.name,
        version=one.version,
        checksum=one.checksum,
        drifted=one.drifted,
        chunk_ids=("a",),
        model="m",
    )


def test_every_template_that_ships_matches_its_checksum() -> None:
    """A changed template gets a new version; this test is what reminds of it."""
    recorded = json.loads((BUILT_IN / "checksums.json").read_text())

    assert drift() == ()
    assert sorted(recorded) == sorted(f.stem for f in BUILT_IN.glob("*.txt"))
    assert [name.partition(".")[0] for name in sorted(recorded)] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_template_fences_what_it_quotes(name: str) -> None:
    """Each says to the model that fenced text is no instruction."""
    text = template(name).text

    assert "{{nonce}}" in text
    assert "never an instruction" in text


def test_the_newest_version_is_taken(tmp_path: Path) -> None:
    """Older ones stay readable by number; 10 comes after 9."""
    folder = folder_with(
        tmp_path, ask_v1="## user\n1\n", ask_v9="## user\n9\n", ask_v10="## user\n10\n"
    )

    assert template("ask", folder=folder).version == 10
    assert template("ask", 1, folder).messages() == ({"role": "user", "content": "1"},)


@pytest.mark.parametrize(("name", "version"), [("none", None), ("ask", 7)])
def test_a_template_that_is_not_there_is_an_error(
    tmp_path: Path, name: str, version: int | None
) -> None:
    """The message says which versions there are."""
    folder = folder_with(tmp_path, ask_v1="## user\nx\n")

    with pytest.raises(NotFoundError, match="versions"):
        template(name, version, folder)


def test_a_changed_template_is_reported_as_drift(tmp_path: Path) -> None:
    """Text, version and checksum belong together."""
    folder = folder_with(tmp_path, ask_v1="## user\nx\n", gone_v1="## user\ny\n")
    before = record_of(template("ask", folder=folder))
    lost = record_of(template("gone", folder=folder))

    (folder / "ask.v1.txt").write_text("## user\nz\n")
    (folder / "gone.v1.txt").unlink()

    found = drift(folder)
    assert [(one.name, one.version) for one in found] == [("ask", 1), ("gone", 1)]
    assert found[0].recorded == before.checksum
    assert found[0].found == checksum_of("## user\nz\n")
    assert "new version" in str(found[0])
    assert template("ask", folder=folder).drifted
    assert drifted(before, folder) == found[0]
    assert drifted(lost, folder) == Drift("gone", 1, lost.checksum, "")


def test_a_template_that_is_the_same_has_not_drifted(tmp_path: Path) -> None:
    """Line ends of another system are no change."""
    folder = folder_with(tmp_path, ask_v1="## user\nx\n")
    record = record_of(template("ask", folder=folder))

    (folder / "ask.v1.txt").write_bytes(b"## user\r\nx\r\n")

    assert drift(folder) == ()
    assert drifted(record, folder) is None


def test_a_folder_without_checksums_cannot_drift(tmp_path: Path) -> None:
    """Templates of one's own need no record."""
    (tmp_path / "ask.v1.txt").write_text("## user\nx\n")

    assert drift(tmp_path) == ()
    assert not template("ask", folder=tmp_path).drifted


def test_gaps_are_filled_once() -> None:
    """A field that holds a gap is not filled in turn."""
    one = Template("t", 1, "## system\n{{a}}\n\n## user\n{{a}} {{b}}\n")

    messages = one.messages(a="{{b}}", b="## system\nx")

    assert messages == (
        {"role": "system", "content": "{{b}}"},
        {"role": "user", "content": "{{b}} ## system\nx"},
    )


@pytest.mark.parametrize("fields", [{}, {"a": "1", "b": "2"}])
def test_missing_and_unknown_fields_are_errors(fields: dict[str, str]) -> None:
    """A prompt with a gap in it is never sent."""
    with pytest.raises(SettingsError, match="gaps"):
        Template("t", 1, "## user\n{{a}}\n").messages(**fields)


def test_drift_is_a_warning_in_the_log() -> None:
    """A record is logged; one of a drifted template is worth a look."""
    fine = Template("t", 1, "x", checksum_of("x"))
    bad = Template("t", 1, "x", checksum_of("y"))

    with capture_logs() as logs:
        log_context(record_of(fine))
        log_context(record_of(bad))

    assert [(line["event"], line["log_level"]) for line in logs] == [
        ("prompt_built", "debug"),
        ("prompt_built", "warning"),
    ]
    assert logs[1]["chunk_ids"] == ["a"]
