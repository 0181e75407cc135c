"""Tables: rows of a file that is never held as a whole."""

import io
import os
import threading
import tracemalloc
from pathlib import Path

import pytest

from kept.errors import UnreadableSourceError
from kept.text.draft import Draft
from kept.text.encodings import SAMPLE_BYTES, decode, encoding_of, lines_of
from kept.text.readers.files import ReadOptions, read_bytes, read_path

BLOCK = io.DEFAULT_BUFFER_SIZE
GERMAN = "Der Käse ist schön grün und nicht für die Straße über dem Fluß.\r\n"


def texts_of(file: Path, encoding: str | None = None) -> list[str]:
    items = list(read_path(file, options=ReadOptions(encoding=encoding)))
    assert all(isinstance(item, Draft) for item in items), items
    return [item.text for item in items if isinstance(item, Draft)]


def only_error(file: Path, encoding: str | None = None) -> UnreadableSourceError:
    [error] = read_path(file, options=ReadOptions(encoding=encoding))
    assert isinstance(error, UnreadableSourceError), error
    return error


def test_a_large_table_is_read_in_little_memory(tmp_path: Path) -> None:
    """What is held of 30 MB are a sample, a block and a row."""
    file = tmp_path / "large.csv"
    cell = "Grüße, " * 2_500
    with file.open("w") as written:
        written.write("id,text\n")
        written.writelines(f'{number},"{cell}\n{number}"\n' for number in range(1_500))
    assert file.stat().st_size > 30_000_000

    tracemalloc.start()
    try:
        rows = sum(isinstance(item, Draft) for item in read_path(file))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert rows == 1_500
    assert peak < 4_000_000


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "gb18030"])
def test_what_lies_across_two_blocks_is_read_as_one(
    tmp_path: Path, encoding: str
) -> None:
    """A quoted line end, a doubled quote and a long character may be cut anywhere."""
    file = tmp_path / "t.csv"
    cell = 'ü""\r\n漢,\r\n'

    for filler in range(BLOCK - 30, BLOCK + 2):
        text = f'id,text\r\n1,{"x" * filler}\r\n2,"{cell}"\r\n3,end\r\n'
        file.write_bytes(text.encode(encoding))

        texts = texts_of(file, encoding)

        assert texts == ["x" * filler, 'ü"\n漢,\n', "end"]


def test_rows_without_an_id_are_named_by_their_last_line(tmp_path: Path) -> None:
    """Lines within quotes count, whatever ends them."""
    file = tmp_path / "t.csv"
    file.write_bytes(b'text,n\r\n"a\r\nb",1\r\n\r\nc,2\rd,3\n')

    items = list(read_path(file, source_uri="t"))

    drafts = [item for item in items if isinstance(item, Draft)]
    assert [d.source_uri for d in drafts] == ["t#3", "t#5", "t#6"]


