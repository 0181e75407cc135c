"""Bodies may come packed by gzip, and are held to the same limits."""

import asyncio
import gzip
import json
from typing import Any

import pytest
from house import House, OpenHouse, Response, problem
from starlette.types import Message

from kept.doors.http.problems import Problem
from kept.doors.http.request_bodies import PIECE_BYTES, GzipBody
from kept.doors.http.settings import Bounds

JSON = {"content-type": "application/json"}
TEXT = "Employees have 28 days of leave a year."
HANDED = json.dumps({"documents": [{"text": TEXT}]}).encode()


def packed(house: House, body: bytes, encoding: str = "gzip", **more: str) -> Response:
    """Hand documents in with a body that is said to be packed."""
    return house.ask(
        "POST",
        "/v1/documents?wait=30",
        content=body,
        headers={**JSON, "content-encoding": encoding, **more},
    )


def unpacked(body: bytes, most_bytes: int, size: int) -> list[bytes]:
    """Return the pieces of a body that comes in messages of this size."""
    parts = [body[at : at + size] for at in range(0, len(body), size)] or [b""]
    messages = [
        {"type": "http.request", "body": part, "more_body": True} for part in parts
    ]
    messages[-1]["more_body"] = False
    coming = iter(messages)

    async def receive() -> Message:
        return next(coming)

    async def read() -> list[bytes]:
        receiving, pieces = GzipBody(receive, most_bytes), []
        while True:
            message: dict[str, Any] = dict(await receiving())
            pieces.append(message["body"])
            if not message["more_body"]:
                return pieces

    return asyncio.run(read())


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "x-gzip"])
def test_a_packed_body_is_what_is_in_it(house: House, encoding: str) -> None:
    """Documents are taken in from it as from a plain one."""
    taken = packed(house, gzip.compress(HANDED), encoding).json()

    assert [r["status"] for r in taken["receipts"]] == ["created"]


def test_packed_and_plain_are_the_same_request(house: House) -> None:
    """A write that is sent again packed is not done again."""
    key = {"idempotency-key": "one"}

    plain = packed(house, HANDED, "identity", **key)
    again = packed(house, gzip.compress(HANDED), **key)

    assert again.json() == plain.json()


def test_files_may_come_packed(house: House) -> None:
    """A form is held against the limit of uploads."""
    form = house.client.build_request(
        "POST", "/v1/documents/files?wait=30", files={"files": ("a.txt", TEXT)}
    )
    sent = house.ask(
        "POST",
        "/v1/documents/files?wait=30",
        content=gzip.compress(form.read()),
        headers={
            "content-type": form.headers["content-type"],
            "content-encoding": "gzip",
        },
    )

    assert [r["status"] for r in sent.json()["receipts"]] == ["created"]


def test_a_body_that_is_large_when_unpacked_is_too_large(open_house: OpenHouse) -> None:
    """However small it comes."""
    house = open_house(bounds=Bounds(body_bytes=100_000))
    bomb = gzip.compress(b" " * 50_000_000)
    assert len(bomb) < 100_000

    reported = problem(packed(house, bomb), 413, "body_too_large")

    assert "when unpacked" in reported["detail"]


@pytest.mark.parametrize("size", [1, 7, 10_000_000])
def test_no_more_than_a_piece_is_unpacked_at_once(size: int) -> None:
    """Pieces of several parts make up the whole, however they come."""
    text = bytes(range(256)) * (PIECE_BYTES // 100 if size > 7 else 5)
    body = gzip.compress(text) + gzip.compress(b"") + gzip.compress(text)

    pieces = unpacked(body, len(text) * 2, size)

    assert b"".join(pieces) == text * 2
    assert max(map(len, pieces)) <= PIECE_BYTES
    with pytest.raises(Problem, match="at most"):
        unpacked(body, len(text) * 2 - 1, size)


def test_an_empty_body_needs_no_packing() -> None:
    """There is nothing in it."""
    assert unpacked(b"", 10, 1) == [b""]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (HANDED, "is not"),
        (gzip.compress(HANDED)[:-4], "ends before"),
        (gzip.compress(HANDED) + b"more", "is not"),
    ],
    ids=["plain", "torn", "longer"],
)
def test_a_body_that_is_no_gzip_is_refused(house: House, body: bytes, why: str) -> None:
    """It is not taken for broken JSON."""
    assert why in problem(packed(house, body), 400, "invalid_encoding")["detail"]


@pytest.mark.parametrize("encoding", ["br", "gzip, gzip", "deflate"])
def test_other_encodings_are_refused_with_the_supported_one(
    house: House, encoding: str
) -> None:
    """Also by the header that clients look for."""
    refused = packed(house, gzip.compress(HANDED), encoding)

    assert "gzip" in problem(refused, 415, "unsupported_encoding")["detail"]
    assert refused.headers["accept-encoding"] == "gzip"


def test_without_a_key_nothing_is_said_about_encodings(house: House) -> None:
    """Who asks comes before what is sent."""
    sent = house.client.post(
        "/v1/search", content=b"x", headers={"content-encoding": "br"}
    )

    problem(sent, 401, "unauthenticated")
