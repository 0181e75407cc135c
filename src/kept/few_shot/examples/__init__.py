"""Invented interviews with invented scores, for trying the few-shot path.

``interviews.jsonl`` holds the references, ``evidence.json`` the evidence of a
participant to be scored, ``evaluation.txt`` the participants who must not be among the
references. All of them are fictitious.
"""

from pathlib import Path

FOLDER = Path(__file__).parent
INTERVIEWS = FOLDER / "interviews.jsonl"
EVIDENCE = FOLDER / "evidence.json"
EVALUATION = FOLDER / "evaluation.txt"
