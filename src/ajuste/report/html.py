"""The report as one self-contained HTML file: no network, no other file; its text needs no script."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup, escape

from ajuste.machine.files import make_directory, replace_file
from ajuste.model.caller import open_kept
from ajuste.model.wording import unbroken, visible
from ajuste.report.document import Cell, Column, Data, Entry, Report, Row, every, saved_pictures
from ajuste.report.plots.plot import declarations, figure_json

if TYPE_CHECKING:
    import jinja2

_HEAD: Final = 2_000
_CONTENTS: Final = re.compile('<meta name="contents" content="([0-9a-f]+)">')
# Most figures: nothing in them is hidden or means something in HTML.
_HARMLESS: Final = re.compile(r"[A-Za-z0-9 .,:%+-]*").fullmatch
_BREAKS: Final = re.compile(r"([_/](?=\w)|\.(?=[^\W\d]))")  # no number is broken


def render_html(report: Report, of: str = "") -> str:
    """Return the page; all of ``report`` is shown as text, whatever it contains. ``of`` names its contents."""
    scripts = {"theme": page_asset("theme.js"), "report": page_asset("report.js")}
    library = _file("plotly.min.js.gz")
    return (
        page_environment()
        .get_template("report.html.j2")
        .render(
            of=of,
            style=Markup(page_style()),
            scripts=scripts,
            library=_in_base64(library),
            policy=content_policy([*(script.encode() for script in scripts.values()), gzip.decompress(library)]),
            **page_context(report),
        )
    )


def page_context(report: Report) -> dict[str, Any]:
    """Return the template's variables for ``report``."""
    blocks = (*report.lead, *(block for section in report.sections for block in section.blocks))
    files = [file for block in every(blocks) if isinstance(block, Data) for file in block.downloads]
    figures = ",".join(f"{json.dumps(p.plot.name)}:{figure_json(p.plot.figure)}" for p in report.pictures)
    return {
        "report": report,
        "contents": [(f"{section.name}-title", section.short) for section in report.sections if section.short],
        "saved": {picture.plot.name: picture for picture in saved_pictures(report)},
        "packed": {file.name: _packed(file.text) for file in files} | {"figures": _packed(f"{{{figures}}}")},
        "has_figures": bool(figures),
    }


def write_report(report: Report, path: Path, of: str = "", *, mode: int = 0o600) -> None:
    """Write ``report`` to ``path``, whole or not at all; its directory is made if it is missing. A page of the same
    contents, which ``of`` names, stays as it is.
    """
    if of and _contents(path) == of:
        return
    make_directory(path.parent)
    replace_file(path, render_html(report, of).encode(), mode=mode)


def _contents(path: Path) -> str:
    # Return the `of` that a page was rendered with; empty if it cannot be read.
    try:
        with open_kept(path) as file:  # A FIFO would make its reader wait.
            match = _CONTENTS.search(file.read(_HEAD).decode(errors="replace"))
    except OSError:
        return ""
    return match[1] if match else ""


def _packed(text: str) -> Markup:
    # Data of a page, which its script unpacks: of many trials they are several times as long as the rest.
    return _in_base64(gzip.compress(text.encode(), 4, mtime=0))  # 6 takes twice as long for 8 % less


def _in_base64(content: bytes) -> Markup:
    return Markup(base64.b64encode(content).decode())  # no letter of HTML is in it


def page_style() -> str:
    """Return the style sheet with the palette: light, dark by the reader's system, and either by choice."""
    light, dark = declarations("light"), declarations("dark")
    by_system = f":root:not([data-theme='light']) {{ color-scheme: dark;\n{dark}\n}}"
    parts = (
        f":root {{ color-scheme: light;\n{light}\n}}",
        f"@media (prefers-color-scheme: dark) {{ {by_system} }}",
        f":root[data-theme='dark'] {{ color-scheme: dark;\n{dark}\n}}",
        f"@media print {{ :root:root:root {{ color-scheme: light;\n{light}\n}} }}",
        str(page_asset("report.css")),
    )
    return "\n".join(parts)


def content_policy(scripts: list[bytes]) -> str:
    """Return a policy that runs our scripts only and loads nothing: a second wall behind the escaping of text."""
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(script).digest()).decode()}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        "form-action 'none'; base-uri 'none'"
    )


def page_asset(name: str) -> Markup:
    """Return a file of the pages, such as ``report.js``, unpacked."""
    content = _file(name)
    return Markup((gzip.decompress(content) if name.endswith(".gz") else content).decode())  # a file of this package


def _file(name: str) -> bytes:
    return resources.files("ajuste.report").joinpath("templates", name).read_bytes()


def _make_visible(value: Any) -> Any:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _undrawn(block: object) -> str:
    raise TypeError(f"the page has no form for {type(block).__name__}")


def _bare(cell: Entry) -> Markup:
    # A figure of a table of figures: there are many thousands, so that nothing stands around them that is not needed.
    # Empty for what needs more.
    return Markup(_bare_html(cell))  # escaped there


def _bare_html(cell: Entry) -> str:
    if isinstance(cell, str):
        return _escaped(cell)
    if not isinstance(cell, Cell) or cell.missing:
        return ""
    return (
        f'{_escaped(cell.text)} <span class="spread">{_escaped(cell.note)}</span>' if cell.note else _escaped(cell.text)
    )


def _escaped(text: str) -> str:
    return text if _HARMLESS(text) else str(escape(visible(text)))


def _figure_row(row: Row, columns: Sequence[Column]) -> Markup:
    # As `_bare` a whole row, which its first cell names; empty where one of them needs more.
    cells = list(map(_bare_html, row.cells))
    if not all(cells):
        return Markup()
    named, *figures = cells
    data_cells = (
        f"<td>{cell}</td>" if column.figure else f'<td class="text">{cell}</td>'
        for cell, column in zip(figures, columns[1:], strict=True)
    )
    marked = ' class="marked"' if row.marked else ""
    return Markup(f'<tr{marked}><th scope="row"><span>{named}</span></th>{"".join(data_cells)}</tr>')


def _breakable(name: str) -> Markup:
    return Markup(_BREAKS.sub(r"\1<wbr>", str(escape(visible(name)))))  # escaped just now


@cache
def page_environment(*packages: str) -> jinja2.Environment:
    """Return the environment for our templates and those of ``packages``, which may extend ours."""
    import jinja2  # a page of the same contents stays without it

    class Compiled(jinja2.FileSystemBytecodeCache):
        # Compiled templates, beside the compiled modules of this package, where Python may write these.
        def dump_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
            with suppress(OSError):
                if not sys.dont_write_bytecode:
                    super().dump_bytecode(bucket)

    loaders = [jinja2.PackageLoader(package, "templates") for package in (*packages, "ajuste.report")]
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader(loaders),
        bytecode_cache=Compiled(str(Path(__file__).with_name("__pycache__"))),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_make_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["bare"] = _bare
    environment.filters["figures"] = _figure_row
    environment.filters["breakable"] = _breakable
    environment.filters["kind"] = lambda block: type(block).__name__
    environment.filters["unbroken"] = unbroken
    environment.filters["undrawn"] = _undrawn
    return environment
