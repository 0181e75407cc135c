"""Formats: the text inside PDF and DOCX files, and front matter before Markdown."""

import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from threading import Lock
from typing import Any

from kept.errors import UnreadableSourceError

MAX_FRONT_MATTER_CHARS = 100_000
MAX_UNPACKED_BYTES = 1_000_000_000

_FENCE = re.compile(
    r"---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE
)
_KEY = re.compile(r"\s*(?:#.*\n\s*)*[\"']?[\w][^:\n]*:(?:\s|$)")
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f]")
_PASSWORD_ERROR = 4
_PDFIUM = Lock()
_JUNK_TITLE = re.compile(
    r"microsoft (?:word|powerpoint)|untitled|\(?anonymous|.*\.\w{2,5}$", re.IGNORECASE
)


def split_front_matter(text: str, source: str) -> tuple[Mapping[str, Any], str]:
    """Return the declarations before a text, and the text after them verbatim."""
    fenced = _FENCE.match(text[:MAX_FRONT_MATTER_CHARS])
    if not fenced or not _KEY.match(fenced[1]):
        return {}, text
    fields = parse_yaml(fenced[1], source)
    return fields, text[fenced.end() :]


def parse_yaml(text: str, source: str) -> Mapping[str, Any]:
    """Return a YAML (or JSON) mapping, or say what is wrong with it."""
    import yaml  # noqa: PLC0415 -- only for texts with declarations

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        fields = yaml.load(text, Loader=loader)  # noqa: S506 -- a safe loader
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problem = " ".join(str(error).split())
        raise UnreadableSourceError(
            source, f"its declarations are no YAML ({problem})", "mend or remove them"
        ) from error
    if fields is None:
        return {}
    if not isinstance(fields, Mapping):
        raise UnreadableSourceError(
            source,
            f"its declarations are a {type(fields).__name__}",
            "expected lines of 'name: value'",
        )
    return fields


def read_pdf(data: bytes, source: str) -> tuple[str, str]:
    """Return the text of a PDF, pages apart, and the title it declares."""
    import pypdfium2  # noqa: PLC0415 -- only for PDF files

    with _PDFIUM:
        try:
            document = pypdfium2.PdfDocument(data)
        except pypdfium2.PdfiumError as error:
            raise _pdf_error(source, error) from error
        try:
            pages = [_page_text(document, number) for number in range(len(document))]
            title = str(document.get_metadata_value("Title"))
        except pypdfium2.PdfiumError as error:
            raise _pdf_error(source, error) from error
        finally:
            document.close()
    text = "\n\n".join(filter(None, pages))
    if not text:
        raise UnreadableSourceError(
            source,
            "this PDF has no text; it may be a scan",
            "run it through text recognition (OCR) first",
        )
    return text, "" if _JUNK_TITLE.match(title.strip()) else title


def _page_text(document: Any, number: int) -> str:  # noqa: ANN401 -- untyped library
    page = document[number]
    words = page.get_textpage()
    try:
        text = str(words.get_text_bounded())
    finally:
        words.close()
        page.close()
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    # PDFium marks a hyphen at the end of a line with these.
    return _CONTROLS.sub("", re.sub(r"[\ufffe\x02]\n?", "", text)).strip()


def _pdf_error(source: str, error: Exception) -> UnreadableSourceError:
    if getattr(error, "err_code", None) == _PASSWORD_ERROR:
        return UnreadableSourceError(
            source, "this PDF is encrypted", "save it without a password first"
        )
    return UnreadableSourceError(
        source, f"this PDF is broken ({error})", "open it in a viewer and save it anew"
    )


def read_docx(data: bytes, source: str) -> tuple[str, str]:
    """Return the text of a Word file in its order, and the title it declares."""
    import docx  # noqa: PLC0415 -- only for Word files
    from docx.opc.exceptions import OpcError  # noqa: PLC0415 -- as above

    _refuse_bomb(data, source)
    try:
        document = docx.Document(io.BytesIO(data))
        text = "\n\n".join(_blocks(document.iter_inner_content()))
        title = document.core_properties.title or ""
    except (OpcError, SyntaxError, KeyError, ValueError, AttributeError) as error:
        raise UnreadableSourceError(
            source,
            "this Word file is broken: what should be in it is missing or misplaced",
            "open it in a word processor and save it anew",
        ) from error
    return text, title


def _refuse_bomb(data: bytes, source: str) -> None:
    """Refuse an archive that is none, or that unpacks to more than a text would."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
    except zipfile.BadZipFile as error:
        raise UnreadableSourceError(
            source,
            "this is no Word file, or a broken or encrypted one",
            "open it in a word processor and save it anew, without a password",
        ) from error
    if size > MAX_UNPACKED_BYTES:
        raise UnreadableSourceError(
            source, f"it unpacks to {size:,} bytes", "hand in a smaller file"
        )


def _blocks(content: Iterable[Any]) -> Iterator[str]:
    """Yield paragraphs, headings marked with #, and tables row by row."""
    for block in content:
        if hasattr(block, "rows"):
            rows = (_row(row) for row in block.rows)
            text = "\n".join(filter(None, rows))
        else:
            text = _heading_mark(block) + block.text.strip()
        if text.strip("# "):
            yield text


def _row(row: Any) -> str:  # noqa: ANN401 -- untyped library
    """Return the cells of a row; a merged cell counts once."""
    cells: dict[Any, str] = {}
    for cell in row.cells:
        if cell._tc not in cells:  # noqa: SLF001 -- the cell's only identity
            cells[cell._tc] = " ".join(_blocks(cell.iter_inner_content()))  # noqa: SLF001
    return " | ".join(cells.values()) if any(cells.values()) else ""


def _heading_mark(paragraph: Any) -> str:  # noqa: ANN401 -- untyped library
    style = paragraph.style.name if paragraph.style is not None else ""
    if style == "Title":
        return "# "
    level = re.fullmatch(r"Heading ([1-9])", style or "")
    return f"{'#' * min(int(level[1]), 6)} " if level else ""
