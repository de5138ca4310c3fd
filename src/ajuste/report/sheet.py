"""Printing for people on any terminal: nothing cut off, no trailing blanks, ASCII where nothing else can be shown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ajuste.model.verdict import Word

INDENT: Final = 2
WORD_STYLES: Final[dict[Word, str]] = {
    "improves": "bold green",
    "worsens": "bold red",
    "differs": "bold blue",
    "equivalent": "cyan",
    "undecided": "yellow",
}
"""How the words of verdicts look."""

_ASCII: Final = str.maketrans(
    {
        "−": "-",
        "–": "-",
        "±": "+-",
        "×": "x",
        "…": "..",
        "µ": "u",
        "μ": "u",
        "∞": "inf",
        "≠": "!=",
        "≈": "~",
        "·": "|",
        "→": "->",
    }
)


class Sheet:
    """What is printed at once on a console, text by text and table by table."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.width = console.width

    def say(self, text: str | Text, style: str = "", indent: int = 0) -> None:
        """A paragraph, wrapped at words; a longer word is broken, never cut."""
        said = Text(text, style=style) if isinstance(text, str) else text
        for line in said.wrap(self.console, max(1, self.width - indent), overflow="fold"):
            self.console.print(Text(" " * indent) + line, soft_wrap=True)

    def line(self, text: str) -> None:
        """One line whatever its length, for what people copy: paths and commands."""
        self.console.print(Text(text), soft_wrap=True)

    def heading(self, text: str) -> None:
        self.blank()
        self.say(text, style="bold underline" if self.console.is_terminal else "")

    def blank(self) -> None:
        self.console.print()

    def table(self, table: Table, indent: int = INDENT) -> None:
        self.console.print(Padding(table, (0, 0, 0, indent), expand=False))

    def fits(self, table: Table, indent: int = INDENT) -> bool:
        """Whether no cell would have to wrap."""
        unlimited = self.console.options.update(max_width=100_000)
        return table.__rich_measure__(self.console, unlimited).maximum + indent <= self.width


@contextmanager
def sheet(console: Console) -> Iterator[Sheet]:
    """A sheet that is written to ``console`` in one piece when it is done."""
    with console.capture() as capture:
        yield Sheet(console)
    text = "".join(f"{line.rstrip()}\n" for line in capture.get().splitlines())
    encoding = console.encoding.lower().replace("_", "-")
    if not encoding.startswith("utf"):
        text = text.translate(_ASCII).encode(encoding, errors="backslashreplace").decode(encoding)
    console.file.write(text)
    console.file.flush()


def plain_table(*, header: bool = True) -> Table:
    """A table without lines, which also reads well in a log."""
    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", show_header=header)
