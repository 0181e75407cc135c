"""Encodings: text comes out right, or not at all."""

from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kept.errors import UnreadableSourceError
from kept.text.encodings import declared_charset, decode, encoding_of

GERMAN = "Die Prüfung der Anträge für das nächste Jahr läuft über fünf Wochen. " * 5
RUSSIAN = "Это письмо было написано для того, чтобы проверить, что оно читается. " * 5
JAPANESE = "これは日本語の文章です。正しく読めることを確認します。" * 10
HUNGARIAN = "A könyvtárban minden nap sok ember volt, mert ők ott szerettek ülni. " * 5
CODECS = {
    "windows-1250": "cp1250",
    "windows-1251": "cp1251",
    "windows-1252": "cp1252",
    "windows-1254": "cp1254",
    "windows-1255": "cp1255",
    "windows-1256": "cp1256",
    "MacCyrillic": "mac-cyrillic",
    "GB2312": "gb18030",
    "EUC-TW": None,
}


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc"])))
def test_utf8_comes_back_as_it_was(text: str) -> None:
    """Strict UTF-8 is text, whatever it says, but for a mark before it."""
    decoded, encoding = decode(text.encode(), source="a")

    assert decoded == text.removeprefix("\ufeff")
    assert encoding in {"utf-8", "utf-8-sig"}


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (GERMAN, "utf-16"),
        (GERMAN, "utf-16-le"),
        (GERMAN, "utf-16-be"),
        (GERMAN, "utf-32"),
        (GERMAN, "utf-32-be"),
        (GERMAN, "utf-8-sig"),
        (GERMAN, "cp1252"),
        (HUNGARIAN, "cp1250"),
        (HUNGARIAN, "iso8859_2"),
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8_r"),
        (JAPANESE, "shift_jis"),
        (JAPANESE, "euc_jp"),
        (JAPANESE, "iso2022_jp"),
        (JAPANESE, "utf-16-le"),
    ],
)
def test_common_encodings_are_recognised(text: str, encoding: str) -> None:
    """Marks, zero bytes, escapes, statistics and alphabets each do their part."""
    decoded, _ = decode(text.encode(encoding), source="a")

    assert decoded == text


@pytest.mark.parametrize("encoding", ["cp1250", "cp850"])
def test_an_uncertain_encoding_is_refused_with_advice(encoding: str) -> None:
    """A few accents in no language are not enough to go by."""
    data = "xqzv čřwk ňťpd".encode("cp1250") * 3

    with pytest.raises(UnreadableSourceError, match=r"odd.txt: .*--encoding"):
        decode(data, source="odd.txt")

    assert decode(data, source="odd.txt", encoding=encoding)[1] == encoding


PLAIN = b"Nothing in these lines tells one encoding from another.\n" * 5_000


def test_a_broken_byte_far_down_is_refused_as_one_near_the_beginning() -> None:
    """What detection would guess from a plain opening is mojibake further down."""
    data = PLAIN + f"{GERMAN}\n{GERMAN}\n".encode() + b"one broken \xff byte\n"

    with pytest.raises(UnreadableSourceError, match="--encoding"):
        decode(data, source="a")
    with pytest.raises(UnreadableSourceError, match="--encoding"):
        encoding_of(BytesIO(data), source="a")


@pytest.mark.parametrize(
    ("text", "encoding"),
    [(GERMAN, "cp1252"), (HUNGARIAN, "cp1250"), (RUSSIAN, "cp1251")],
)
def test_an_encoding_is_detected_by_lines_far_down(text: str, encoding: str) -> None:
    """A plain opening of any length hides nothing."""
    data = PLAIN + f"{text}\n".encode(encoding)

    decoded, name = decode(data, source="a")

    assert decoded.endswith(f"{text}\n")
    assert encoding_of(BytesIO(data), source="a") == name


def test_a_stated_encoding_is_final() -> None:
    """The caller's word is taken, and held against the bytes."""
    with pytest.raises(UnreadableSourceError, match="not ascii"):
        decode("ü".encode(), source="a", encoding="ascii")
    with pytest.raises(UnreadableSourceError, match="no encoding 'klingon'"):
        decode(b"x", source="a", encoding="klingon")


@pytest.mark.parametrize(
    "data", [b"\0" * 100, bytes(range(256)) * 4, b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" * 9]
)
def test_binary_data_is_no_text(data: bytes) -> None:
    """Zero bytes and control characters give it away."""
    with pytest.raises(UnreadableSourceError, match="binary"):
        decode(data, source="a.txt")


def test_a_declared_charset_counts_unless_the_bytes_know_better() -> None:
    """A page that says Latin 1 but is UTF-8 is UTF-8."""
    assert decode("für".encode("cp1252"), source="a", declared="iso-8859-1")[0] == "für"
    assert decode("für".encode(), source="a", declared="iso-8859-1")[0] == "für"
    assert decode("東京".encode("cp932"), source="a", declared="x-sjis")[0] == "東京"
    assert decode(b"x", source="a", declared="nonsense")[0] == "x"


@pytest.mark.parametrize(
    ("data", "charset"),
    [
        (b'<html><meta charset="utf-8">', "utf-8"),
        (b"<META http-equiv=x content='text/html; charset=koi8-r'>", "koi8-r"),
        (b'<?xml version="1.0" encoding="Shift_JIS"?>', "Shift_JIS"),
        (b"<p>no charset here</p>", None),
    ],
)
def test_declared_charsets_are_found(data: bytes, charset: str | None) -> None:
    """Pages and XML files say it in their first bytes."""
    assert declared_charset(data) == charset


@pytest.mark.evaluation_data
def test_real_files_decode_right_or_are_refused(evaluation_data: Path) -> None:
    """Of some 90 real files in 50 encodings, most come out right, none as mojibake.

    Shift_JIS is read as browsers do, which spells two of its dashes full-width.
    """
    right, refused, wrong = 0, 0, []
    files = sorted((evaluation_data / "awkward" / "encodings").glob("*/*"))
    for path in files:
        data = path.read_bytes()
        try:
            text, _ = decode(data, source=path.name, declared=declared_charset(data))
        except UnreadableSourceError:
            refused += 1
            continue
        same = _spelled(text) == _spelled(data.decode(_codec(path.parent.name)))
        right += same
        wrong += [] if same else [path]

    assert wrong == []
    assert right >= len(files) * 0.85
    assert refused == len(files) - right


def _codec(folder: str) -> str:
    name = folder
    for part in ("windows-125", "iso-8859-"):
        if folder.startswith(part):
            name = "-".join(folder.split("-")[: part.count("-") + 1])
    return CODECS.get(name) or name


def _spelled(text: str) -> str:
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return text.replace("\uff5e", "\u301c").replace("\uff0d", "\u2212")
