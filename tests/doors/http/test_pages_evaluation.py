"""The evaluation pages: runs, their plots, one against another, and their traces."""

import json
from pathlib import Path
from typing import Any

import pytest
from browsing import visitor
from house import House, OpenHouse

from kept.evaluation.runs import QueryRecord, RunHeader, RunWriter

RECORD = {
    "recalled": 2,
    "added": 0,
    "selected": 1,
    "dropped": 1,
    "stages": [
        {
            "stage": "relevance_floor",
            "before": 2,
            "after": 1,
            "facts": {},
            "decisions": [
                {
                    "chunk_id": "b:0000",
                    "verdict": "dropped",
                    "reason": "relevance_floor",
                    "evidence": {"relevance": 0.1, "at_least": 0.3},
                }
            ],
        }
    ],
    "candidates": [
        {
            "chunk_id": "a:0000",
            "document_id": "a",
            "title": "<i>One</i>",
            "state": "selected",
            "signals": {"relevance": 0.9},
        },
        {
            "chunk_id": "b:0000",
            "document_id": "b",
            "title": "Two",
            "state": "dropped",
            "signals": {"relevance": 0.1},
        },
    ],
}


def write_run(folder: Path, name: str, gains: list[float], **more: Any) -> None:  # noqa: ANN401 -- of the header
    """Write a run of a few questions, the first of them with its trace."""
    header = RunHeader(
        name=f"<b>{name}</b>",
        collection="handbook",
        collection_fingerprint=more.get("fingerprint", "one state"),
        measures=("nDCG@10",),
    )
    (folder / name / "traces").mkdir(parents=True)
    with RunWriter(folder / name, header) as writer:
        for place, gain in enumerate(gains):
            trace = "traces/0.json" if place == 0 else None
            writer.add(
                QueryRecord(
                    question_id=f"q{place}",
                    question=f"<u>question</u> {place}",
                    ranking=(("a", 0.9), ("b", 0.1)),
                    measures={"nDCG@10": gain},
                    relevant=("a",),
                    relevant_total=1,
                    answerable=place % 2 == 0,
                    confidence=gain,
                    correct=gain > 0.5,
                    trace=more.get("trace", trace),
                )
            )
        writer.finish()
    reported = {"query": "<u>question</u> 0", "record": RECORD}
    (folder / name / "traces" / "0.json").write_text(json.dumps(reported), "utf-8")


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Return a folder with two runs of the same questions."""
    folder = tmp_path / "runs"
    write_run(folder, "first", [0.9, 0.2, 0.6, 0.4])
    write_run(folder, "second", [0.3, 0.2, 1.0, 0.8])
    return folder


def page(house: House, path: str) -> str:
    """Return the text of a page for an admin of all tenants."""
    response = visitor(house, "admin", None).get(path)
    assert response.status_code == 200, response.text
    return str(response.text)


def test_runs_are_listed_with_their_means(open_house: OpenHouse, runs: Path) -> None:
    """Each with a link; one that cannot be read says what is wrong with it."""
    (runs / "broken.jsonl").write_text("no run\n", "utf-8")

    text = page(open_house(runs=str(runs)), "/evaluation")

    assert 'href="/evaluation/run?name=first/run.jsonl"' in text
    assert "&lt;b&gt;first&lt;/b&gt;" in text
    assert "0.5250" in text
    assert "cannot be read" in text
    assert str(runs) not in text


def test_a_run_shows_its_plots(open_house: OpenHouse, runs: Path) -> None:
    """Risk against coverage, reliability and scores, drawn without scripts."""
    text = page(open_house(runs=str(runs)), "/evaluation/run?name=first/run.jsonl")

    for title in ("Risk against coverage", "Can confidence be trusted?", "AURC"):
        assert title in text
    assert text.count('<svg class="plot"') == 3
    assert "style=" not in text
    assert "<b>first" not in text


def test_two_runs_are_compared_with_links_to_traces(
    open_house: OpenHouse, runs: Path
) -> None:
    """Wins and losses, the stage to blame, and both traces of a question."""
    text = page(
        open_house(runs=str(runs)),
        "/evaluation/compare?a=first/run.jsonl&b=second/run.jsonl",
    )

    assert "Largest losses" in text
    assert "-0.6000" in text
    assert "&lt;u&gt;question&lt;/u&gt; 0" in text
    for run in ("first", "second"):
        assert f"/evaluation/trace?run={run}/run.jsonl&amp;question=q0" in text
    assert text.count("Risk against coverage") >= 1


def test_a_trace_of_a_run_is_a_funnel(open_house: OpenHouse, runs: Path) -> None:
    """The same drawing as for a recorded question, from the run's own file."""
    text = page(
        open_house(runs=str(runs)),
        "/evaluation/trace?run=first/run.jsonl&question=q0",
    )

    assert "2 recalled plus 0 added equals 1 selected plus 1 dropped" in text
    assert "&lt;i&gt;One&lt;/i&gt;" in text
    assert "at_least" in text


def test_what_cannot_be_shown_is_said(open_house: OpenHouse, runs: Path) -> None:
    """No such run, no trace, a trace outside the folder, runs that do not match."""
    secret = runs.parent / "secret.json"
    secret.write_text(json.dumps({"record": RECORD, "query": "secret"}), "utf-8")
    write_run(runs, "sly", [0.5], trace="../../secret.json", fingerprint="another")
    browser = visitor(open_house(runs=str(runs)), "admin", None)

    def status(path: str) -> int:
        return int(browser.get(f"/evaluation/{path}").status_code)

    assert status("run?name=nowhere") == 404
    assert status("trace?run=first/run.jsonl&question=q1") == 404
    assert status("trace?run=sly/run.jsonl&question=q0") == 404
    assert status("compare?a=first/run.jsonl") == 422
    assert status("compare?a=first/run.jsonl&b=sly/run.jsonl") == 422


def test_without_a_folder_the_page_says_how_to_name_one(house: House) -> None:
    """And a folder without runs says how to make one."""
    assert "KEPT_SERVE_RUNS" in page(house, "/evaluation")


def test_runs_are_for_those_who_administer_all_tenants(
    open_house: OpenHouse, runs: Path
) -> None:
    """They belong to no tenant."""
    house = open_house(runs=str(runs))

    assert visitor(house, "admin").get("/evaluation").status_code == 403
    assert visitor(house, "writer", None).get("/evaluation").status_code == 403
    assert "/evaluation" not in visitor(house, "admin").get("/ask").text
