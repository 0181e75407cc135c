"""One run of Kept for the determinism board: the first chunks of some questions.

    python benchmarks/peers/once.py STORE HANDOVER OUT --k 10 --questions 10

Only the SQLite file of the store is used; the indexes are built again from it.
"""

import argparse
import json
import os
import shutil
import tempfile
from pathlib import Path

from kept.evaluation.corpus import TENANT
from kept.knowledge_base.base import KnowledgeBase
from kept.knowledge_base.settings import Settings
from kept.stores.sqlite.store import FILE


def main() -> None:
    """Copy the truth, build everything else again, and ask."""
    parser = argparse.ArgumentParser()
    parser.add_argument("store", type=Path)
    parser.add_argument("handover", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--questions", type=int, default=10)
    chosen = parser.parse_args()
    os.environ["KEPT_GUARDRAILS_ENABLE"] = "false"
    with (chosen.handover / "questions.jsonl").open(encoding="utf-8") as stream:
        questions = [json.loads(line) for line in stream][: chosen.questions]
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(chosen.store / FILE, folder)
        settings = Settings(store=folder, tenant=TENANT, record_queries="off")
        with (
            KnowledgeBase(settings) as base,
            chosen.out.open("w", encoding="utf-8") as stream,
        ):
            for question in questions:
                found = base.search(question["text"], k=chosen.k).selection
                ids = [candidate.id for candidate in found.candidates]
                stream.write(json.dumps({"id": question["id"], "chunks": ids}) + "\n")


if __name__ == "__main__":
    main()
