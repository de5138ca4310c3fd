"""A report as data: its content, for renderers that know nothing of studies.

Terminal, HTML and Markdown show the same document. What is ``detail`` the terminal shows only if that is asked for,
HTML and Markdown fold it; what is ``reference`` Markdown leaves out besides. What is ``verbose`` only the terminal
leaves out unless details are asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from ajuste.model.wording import shell_line
from ajuste_stats.terms import Word

if TYPE_CHECKING:
    from ajuste.report.plots.plot import Plot

Depth = Literal["answer", "detail", "reference"]
Tone = Literal["plain", "bold", "dim", "italic", "good", "warning", "bad"]


@dataclass(frozen=True)
class Badge:
    """The word of a verdict; ``sign`` distinguishes the words without colour."""

    word: Word
    sign: str
    text: str


@dataclass(frozen=True)
class Cell:
    """An entry of a table: ``note`` stands beside it, smaller; ``missing`` says why there is no figure."""

    text: str
    note: str = ""
    missing: str = ""

    def __str__(self) -> str:
        return f"{self.text} {self.note}".rstrip()


Entry = str | Cell | Badge


@dataclass(frozen=True)
class Column:
    """``figure`` columns are aligned as figures; ``optional`` ones may be left out where not all fit.

    Where a terminal is asked for no details, ``verbose`` ones may be left out besides.
    """

    title: str
    figure: bool = True
    optional: bool = False
    verbose: bool = False


@dataclass(frozen=True)
class Row:
    """The first of ``cells`` names it. ``remark`` stands below; that of a ``marked`` row stands out."""

    cells: tuple[Entry, ...]
    remark: str = ""
    marked: bool = False


@dataclass(frozen=True)
class RowGroup:
    """Rows of one subject. ``summary`` gives them in one line, where that is enough."""

    title: str
    rows: tuple[Row, ...]
    summary: str = ""


@dataclass(frozen=True)
class Table:
    """``matrix``: rows and columns may change places. ``brief``: the summaries of the groups are enough where no
    details are wanted.
    """

    columns: tuple[Column, ...]
    groups: tuple[RowGroup, ...]
    name: str = ""
    title: str = ""
    matrix: bool = False
    brief: bool = False

    @classmethod
    def of(
        cls, columns: tuple[Column, ...], rows: Iterable[Row], name: str = "", title: str = "", *, matrix: bool = False
    ) -> Table:
        """Return a table of ``rows`` in one group without a title."""
        return cls(columns, (RowGroup("", tuple(rows)),), name, title, matrix)

    @property
    def size(self) -> int:
        """The number of rows."""
        return sum(len(group.rows) for group in self.groups)


@dataclass(frozen=True)
class Fact:
    """``name: text``, with ``items`` or further ``parts`` below it, which are shown on demand if it is ``folded``."""

    name: str
    text: str = ""
    note: str = ""
    items: tuple[str, ...] = ()
    parts: tuple[Fact, ...] = ()
    folded: bool = False
    tone: Tone = "plain"


@dataclass(frozen=True)
class Facts:
    """Names with a text for each, in two columns."""

    facts: tuple[Fact, ...]
    name: str = ""


def to_facts(*pairs: tuple[str, str]) -> tuple[Fact, ...]:
    """Return a fact for each pair of a name and a text that is not empty."""
    return tuple(Fact(name, text) for name, text in pairs if text)


@dataclass(frozen=True)
class Paragraph:
    """A paragraph of sentences."""

    text: str
    tone: Tone = "plain"
    detail: bool = False
    name: str = ""
    verbose: bool = False


@dataclass(frozen=True)
class Item:
    """A line of a list: ``mark NAME: text, note``; ``more`` are lines below it. ``link`` is the place of a page about
    it, relative to this one.
    """

    name: str
    text: str = ""
    note: str = ""
    more: tuple[str, ...] = ()
    mark: str = ""
    tone: Tone = "plain"
    link: str = ""


@dataclass(frozen=True)
class Listing:
    """Items, one below the other."""

    items: tuple[Item, ...]


@dataclass(frozen=True)
class Notes:
    """Notes that a reader must know before using the figures. Without details a terminal shows the first ``most``."""

    texts: tuple[str, ...]
    label: str = "Note"
    most: int | None = None
    verbose: bool = False


@dataclass(frozen=True)
class CommandBlock:
    """Lines for a shell, to be copied; ``label`` names their purpose in a word."""

    label: str
    lines: tuple[str, ...]
    verbose: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "lines", tuple(map(shell_line, self.lines)))


@dataclass(frozen=True)
class Picture:
    """A plot of the subject ``of``, where its title does not name it."""

    plot: Plot
    of: str = ""


@dataclass(frozen=True)
class Verdicts:
    """The count of each verdict by subject."""

    counts: tuple[tuple[str, tuple[Badge, ...]], ...]


@dataclass(frozen=True)
class Meanings:
    """The meanings of the words of verdicts."""

    words: tuple[tuple[Badge, str], ...]


@dataclass(frozen=True)
class Subsection:
    """A part of a section with its own title; ``name`` is its subject for programs."""

    title: str
    blocks: tuple[Block, ...]
    name: str = ""


@dataclass(frozen=True)
class Folded:
    """Blocks that are shown on demand."""

    title: str
    blocks: tuple[Block, ...]
    open: bool = False


@dataclass(frozen=True)
class Download:
    """A file embedded in a page."""

    name: str
    title: str
    kind: Literal["csv", "json"]
    text: str


@dataclass(frozen=True)
class Data:
    """The underlying data, for pages only: others can ask for the files."""

    downloads: tuple[Download, ...]
    table: Table | None = None


Block = (
    Paragraph
    | Table
    | Facts
    | Listing
    | Notes
    | CommandBlock
    | Picture
    | Verdicts
    | Meanings
    | Subsection
    | Folded
    | Data
)


@dataclass(frozen=True)
class Section:
    """``about`` says what the section shows, for those who have not seen one before. ``name`` is unique and safe in an
    ``id``; ``short`` is its title in a list of contents. ``open``: a page does not fold it, whatever its depth.
    ``brief`` is how many of its blocks a terminal shows without details; None: all.
    """

    title: str
    blocks: tuple[Block, ...]
    name: str = ""
    short: str = ""
    about: str = ""
    depth: Depth = "answer"
    open: bool = False
    brief: int | None = None


@dataclass(frozen=True)
class Report:
    """``headline`` is the answer in one sentence; ``lead`` stands right below it."""

    title: str
    headline: str
    sections: tuple[Section, ...]
    question: str = ""
    lead: tuple[Block, ...] = ()
    stem: str = "report"

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """Return the pictures in the order of the report."""
        blocks = (*self.lead, *(block for section in self.sections for block in section.blocks))
        return tuple(block for block in every(blocks) if isinstance(block, Picture))

    def section(self, name: str) -> Section | None:
        """Return the section called ``name``, if there is one."""
        return next((section for section in self.sections if section.name == name), None)


def every(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield all blocks, also those within others."""
    for block in blocks:
        yield block
        if isinstance(block, Subsection | Folded):
            yield from every(block.blocks)


# Every picture with a name that stands alone, for files.


_LONGEST: Final = 90
_NAME: Final = re.compile(r"[a-z0-9]+")
_EXPLANATION: Final = re.compile(r"[,;:(]")  # where a title goes on with units and remarks


@dataclass(frozen=True)
class SavedPicture:
    """A plot with a ``title`` that it can be understood by alone, and a ``stem`` for the name of a file: letters,
    digits and dashes, different for each.
    """

    plot: Plot
    title: str
    stem: str


def saved_pictures(report: Report) -> Iterator[SavedPicture]:
    """Yield every plot, in the order of the report."""
    seen: dict[str, int] = {}
    for picture in report.pictures:
        of, plot = picture.of, picture.plot
        title = f"{of}: {plot.title}" if of else plot.title
        short = _EXPLANATION.split(plot.title)[0]
        stem = "-".join(_NAME.findall(f"{of} {short}".lower()))[:_LONGEST].strip("-") or "picture"
        seen[stem] = seen.get(stem, 0) + 1
        yield SavedPicture(plot, title, stem if seen[stem] == 1 else f"{stem}-{seen[stem]}")
