"""Formats: the text inside PDF files, and front matter before Markdown."""

import re
from collections.abc import Mapping
from threading import Lock
from typing import Any

from kept.errors import UnreadableSourceError

MAX_FRONT_MATTER_CHARS = 100_000

_FENCE = re.compile(
    r"---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE
)
_KEY = re.compile(r"\s*(?:#.*\n\s*)*[\"']?[\w][^:\n]*:(?:\s|$)")
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f]")
_PASSWORD_ERROR = 4
_PDFIUM = Lock()


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
    return text, title


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
