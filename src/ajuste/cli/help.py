"""``ajuste help``: the pages of the manual, which every installation has."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

import typer

from ajuste.cli.command_line import help_text
from ajuste.cli.options import example
from ajuste.machine.home import PACKAGE, TREE, in_tree
from ajuste.model.error import RequestError, did_you_mean, nearest_names

FOLDERS: Final = ("tutorial", "how-to", "reference", "explanation")
_LINK: Final = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)\s]*?([\w-]+)\.md(#[^)]*)?\)")
_ELSEWHERE: Final = re.compile(r"!?\[([^\]]+)\]\((?!https?:)[^)\s]*\)")
_COMMENT: Final = re.compile(r"<!--.*?-->\n*", re.DOTALL)


def manual_pages() -> dict[str, Path]:
    """Return the pages by topic: the names of their files, how-tos before others of the same name."""
    root = TREE / "docs" if in_tree() else PACKAGE / "manual"
    pages: dict[str, Path] = {}
    for file in (*(file for folder in FOLDERS for file in sorted((root / folder).glob("*.md"))), *root.glob("*.md")):
        pages.setdefault(file.stem, file)
    return {topic: file for topic, file in pages.items() if topic not in ("index", "README")}


@example("ajuste help", "ajuste help study-files", "ajuste help compare")
def show_page(
    topic: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TOPIC]", help="A page, or a command; without it, list the pages.", show_default=False),
    ] = None,
) -> None:
    """Show a page of the manual: how to do something, what something is, or why."""
    pages = manual_pages()
    name = "-".join(topic or ())
    if not name:
        print(_contents(pages), end="")
    elif name in pages:
        _show(page_text(pages[name], pages))
    elif text := help_text(topic or (), everything=True):
        print(text, end="")
    else:
        near = did_you_mean(nearest_names(name, pages, most=3))
        raise RequestError(f"topic {name} not found", hint=near or "list the topics with ajuste help")


def page_text(file: Path, pages: dict[str, Path]) -> str:
    """Return a page as Markdown that names commands in place of files."""

    def linked(match: re.Match[str]) -> str:
        topic = match[2]
        return f"{match[1]} (`ajuste help {topic}`)" if topic in pages and topic != file.stem else match[1]

    text = _COMMENT.sub("", file.read_text(encoding="utf-8"))
    return _ELSEWHERE.sub(r"\1", _LINK.sub(linked, text))


def _contents(pages: dict[str, Path]) -> str:
    by_folder: dict[str, list[str]] = {}
    for topic, file in pages.items():
        by_folder.setdefault(file.parent.name if file.parent.name in FOLDERS else "general", []).append(topic)
    width = max(map(len, pages)) + 2
    lines = ["Show a page with `ajuste help TOPIC`.", "Show the options of a command with `ajuste COMMAND --help`."]
    for folder, topics in by_folder.items():
        lines += ["", f"{folder.capitalize().replace('-', ' ')}:"]
        lines += [f"  {topic:<{width}}{_title(pages[topic])}" for topic in topics]
    return "\n".join(lines) + "\n"


def _title(file: Path) -> str:
    with file.open(encoding="utf-8") as lines:
        return next((line[2:].strip() for line in lines if line.startswith("# ")), "")


def _show(text: str) -> None:
    if not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        print(text, end="")
        return
    from rich.markdown import Markdown, TableElement

    from ajuste.report.console import Console

    class Folded(TableElement):
        # A table whose long words are folded, not cut.
        def __rich_console__(self, console: Any, options: Any) -> Any:
            for table in super().__rich_console__(console, options):
                for column in getattr(table, "columns", ()):
                    column.overflow = "fold"
                yield table

    class Page(Markdown):
        elements: ClassVar = {**Markdown.elements, "table_open": Folded}

    os.environ.setdefault("LESS", "-FRX")  # as git has it: colours, and no pager for what fits
    console = Console()
    with console.pager(styles=True):
        console.print(Page(text, hyperlinks=False))
