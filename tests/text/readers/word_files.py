"""Word files written part by part, as no library would write them."""

import io
import zipfile
from collections.abc import Mapping

_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
_HEAD = f'<?xml version="1.0"?><w:{{name}} xmlns:w="{_W}" xmlns:r="{_OFFICE}">'
_TYPES = (
    '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/'
    'content-types"><Default Extension="xml" ContentType="application/xml"/></Types>'
)


def word_file(body: str, **parts: str) -> bytes:
    """Return a Word file: its body, and other parts such as numbering and styles.

    A part stands for the file of its name, ``header1`` for ``word/header1.xml``.
    """
    kinds = {name: name.rstrip("0123456789") for name in parts}
    roots = {"header": "hdr", "footer": "ftr"}
    files = {
        "[Content_Types].xml": _TYPES,
        "_rels/.rels": _related({"document": "officeDocument"}, "word/"),
        "word/_rels/document.xml.rels": _related(kinds, ""),
        "word/document.xml": _part("document", f"<w:body>{body}</w:body>"),
        **{
            f"word/{name}.xml": _part(roots.get(kind, kind), parts[name])
            for name, kind in kinds.items()
        },
    }
    return zipped(files)


def zipped(files: Mapping[str, str | bytes]) -> bytes:
    """Return an archive of *files*."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def paragraph(*runs: str, properties: str = "") -> str:
    """Return a paragraph; a run that is no markup is text."""
    inner = "".join(one if one.startswith("<") else run(one) for one in runs)
    return f"<w:p><w:pPr>{properties}</w:pPr>{inner}</w:p>"


def run(text: str, properties: str = "") -> str:
    """Return a run of text."""
    inner = f'<w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t>'
    return f"<w:r>{inner}</w:r>"


def cell(text: str, properties: str = "") -> str:
    """Return a cell of a table."""
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{paragraph(text)}</w:tc>"


def _part(name: str, inner: str) -> str:
    return f"{_HEAD.format(name=name)}{inner}</w:{name}>"


def _related(kinds: Mapping[str, str], folder: str) -> str:
    inner = "".join(
        f'<Relationship Id="{name}" Type="{_OFFICE}/{kind}" '
        f'Target="{folder}{name}.xml"/>'
        for name, kind in kinds.items()
    )
    head = f'<?xml version="1.0"?><Relationships xmlns="{_PACKAGE}">'
    return f"{head}{inner}</Relationships>"
