"""``ajuste cache``: list the caches, and clear them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.table import Table

from ajuste.cli.command_line import Commands
from ajuste.cli.options import Json, example, examples
from ajuste.machine.cache import ASKED_FOR, KINDS, LEFTOVERS, Kept, clear, survey
from ajuste.machine.home import home
from ajuste.model.error import RequestError, did_you_mean, nearest_names
from ajuste.report.console import Console

app = Commands(
    invoke_without_command=True,
    help=examples("Show or clear Ajuste's caches.", "ajuste cache"),
)

_NAMES = (*KINDS, LEFTOVERS)


@app.callback()
def show(context: typer.Context, as_json: Json = False) -> None:
    """List the caches, where no subcommand is named."""
    if context.invoked_subcommand is not None:
        return
    caches = survey(home())
    if as_json:
        print(json.dumps({"cache": [cache.model_dump(mode="json") for cache in caches]}, indent=2))
        return
    console = Console(highlight=False)
    if not console.is_terminal:
        for cache in caches:
            columns = (
                cache.kind,
                str(cache.count),
                str(cache.size_bytes),
                _limit(cache, str),
                cache.what,
                _used(cache),
            )
            print("\t".join(columns))
        return
    console.print(_table(caches))
    total = sum(cache.size_bytes for cache in caches)
    console.print(f"{_size(total)} in all. Beyond its limit, the least recently used is removed.")


@app.command("clear")
@example("ajuste cache clear snapshots --dry-run")
def clear_kinds(
    kinds: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KIND…]",
            help="Kinds, as listed by `ajuste cache` (default: all but built kernels and reports).",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be removed; remove nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Clear caches, except what is in use. Everything is fetched or built again when needed."""
    for name in kinds or ():
        if name not in _NAMES:
            raise RequestError(
                f"unknown kind {name[:80]!r}; expected {', '.join(_NAMES)}",
                hint=did_you_mean(nearest_names(name, _NAMES)),
            )
    chosen = dict.fromkeys(kinds or (name for name in _NAMES if name not in ASKED_FOR))
    cleared = clear(chosen, home(), dry_run=dry_run)
    if as_json:
        rows = [cache.model_dump(mode="json") for cache in cleared]
        print(json.dumps({"dry_run": dry_run, "cleared": rows}, indent=2))
        return
    verb = "would be removed" if dry_run else "removed"
    for cache in cleared:
        if cache.count or cache.in_use:
            left = f"; {cache.in_use} left, in use" if cache.in_use else ""
            print(f"{cache.kind}: {cache.count} {verb} ({_size(cache.size_bytes)}){left}")
    if not any(cache.count or cache.in_use for cache in cleared):
        print("nothing to remove")


def _table(caches: list[Kept]) -> Table:
    table = Table(box=None, padding=(0, 1), header_style="bold")
    table.add_column("kind", no_wrap=True)
    for title in ("entries", "size", "limit", "last use", "in use"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("what")
    for cache in caches:
        row = (
            cache.kind,
            str(cache.count),
            _size(cache.size_bytes),
            _limit(cache, _size),
            _age(cache),
            str(cache.in_use),
        )
        table.add_row(*row, cache.what, style=None if cache.count else "dim")
    return table


def _limit(cache: Kept, format_size: Callable[[int], str]) -> str:
    return "" if cache.limit_bytes is None else format_size(cache.limit_bytes)


def _used(cache: Kept) -> str:
    return "" if cache.last_used is None else datetime.fromtimestamp(cache.last_used, UTC).isoformat(timespec="seconds")


def _age(cache: Kept) -> str:
    if cache.last_used is None:
        return ""
    seconds = max(0.0, time.time() - cache.last_used)
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit} ago"
    return "now"


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 1e9:.1f} GB" if size_bytes >= 1e9 else f"{size_bytes / 1e6:.1f} MB"
