"""``ajuste kernel diff``: what differs between the build options of two kernels."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Annotated, Any, Final

import typer

from ajuste.cli.options import Json, example
from ajuste.kernel.spec import is_to_build, specs_to_build
from ajuste.machine.home import home
from ajuste.model.wording import count_of, visible_line
from ajuste.report.console import Activity, Console
from ajuste.report.document import Block, CommandBlock, Item, Listing, Paragraph, Report, Section, Tone
from ajuste.report.progress import BuildProgress
from ajuste.report.terminal import print_report
from ajuste_kernels.difference import KernelDifference, OptionDifference, Reason, Side, version_series


@example(
    "ajuste kernel diff debian:6.1 debian:6.1/rt",
    "ajuste kernel diff debian:5.10 debian:6.1 --only sched --json",
)
def diff(
    a: Annotated[
        str, typer.Argument(metavar="A", help="A kernel (debian:6.1, mine:NAME, build:…), a .config, or running.")
    ],
    b: Annotated[str, typer.Argument(metavar="B", help="The same; changes are shown from A to B.")],
    only: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Show only options whose name, menu or file contains TEXT.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Show every option.")] = False,
    source: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SOURCE",
            help="Kernel source that explains changes: debian:6.1 (fetched if needed), a directory, git:DIR@REV "
            "(repeatable).",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show how the build options of two kernels differ, by subsystem, and why.

    The reasons need the kernel's source; `ajuste kernel build` fetches it.
    """
    from ajuste_kernels.difference import compare_configs, kconfig_sources, named_by_kernel, named_config

    place = home()
    if specs_to_build(text for text in (a, b) if is_to_build(text)):
        with BuildProgress() as progress:
            a, b = named_by_kernel((a, b), source or (), place, progress)
    with Activity(log=True) as activity:
        first, second = (named_config(text, place, activity.say) for text in (a, b))
        with kconfig_sources(source or (), place, activity.say) as sources:
            difference = compare_configs(first, second, sources, activity.say)
    if only:
        difference = difference.within(only)
    if as_json:
        print(json.dumps(_document(difference, every=every), indent=2, ensure_ascii=False))
        return

    print_report(difference_report(difference, every=every, only=only or ""), Console(file=sys.stdout))


def _document(difference: KernelDifference, *, every: bool) -> dict[str, Any]:
    changes = difference.changes if every else difference.effective
    return {
        "a": difference.a.model_dump(mode="json"),
        "b": difference.b.model_dump(mode="json"),
        "counts": difference.counts(),
        "changes": [{**change.model_dump(mode="json"), "subsystem": change.subsystem()} for change in changes],
    }


# The difference as a report.


MOST_SHOWN: Final = 60
"""Maximum number of changes that are shown in full; with more, each subsystem shows its first ones."""
_MOST_OF_A_GROUP: Final = 6

_COUNTED: Final[dict[Reason, str]] = {
    "asked": "set explicitly",
    "follows": "following from others",
    "default": "from another default",
    "rules": "from other rules in the source",
    "compiler": "from other tools",
    "unknown": "of unknown cause",
}


def difference_report(difference: KernelDifference, *, every: bool, only: str = "") -> Report:
    """Return the report: both kernels, the differences by subsystem, and what is missing to explain them."""
    short = not every and len(difference.effective) > MOST_SHOWN
    groups = difference.groups(1 if short else 2).items()
    neither = [change.name for change in difference.changes if change.in_neither] if every else []
    neither_title = f"On in neither, but can be chosen in one ({len(neither):,})"
    hint = "use --all for every option, --only TEXT for a subsystem"
    sections = (
        *(_section(name, changes, short=short) for name, changes in groups),
        *((Section(neither_title, (Paragraph(", ".join(neither)),)),) if neither else ()),
        *_lacking(difference),
        *((Section("", (Paragraph(hint, "dim"),)),) if short else ()),
    )
    summary = _summary(difference, only)
    sides = Listing((_side("A", difference.a), _side("B", difference.b)))
    return Report(summary, summary, sections, lead=(sides,))


def _side(letter: str, side: Side) -> Item:
    version = f", kernel {side.kernel}" if side.kernel else ""
    more = (side.compiler,) if side.compiler else ()
    return Item(f"{side.name}{version}, {side.options:,} options on", more=more, mark=f"{letter} ")


def _summary(difference: KernelDifference, only: str) -> str:
    counts = difference.counts()
    total = counts.pop("total")
    neither = counts.pop("in_neither")
    which = f" with {visible_line(only)!r}" if only else ""
    if not total:
        text = f"No options{which} differ in B."
    else:
        parts = [f"{counts[reason]:,} {words}" for reason, words in _COUNTED.items() if reason in counts]
        text = f"{count_of(total, 'option')}{which} {'differs' if total == 1 else 'differ'} in B: {', '.join(parts)}."
    new = sum(change.kind == "new" for change in difference.effective)
    gone = sum(change.kind == "gone" for change in difference.effective)
    if new or gone:
        text += f" {new:,} of them are new in B's version, {gone:,} are gone."
    if neither:
        text += f" {neither:,} more are off in both, but available in only one."
    return text


def _section(name: str, changes: Sequence[OptionDifference], *, short: bool) -> Section:
    first = changes[:_MOST_OF_A_GROUP] if short else changes
    more = count_of(len(changes) - len(first), "more option")
    rest = (Paragraph(f"… and {more}", "dim"),) if len(first) < len(changes) else ()
    items = Listing(tuple(_item(change, with_help=not short) for change in first))
    return Section(f"{name} ({len(changes):,})", (items, *rest))


def _item(change: OptionDifference, *, with_help: bool) -> Item:
    words = f"{change.title}: {change.help}" if with_help and change.help else change.title
    tone: Tone = "bold" if change.reason == "asked" else "plain"
    return Item(change.name, f"{change.a} → {change.b}", change.because, (words,) if change.title else (), tone=tone)


def _lacking(difference: KernelDifference) -> tuple[Section, ...]:
    sides = [side for side in (difference.a, difference.b) if side.lacking and difference.changes]
    blocks: list[Block] = []
    for side in sides:
        blocks.append(Paragraph(f"Why {side.name} has its values: {side.lacking}."))
        series = version_series(side.kernel)
        if series and not side.source:
            fetches = f"--source debian:{series} fetches it, --source DIR takes a directory"
            blocks.append(CommandBlock("try", (fetches,)))
    return (Section("Not known", tuple(blocks)),) if blocks else ()
