"""The list of runs: a filter, and a line for each."""

from __future__ import annotations

import json
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from ajuste.model.error import RequestError
from ajuste.model.wording import visible_line
from ajuste.store.head import PINNED

if TYPE_CHECKING:
    from ajuste.store.head import Head

UNFINISHED: Final = "unfinished"
_AGO: Final = {"d": 1.0, "w": 7.0, "h": 1 / 24}
_INDENT: Final = 2
_MOST_LINES: Final = 2
_UNITS: Final = ("B", "kB", "MB", "GB", "TB")


@dataclass(frozen=True)
class RunFilter:
    """The runs to list; an empty field matches all."""

    kernel: str = ""
    workload: str = ""
    tag: str = ""
    since: datetime | None = None
    text: str = ""

    def takes(self, run: Head, note: str = "") -> bool:
        text = self.text.casefold()
        return (
            self.kernel in run.kernel
            and self.workload in run.workload
            and (not self.tag or self.tag in run.tags.split())
            and (self.since is None or datetime.fromisoformat(run.created) >= self.since)
            and (not text or any(text in part.casefold() for part in (run.id, run.study, run.answer, note)))
        )


def since_of(text: str | None, option: str = "--since") -> datetime | None:
    """Return the time that ``text`` names: a day, a moment, or an age such as ``7d``. Raises RequestError."""
    if text is None:
        return None
    if ago := re.fullmatch(r"(\d{1,6})([dwh])", text):
        return datetime.now(UTC) - timedelta(days=int(ago[1]) * _AGO[ago[2]])
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise RequestError(
            f"{option} {visible_line(text[:80])}: expected a day such as 2026-11-30, or an age such as 7d",
            hint=f"write {option} 7d for seven days",
        ) from None
    return moment if moment.tzinfo else moment.astimezone()


def show_list(runs: Iterable[Head], notes: Mapping[str, str], wanted: RunFilter, *, as_json: bool) -> None:
    """Print the wanted runs, pinned ones first: a line each, on a terminal with the answer below.

    ``notes`` are keyed by run id.
    """
    all_runs = list(runs)
    chosen = [run for run in all_runs if wanted.takes(run, notes.get(run.id, ""))]
    chosen.sort(key=lambda run: PINNED not in run.tags.split())
    if as_json:
        rows = ",\n".join(
            f"  {json.dumps(_document(run, notes.get(run.id, '')))}" for run in chosen
        )  # With an indent it takes ten times as long.
        print(f"[\n{rows}\n]" if rows else "[]")
    elif chosen:
        if sys.stdout.isatty():
            width = shutil.get_terminal_size().columns
            lines = [line for run in chosen for line in lines_of(run, notes.get(run.id, ""), width)]
        else:
            lines = [_line(run, notes.get(run.id, "")) for run in chosen]
        print("\n".join(lines))
    elif all_runs:
        print("No run matches.")
    else:
        print("There are no runs yet. List studies with `ajuste studies`; run one with `ajuste run STUDY`.")


def size_text(size: int) -> str:
    """Return ``size`` in bytes with a decimal unit, such as ``44 MB``."""
    value, unit = float(size), 0
    while value >= 1000 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.3g} {_UNITS[unit]}"


def _document(run: Head, note: str) -> dict[str, object]:
    names = ("study", "seed", "created")
    more = ("answer", "kernel", "workload", "size_bytes", "base")
    return {
        "run": run.id,
        **{name: getattr(run, name) for name in names},
        "stopped": run.stopped or UNFINISHED,
        "imported": run.imported,
        **{name: getattr(run, name) for name in more},
        "tags": run.tags.split(),
        "note": note.rstrip(),
    }


def lines_of(run: Head, note: str, width: int) -> list[str]:
    """Return the lines for a run in a terminal of that ``width``: its id, study and time, then its answer and note."""
    when = run.created[:16].replace("T", " ")
    tags = " ".join(f"#{tag}" for tag in run.tags.split())
    head = "  ".join(filter(None, (run.id, run.study, when, run.stopped or UNFINISHED, run.kernel, tags)))
    below = [run.answer, f"note: {' '.join(note.split())}" if note else ""]
    return [
        visible_line(head)[:width],
        *(
            f"{' ' * _INDENT}{line}"
            for text in below
            for line in textwrap.wrap(
                visible_line(text), max(_INDENT + 1, width - _INDENT), max_lines=_MOST_LINES, placeholder=" …"
            )
        ),
    ]


def _line(run: Head, note: str) -> str:
    parts = [
        *(run.id, run.study, f"seed {run.seed}", run.created, run.stopped or UNFINISHED, run.kernel),
        *(
            run.workload,
            size_text(run.size_bytes) if run.stopped else "",
            "imported" if run.imported else "",
            " ".join(f"#{tag}" for tag in run.tags.split()),
        ),
        run.answer,
        f"note: {' '.join(note.split())}" if note else "",
    ]
    return visible_line("  ".join(part for part in parts if part))
