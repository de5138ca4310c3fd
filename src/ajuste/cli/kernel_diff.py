"""``ajuste kernel diff``: what differs between the build options of two kernels."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Annotated, Any, Final

import typer
from rich.text import Text

from ajuste.cli.options import Json, example
from ajuste.cli.showing import telling
from ajuste.kernel.difference.difference import KernelDifference, OptionDifference, Reason, Side
from ajuste.kernel.difference.named import series_of
from ajuste.machine.home import home
from ajuste.model.wording import visible_line
from ajuste.report.console import Console
from ajuste.report.format import count_of
from ajuste.report.sheet import INDENT, Sheet, sheet


@example(
    "ajuste kernel diff debian:6.1 debian:6.1/rt",
    "ajuste kernel diff debian:5.10 debian:6.1 --only sched --json",
)
def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="A kernel (debian:6.1, mine:NAME), a .config, or running.")],
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
    from ajuste.kernel.difference.named import compare, kconfig_sources, named_config

    place, say = home(), telling()
    first, second = (named_config(text, place, say) for text in (a, b))
    with kconfig_sources(source or (), place, say) as sources:
        found = compare(first, second, sources, say)
    if only:
        found = found.within(only)
    if as_json:
        print(json.dumps(_document(found, every=every), indent=2, ensure_ascii=False))
        return

    print_difference(found, Console(file=sys.stdout), every=every, only=only or "")


def _document(found: KernelDifference, *, every: bool) -> dict[str, Any]:
    shown = found.changes if every else found.effective
    return {
        "a": found.a.model_dump(mode="json"),
        "b": found.b.model_dump(mode="json"),
        "counts": found.counts(),
        "changes": [{**change.model_dump(mode="json"), "subsystem": change.subsystem()} for change in shown],
    }


# How ``ajuste kernel diff`` looks on a terminal.


MOST_SHOWN: Final = 60
"""With more changes than that only some are shown of each subsystem, unless ``every`` is wanted."""
_MOST_OF_A_GROUP: Final = 6

_COUNTED: Final[dict[Reason, str]] = {
    "asked": "set explicitly",
    "follows": "following from others",
    "default": "from another default",
    "rules": "from other rules in the source",
    "compiler": "from other tools",
    "unknown": "of unknown cause",
}


def print_difference(difference: KernelDifference, console: Console, *, every: bool, only: str = "") -> None:
    """Both kernels, what differs by subsystem, and what is lacking to say why."""
    with sheet(console) as out:
        _print_side(out, "A", difference.a)
        _print_side(out, "B", difference.b)
        out.blank()
        out.say(_summary(difference, only))
        short = not every and len(difference.effective) > MOST_SHOWN
        for name, changes in difference.groups(1 if short else 2).items():
            _print_group(out, name, changes, short=short)
        if every:
            _print_neither(out, difference)
        _print_lacking(out, difference)
        if short:
            out.blank()
            out.say("use --all for every option, --only TEXT for a subsystem", style="dim")


def _print_side(out: Sheet, letter: str, side: Side) -> None:
    version = f", kernel {side.kernel}" if side.kernel else ""
    out.say(
        Text(f"{letter}  ", style="bold") + Text(visible_line(f"{side.name}{version}, {side.options:,} options on"))
    )
    if side.compiler:
        out.say(visible_line(side.compiler), style="dim", indent=3)


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


def _print_group(out: Sheet, name: str, changes: Sequence[OptionDifference], *, short: bool) -> None:
    out.heading(f"{visible_line(name)} ({len(changes):,})")
    for change in changes[:_MOST_OF_A_GROUP] if short else changes:
        _print_change(out, change, with_help=not short)
    if short and len(changes) > _MOST_OF_A_GROUP:
        out.say(f"… and {count_of(len(changes) - _MOST_OF_A_GROUP, 'more option')}", style="dim", indent=INDENT)


def _print_change(out: Sheet, change: OptionDifference, *, with_help: bool) -> None:
    line = Text(change.name, style="bold" if change.reason == "asked" else "")
    line.append(f": {visible_line(change.a)} → {visible_line(change.b)}")
    if change.said:
        line.append(f", {visible_line(change.said)}", style="dim")
    out.say(line, indent=INDENT)
    if change.title:
        words = f"{change.title}: {change.help}" if with_help and change.help else change.title
        out.say(visible_line(words), style="dim", indent=3 * INDENT)


def _print_neither(out: Sheet, difference: KernelDifference) -> None:
    names = [change.name for change in difference.changes if change.in_neither]
    if names:
        out.heading(f"Off in both, available in only one ({len(names):,})")
        out.say(", ".join(names), style="dim", indent=INDENT)


def _print_lacking(out: Sheet, difference: KernelDifference) -> None:
    sides = [side for side in (difference.a, difference.b) if side.lacking]
    if not sides:
        return
    out.heading("Not known")
    for side in sides:
        text = f"Why {side.name} has its values: {side.lacking}."
        series = series_of(side.kernel)
        out.say(visible_line(text), indent=INDENT)
        if series and not side.source:
            out.line(f"    --source debian:{series} fetches it, --source DIR takes a directory")