@pytest.mark.parametrize(
    ("written", "stated"),
    [
        ("utf-8", None),
        ("utf-8-sig", None),
        ("utf-16", None),
        ("utf-16-be", None),
        ("utf-32", None),
        ("cp1252", None),
        ("cp1252", "cp1252"),
        ("utf-8", "utf-8"),
        ("utf-16-le", "utf-16"),
        ("utf-32-le", "UTF-32"),
    ],
)
@pytest.mark.parametrize("times", [1, SAMPLE_BYTES // 50])
def test_lines_make_the_text_that_decoding_makes(
    written: str, stated: str | None, times: int
) -> None:
    """A file is read in the same encoding at once and in blocks."""
    data = ("id\r\n" + GERMAN * times).encode(written)
    text, name = decode(data, source="s", encoding=stated)

    found = encoding_of(io.BytesIO(data), source="s", encoding=stated)
    lines = list(lines_of(io.BytesIO(data), found, "s"))

    assert found == name
    assert "".join(lines) == text
    assert len(lines) == times + 1


def test_the_encoding_is_that_of_the_whole_file(tmp_path: Path) -> None:
    """Letters beyond ASCII count that come behind everything a sample shows."""
    file = tmp_path / "t.csv"
    plain = b"the words in this line are all as plain as they can be, " * 200 + b"\n"
    file.write_bytes(b"text\n" + plain * 20 + "Käse\n".encode("cp1252"))

    [*_, last] = read_path(file)

    assert isinstance(last, Draft)
    assert (last.text, last.encoding) == ("Käse", "cp1252")


def test_old_line_ends_are_recognised_in_the_sample(tmp_path: Path) -> None:
    """A file whose lines end in carriage returns is detected by its opening."""
    file = tmp_path / "t.csv"
    lines = GERMAN.strip() + "\r"
    file.write_bytes(("text\r" + lines * (SAMPLE_BYTES // 50)).encode("cp1252"))

    texts = texts_of(file)

    assert set(texts) == {GERMAN.strip()}


def test_a_wrong_byte_late_in_the_file_is_one_error(tmp_path: Path) -> None:
    """Nothing is taken from a file whose end is not in the encoding stated."""
    file = tmp_path / "t.csv"
    good = b"text\n" + "Grüße\n".encode() * 50_000
    file.write_bytes(good + b"\xff\n")

    stated = only_error(file, "utf-8")
    detected = only_error(file)

    where = f"bytes ff in position {len(good)}: invalid start byte"
    assert stated.problem == f"the bytes are not utf-8 ({where})"
    assert "state another encoding" in str(stated)
    assert "the encoding is not certain" in detected.problem


def test_a_file_that_changes_under_the_reader_ends_in_an_error() -> None:
    """Lines that fit are handed on; the first that does not is named."""
    file = io.BytesIO(b"text\n" + b"one\n" * BLOCK + b"\xc3")

    lines = lines_of(file, "utf-8", "t.csv")
    read = [next(lines) for _ in range(3)]
    with pytest.raises(UnreadableSourceError, match="unexpected end of data"):
        list(lines)

    assert read == ["text\n", "one\n", "one\n"]


@pytest.mark.parametrize("encoding", ["nothing", "hex"])
def test_an_encoding_that_is_none_is_refused(tmp_path: Path, encoding: str) -> None:
    """Names that no text is in are an error, as with any file."""
    file = tmp_path / "t.csv"
    file.write_text("text\none\n")

    assert f"there is no encoding '{encoding}'" in str(only_error(file, encoding))


@pytest.mark.parametrize("data", [b"", b"\n", b" \r\n\t" * BLOCK * 5])
def test_a_blank_table_is_an_error(tmp_path: Path, data: bytes) -> None:
    """A file with nothing in it says so, however long it is."""
    file = tmp_path / "t.csv"
    file.write_bytes(data)

    assert "it is empty" in str(only_error(file))


@pytest.mark.parametrize(
    "data", [b"text,n", b"\xef\xbb\xbftext,n\r\n", b"\xef\xbb\xbf"]
)
def test_a_header_alone_has_no_rows(data: bytes) -> None:
    """A table may be there and have nothing in it yet."""
    assert list(read_bytes(data, "t.csv")) == []


def test_a_mark_is_no_part_of_the_first_heading(tmp_path: Path) -> None:
    """Spreadsheets put a byte-order mark before the header."""
    file = tmp_path / "t.csv"
    file.write_bytes(b"\xef\xbb\xbftext;n\r\none;1\r\n")

    assert texts_of(file) == texts_of(file, "utf-8") == ["one"]


def test_blank_lines_before_the_header_do_not_hide_the_delimiter() -> None:
    """The delimiter is that of the first line that has something in it."""
    [error] = read_bytes(b"\ntext;a;b,c\n", "t.csv")

    assert "3 cells under 0 headings" in str(error)


def test_a_reader_may_stop_in_the_middle(tmp_path: Path) -> None:
    """The file is closed with the reading, and nothing is left to clear up."""
    file = tmp_path / "t.csv"
    file.write_text("text\none\ntwo\n")

    reading = read_path(file)
    first = next(reading)
    del reading

    assert isinstance(first, Draft)
    assert first.text == "one"


def test_a_table_may_come_through_a_pipe(tmp_path: Path) -> None:
    """What can be read only once is held, since it is gone through twice."""
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("text\none\ntwo\n",))
    writer.start()

    texts = texts_of(pipe)
    writer.join()

    assert texts == ["one", "two"]
