"""A report as Markdown, for an issue, a page or a mail.

Text that others wrote is escaped (CommonMark 0.31, *Backslash escapes*), so that it can neither be markup nor HTML.
Details are folded as GitHub and most renderers show them; what is for reference is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ajuste.model.wording import visible_line
from ajuste.report.document import (
    Badge,
    Block,
    CommandBlock,
    Entry,
    Fact,
    Facts,
    Folded,
    Item,
    Listing,
    Meanings,
    Notes,
    Paragraph,
    Report,
    RowGroup,
    Section,
    Subsection,
    Table,
)

_SPECIAL: Final = re.compile(r"[\\`*{}\[\]<>|~#&$]|(?<![a-zA-Z0-9])_|_(?![a-zA-Z0-9])")  # within a word _ is itself
# More are folded.
_MOST_ROWS: Final = 24


def markdown(report: Report) -> str:
    """Return ``report`` as Markdown."""
    parts = [
        f"*{_text(report.question)}*" if report.question else "",
        f"**{_text(report.headline)}**" if report.headline else "",
        *(part for block in report.lead for part in _block(block)),
        *(part for section in report.sections if section.depth != "reference" for part in _section(section)),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _section(section: Section) -> list[str]:
    parts = [part for block in section.blocks for part in _block(block)]
    if not parts:
        return []
    if section.depth == "detail":
        return [_folded(section.title, filter(None, [_text(section.about), *parts]))]
    if not section.title or all(isinstance(block, Notes) for block in section.blocks):
        return parts
    about = f" {_text(section.about)}" if section.about else ""
    return [f"**{_text(section.title.rstrip('.'))}.**{about}", *parts]


def _block(block: Block) -> Iterator[str]:
    match block:
        case Paragraph():
            yield _text(block.text)
        case Table():
            tables = [part for group in block.groups for part in _group(block, group)]
            yield from [_folded(f"All {block.size} rows", tables)] if block.size > _MOST_ROWS else tables
        case Facts():
            yield "\n".join(_facts(block.facts, 0))
        case Listing():
            yield "\n".join(map(_item, block.items))
        case Notes():
            yield from (f"{block.label}: {_text(text)}" for text in block.texts)
        case CommandBlock():
            yield _fenced(block.lines)
        case Meanings():
            yield _text("; ".join(f"{_entry(badge)}: {meaning}" for badge, meaning in block.words))
        case Subsection():
            yield f"**{_text(block.title)}**"
            yield from (part for inner in block.blocks for part in _block(inner))
        case Folded():
            parts = [part for inner in block.blocks for part in _block(inner)]
            yield from [_folded(block.title, parts)] if parts else []


def _folded(title: str, parts: Iterable[str]) -> str:
    # What is shown on demand; the attribute has Markdown read within it where that is not so by itself.
    inside = "\n\n".join(parts)
    return f'<details markdown="1"><summary>{_text(title)}</summary>\n\n{inside}\n\n</details>'


def _group(table: Table, group: RowGroup) -> Iterator[str]:
    if group.title:
        yield _text(group.title)
    if not group.rows:
        return
    places = [at for at in range(len(table.columns)) if at == 0 or any(_entry(row.cells[at]) for row in group.rows)]
    columns = [table.columns[at] for at in places]
    lines = [[column.title for column in columns], *([_entry(row.cells[at]) for at in places] for row in group.rows)]
    rule = f"|{'|'.join('--:' if column.figure else '---' for column in columns)}|"
    head, *body = (f"| {' | '.join(map(_text, line))} |" for line in lines)
    yield "\n".join((head, rule, *body))
    remarks = [f"{_entry(row.cells[0])}: {row.remark}" for row in group.rows if row.marked and row.remark]
    yield from map(_text, remarks)


def _entry(entry: Entry) -> str:
    return f"{entry.sign} {entry.text}" if isinstance(entry, Badge) else str(entry)


def _facts(facts: Sequence[Fact], depth: int) -> Iterator[str]:
    for fact in facts:
        text = " ".join(filter(None, (fact.text, fact.note, "; ".join(fact.items))))
        name = f"{_text(fact.name)}: " if fact.name else ""
        yield f"{'  ' * depth}- {name}{_text(text)}".rstrip()
        yield from _facts(fact.parts, depth + 1)


def _item(item: Item) -> str:
    named = f"{item.mark} {item.name}".strip()
    text = f"{named}{f': {item.text}' if item.text else ''}{f', {item.note}' if item.note else ''}"
    return f"- {_text(' '.join((text, *item.more)))}"


def _fenced(commands: Sequence[str]) -> str:
    # The commands in a block that nothing in them can end.
    text = "\n".join(map(visible_line, commands))
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}sh\n{text}\n{fence}"


def _text(text: str) -> str:
    # Text as it is, on one line, in which nothing is markup.
    return _SPECIAL.sub(r"\\\g<0>", visible_line(text))
