"""A report in the terminal: the answer first, the details only where they are asked for.

Plain text where the console is no terminal; nothing is cut off, at any width.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import rich.console
from rich.table import Table as RichTable
from rich.text import Text

from ajuste.model.wording import count_of, in_sentence, listed, visible, visible_line
from ajuste.report.console import INDENT, WORD_STYLES, Console, Sheet, joined, plain_table, sheet
from ajuste.report.document import (
    Badge,
    Block,
    Cell,
    Column,
    CommandBlock,
    Data,
    Entry,
    Fact,
    Facts,
    Folded,
    Item,
    Listing,
    Meanings,
    Notes,
    Paragraph,
    Picture,
    Report,
    Row,
    RowGroup,
    Section,
    Subsection,
    Table,
    Tone,
    Verdicts,
)

_STYLES: Final[dict[Tone, str]] = {
    "plain": "",
    "bold": "bold",
    "dim": "dim",
    "italic": "italic",
    "good": "bold green",
    "warning": "bold yellow",
    "bad": "bold red",
}
# What stays in an answer of one screen.
_KEPT: Final = (Notes, CommandBlock, Facts)
_WIDEST_NAME: Final = 30
# Blocks that a terminal has nothing of, or has in other words.
_FOR_PAGES: Final = (Picture, Data, Verdicts)


ONE_SCREEN: Final = 40
"""Lines of a long answer without its details."""

_FEWEST_ROWS: Final = 3
# They name what was left out, the report, and when it was measured.
_LAST_LINES: Final = 5


def print_report(
    report: Report,
    console: rich.console.Console,
    *,
    verbose: bool = False,
    path: Path | None = None,
    most_lines: int | None = None,
) -> None:
    """Print ``report``, with its details if ``verbose``; ``path`` is where its HTML page is, if it has one.

    Without its details, what goes beyond ``most_lines`` is left out and named.
    """
    left: list[str] = []
    if most_lines is not None and not verbose:
        report, left = _shortened(report, console.width, most_lines - _LAST_LINES)
    _print(report, console, verbose=verbose, path=path, left=left)


def _print(
    report: Report, console: rich.console.Console, *, verbose: bool, path: Path | None, left: Sequence[str]
) -> None:
    with sheet(console) as out:
        printer = _Printer(out, verbose=verbose)
        if report.headline:
            out.say(visible(report.headline), style="bold")
        if verbose and report.question:
            out.say(visible(report.question), style="italic")
        for block in report.lead:
            printer.block(block, 0)
        for section in report.sections:
            printer.section(section)
        notes = [count_of(printer.notes_left, "more note")] if printer.notes_left else []
        if more := [*left, *notes]:
            out.blank()
            out.say(f"With --verbose: {visible_line(listed(more))}.", style="dim")
        if path is not None:
            out.line(f"report {visible_line(str(path))}")


def _shortened(report: Report, width: int, most: int) -> tuple[Report, list[str]]:
    # Without its longest sections, and then with fewer rows; and what was left out. What has notes or a command to copy
    # stays, and so do the verdicts, which come first.
    sections = list(report.sections)

    def lines(parts: Sequence[Section]) -> int:
        text = io.StringIO()
        plain = Console(file=text, width=width, color_system=None)
        _print(replace(report, sections=tuple(parts)), plain, verbose=False, path=None, left=())
        return text.getvalue().count("\n")

    bare = lines(())
    lengths = {place: lines([section]) - bare for place, section in enumerate(sections)}
    places = [place for place, length in lengths.items() if length > 0]
    optional = [place for place in places[1:] if not any(isinstance(b, _KEPT) for b in sections[place].blocks)]
    dropped: set[int] = set()
    for longest in sorted(optional, key=lambda place: (-lengths[place], -place)):
        if bare + sum(lengths[place] for place in places if place not in dropped) <= most:
            break
        dropped.add(longest)
    sections = [section for place, section in enumerate(sections) if place not in dropped]
    titles = [report.sections[place].title for place in sorted(dropped)]
    rest = bare + sum(lengths[place] for place in places[1:] if place not in dropped)
    if not places or rest + lengths[places[0]] <= most:
        return replace(report, sections=tuple(sections)), titles
    first = report.sections[places[0]]
    counts = [len(group.rows) for table in _tables(first) for group in table.groups]
    allowed, cut = list(counts), first
    while (excess := rest + lines([cut]) - bare - most) > 0:
        long = [place for place, count in enumerate(allowed) if count > _FEWEST_ROWS]
        if not long:
            break
        # Of the last metric first: the leading one stays whole as long as it can.
        allowed[long[-1]] = max(_FEWEST_ROWS, allowed[long[-1]] - max(1, excess // 2))
        cut = _with_rows(first, allowed)
    sections = [cut if section is first else section for section in sections]
    if gone := sum(counts) - sum(allowed):
        titles.insert(0, f"{count_of(gone, 'more row')} of {in_sentence(first.title)}")
    return replace(report, sections=tuple(sections)), titles


def _tables(section: Section) -> list[Table]:
    return [block for block in section.blocks if isinstance(block, Table) and not block.brief]


def _with_rows(section: Section, allowed: Sequence[int]) -> Section:
    # The baseline and what is certain first, in the order of the table; as many rows of each group as are allowed.
    left = iter(allowed)
    cut: dict[int, Table] = {}
    for table in _tables(section):
        groups = []
        for group in table.groups:
            places = sorted(range(len(group.rows)), key=lambda place: (_rank(group.rows[place]), place))
            groups.append(replace(group, rows=tuple(group.rows[place] for place in sorted(places[: next(left)]))))
        cut[id(table)] = replace(table, groups=tuple(groups))
    return replace(section, blocks=tuple(cut.get(id(block), block) for block in section.blocks))


def _rank(row: Row) -> int:
    words = [cell.word for cell in row.cells if isinstance(cell, Badge)]
    return 0 if not words else 1 if words[0] in ("improves", "worsens", "differs") else 2


class _Printer:
    # Prints blocks on a sheet.
    def __init__(self, out: Sheet, *, verbose: bool) -> None:
        self.out = out
        self.verbose = verbose
        self.notes_left = 0

    def section(self, section: Section) -> None:
        brief = None if self.verbose else section.brief
        notes = [block for block in section.blocks if isinstance(block, Notes) and not block.verbose]
        self.notes_left += sum(len(block.texts) - len(self._note_texts(block)) for block in notes)
        blocks = [block for block in section.blocks if self._is_visible(block)][:brief]
        if not blocks or (section.depth != "answer" and not self.verbose):
            return
        plain = all(self._speaks_for_itself(block) for block in blocks)
        if plain or not section.title:
            self.out.blank()
        else:
            self.out.heading(visible_line(section.title))
        if self.verbose and section.about:
            self.out.say(visible_line(section.about), style="dim")
        for block in blocks:
            self.block(block, 0 if plain or not section.title else INDENT)

    def _is_visible(self, block: Block) -> bool:
        if isinstance(block, Folded | Meanings) and not self.verbose:
            return False
        if isinstance(block, Paragraph | Notes | CommandBlock) and block.verbose and not self.verbose:
            return False
        if isinstance(block, Notes):
            return bool(self._note_texts(block))
        if isinstance(block, Paragraph):
            return self.verbose or not block.detail
        if isinstance(block, Subsection | Folded):
            return any(self._is_visible(inner) for inner in block.blocks)
        return not isinstance(block, _FOR_PAGES)

    def _speaks_for_itself(self, block: Block) -> bool:
        # Whether it needs no heading above it.
        if isinstance(block, Table):
            return block.brief and not self.verbose
        return isinstance(block, Notes | CommandBlock) or (isinstance(block, Paragraph) and block.tone == "dim")

    def block(self, block: Block, indent: int) -> None:
        if not self._is_visible(block):
            return
        match block:
            case Paragraph():
                self.out.say(visible(block.text), style=_STYLES[block.tone], indent=indent)
            case Table():
                self._table(block, indent)
            case Facts():
                self._facts(block.facts, indent)
            case Listing():
                for item in block.items:
                    self._item(item, indent)
            case Notes():
                for text in self._note_texts(block):
                    self.out.say(f"{block.label}: {visible_line(text)}", indent=indent)
            case CommandBlock():
                for line in block.lines:
                    self.out.line(f"{' ' * indent}{block.label}  {visible_line(line)}")
            case Meanings():
                for badge, meaning in block.words:
                    self.out.say(_styled(badge) + Text(f": {meaning}", style="dim"), indent=indent)
            case Subsection() | Folded():
                self._part(block, indent)

    def _note_texts(self, notes: Notes) -> tuple[str, ...]:
        return notes.texts if self.verbose else notes.texts[: notes.most]

    def _part(self, part: Subsection | Folded, indent: int) -> None:
        self.out.blank()
        name = f" ({part.name})" if isinstance(part, Subsection) and part.name and part.name != part.title else ""
        self.out.say(visible_line(f"{part.title}{name}"), style="bold", indent=indent)
        for block in part.blocks:
            self.block(block, indent + INDENT)

    def _item(self, item: Item, indent: int) -> None:
        line = Text(f"{item.mark} " if item.mark else "", style=_STYLES[item.tone])
        line.append(visible_line(item.name), style=_STYLES[item.tone] if not item.mark else "bold")
        line.append(f": {visible_line(item.text)}" if item.text else "")
        line.append(f", {visible_line(item.note)}" if item.note else "", style="dim")
        self.out.say(line, indent=indent)
        for more in item.more:
            self.out.say(visible_line(more), style="dim", indent=indent + 2 * INDENT)

    def _facts(self, facts: Sequence[Fact], indent: int) -> None:
        flat = [fact for fact in facts if not fact.parts]
        if flat:
            names = [f"{visible_line(fact.name)}:" if fact.name else "" for fact in flat]
            longest_word = max((len(word) for name in names for word in name.split()), default=0)
            width = min(max(_WIDEST_NAME, longest_word), max(map(len, names)))
            least = max(self.out.width // 2, min(longest_word, 3 * self.out.width // 4))
            table = RichTable.grid(padding=(0, 1, 0, 0))
            table.add_column(min_width=min(width, least), max_width=width, overflow="fold")
            table.add_column(overflow="fold")
            for name, fact in zip(names, flat, strict=True):
                text = Text(visible_line(fact.text), style=_STYLES[fact.tone])
                text.append(f"  {visible_line(fact.note)}" if fact.note else "", style="dim")
                for item in fact.items:
                    text.append(f"{chr(10) if text.plain else ''}{visible_line(item)}")
                table.add_row(Text(name, style="dim"), joined(text))
            self.out.table(table, indent=indent)
        for fact in facts:
            if fact.parts and (self.verbose or not fact.folded):
                self.out.say(visible_line(fact.name), style="bold", indent=indent)
                self._facts(fact.parts, indent + INDENT)

    def _table(self, table: Table, indent: int) -> None:
        if table.brief and not self.verbose:
            for group in table.groups:
                self.out.say(visible_line(group.summary), indent=indent)
            return
        for group in table.groups:
            if group.title:
                self.out.blank()
                self.out.say(visible_line(group.title), style="bold", indent=indent)
            if group.rows:
                self._group(table, group, indent + (INDENT if group.title else 0))

    def _group(self, table: Table, group: RowGroup, indent: int) -> None:
        count = len(table.columns)
        filled = [place for place in range(count) if place == 0 or any(_words(row.cells[place]) for row in group.rows)]
        columns, rows = _with_columns(filled, table.columns, group.rows)
        fitting = next(
            (made for made in _layouts(table, columns, rows, brief=not self.verbose) if self.out.fits(made, indent)),
            None,
        )
        if fitting is not None:
            self.out.table(fitting, indent=indent)
        else:
            for row in rows:
                self._row(columns, row, indent)
        remarks: dict[tuple[str, str], list[str]] = {}
        for row in rows:
            if row.remark and (row.marked or self.verbose):
                remarks.setdefault((row.remark, "yellow" if row.marked else "dim"), []).append(_words(row.cells[0]))
        for (remark, style), names in remarks.items():
            self.out.say(visible_line(f"{'; '.join(names)}: {remark}"), style=style, indent=indent)

    def _row(self, columns: Sequence[Column], row: Row, indent: int) -> None:
        # A paragraph for a row where the table is too wide: its name and verdict, then its figures.
        badges = [_styled(cell) for cell in row.cells if isinstance(cell, Badge)]
        self.out.say(Text("  ").join([_styled(row.cells[0]), *badges]), indent=indent)
        cells = zip(columns[1:], row.cells[1:], strict=True)
        figures = [(column, cell) for column, cell in cells if not isinstance(cell, Badge) and _words(cell)]
        texts = [f"{column.title} {_words(cell)}".strip() for column, cell in figures]
        self.out.say(visible_line("; ".join(texts)), indent=indent + INDENT)


def _with_columns(
    places: Sequence[int], columns: tuple[Column, ...], rows: tuple[Row, ...]
) -> tuple[tuple[Column, ...], tuple[Row, ...]]:
    short = tuple(Row(tuple(row.cells[place] for place in places), row.remark, row.marked) for row in rows)
    return tuple(columns[place] for place in places), short


def _layouts(table: Table, columns: tuple[Column, ...], rows: tuple[Row, ...], *, brief: bool) -> Sequence[RichTable]:
    # From the one that says most to the narrowest.
    made = [_rich(columns, rows)]
    needed = [place for place, column in enumerate(columns) if not column.optional]
    if len(needed) < len(columns):
        made.append(_rich(*_with_columns(needed, columns, rows)))
    if table.matrix:
        heads = (columns[0], *(Column(_words(row.cells[0])) for row in rows))
        turned = (
            Row((column.title, *(row.cells[place] for row in rows))) for place, column in enumerate(columns[1:], 1)
        )
        made.append(_rich(heads, tuple(turned)))
    fewest = [place for place in needed if not columns[place].verbose]
    if brief and len(fewest) < len(needed):
        made.append(_rich(*_with_columns(fewest, columns, rows)))
        made.append(_rich(*_with_columns(fewest, columns, tuple(map(_without_notes, rows)))))
    return made


def _without_notes(row: Row) -> Row:
    # Without what stands beside its figures; its name is whole.
    name, *cells = row.cells
    bare = (Cell(cell.text, missing=cell.missing) if isinstance(cell, Cell) else cell for cell in cells)
    return Row((name, *bare), row.remark, row.marked)


def _rich(columns: tuple[Column, ...], rows: tuple[Row, ...]) -> RichTable:
    table = plain_table()
    for column in columns:
        title = visible_line(column.title).replace(", ", ",\n")  # The names of several factors, one below the other.
        table.add_column(Text(title, style="dim"), justify="right" if column.figure else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_styled(cell, "yellow" if row.marked else "") for cell in row.cells))
    return table


def _words(entry: Entry) -> str:
    return entry.text if isinstance(entry, Badge) else str(entry)


def _styled(entry: Entry, style: str = "") -> Text:
    if isinstance(entry, Badge):
        return Text(visible_line(entry.text), style=WORD_STYLES[entry.word])
    if isinstance(entry, Cell):
        note = f" {visible_line(entry.note)}" if entry.note else ""
        return joined(Text.assemble((visible_line(entry.text), "dim" if entry.missing else style), (note, "dim")))
    return joined(Text(visible_line(entry), style=style))
