"""``ajuste kernel diff``: what differs between the build options of two kernels."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from ajuste.cli.example import example
from ajuste.cli.options import Json
from ajuste.cli.telling import telling
from ajuste.home import home
from ajuste.kernel.diff.difference import Difference
from ajuste.report.visible import Console


@example(
    "ajuste kernel diff debian:6.1 debian:6.1/rt",
    "ajuste kernel diff debian:5.10 debian:6.1 --only sched --json",
)
def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="A kernel (debian:6.1, mine:NAME), a .config, or running.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The same; what differs is told from A to B.")],
    only: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only options whose name, menu or file has TEXT.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Show every option, however many there are.")] = False,
    source: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SOURCE",
            help="Sources that tell why: debian:6.1 (fetched if need be), a directory, git:DIR@REV (repeatable).",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what differs between the build options of two kernels, by subsystem, and what each difference comes from.

    Why an option has its value is told by the kernel's source, where it is here (`ajuste kernel build` fetches it).
    """
    from ajuste.kernel.diff.compare import compare
    from ajuste.kernel.diff.kconfig_source import kconfig_sources
    from ajuste.kernel.diff.named import named_config

    place, say = home(), telling()
    first, second = (named_config(text, place, say) for text in (a, b))
    with kconfig_sources(source or (), place, say) as sources:
        found = compare(first, second, sources, say)
    if only:
        found = found.within(only)
    if as_json:
        print(json.dumps(_document(found, every=every), indent=2, ensure_ascii=False))
        return
    from ajuste.cli.kernel_diff_sheet import print_difference

    print_difference(found, Console(file=sys.stdout), every=every, only=only or "")


def _document(found: Difference, *, every: bool) -> dict[str, Any]:
    shown = found.changes if every else found.effective
    return {
        "a": found.a.model_dump(mode="json"),
        "b": found.b.model_dump(mode="json"),
        "counts": found.counts(),
        "changes": [{**change.model_dump(mode="json"), "subsystem": change.subsystem()} for change in shown],
    }
