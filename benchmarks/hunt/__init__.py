"""Planted bugs hunted with pauses and with seeds alone, and their twins, which have no bug.

``python -m benchmarks.hunt [--only NAME]... [--again]``; of ``python -m benchmarks hunt`` are the same figures.
A bug is hunted as a person would who knows nothing of it but how it shows (``planted/NAME/bug.toml``): which trial
shows it is the same on every machine. ``answers.json`` has what was measured, and only the rest is measured.
The table is that of docs/reference/hunts.md.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from benchmarks.comparison import Comparison, show
from benchmarks.hunt.planted.catalogue import PlantedBug, build_bug, planted_bugs
from benchmarks.verdicts.page import write

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "hunts.md"
ANSWERS: Final = Path(__file__).with_name("answers.json")
MOST_CPU_S: Final = 30 * 60
TIMES: Final = 10
"""Seeds alone are tried for so many times the CPU time of the hunt."""
MOST_SEEDS_S: Final = 300
"""But for no more CPU time than this."""
TWIN_TRIALS: Final = 200
_FOUND: Final = 16 / 20
_CPUS: Final = 2


@dataclass(frozen=True)
class Search:
    """The outcome of a search: the ``trial`` that showed the goal, if any, of ``trials``, and the ``cpu_s`` of all."""

    cpu_s: float
    trials: int
    trial: int | None = None
    pauses: int = 0
    replays: int = 0
    attempts: int = 0
    problem: str = ""


@dataclass(frozen=True)
class Answer:
    """The hunt for a bug, the search with ``seeds`` alone, and the hunt in its ``twin``. ``repeats`` says whether
    ``ajuste run`` of the study that was handed over fails, and ``passes`` whether it does not for the twin.
    """

    bug: PlantedBug
    hunt: Search
    seeds: Search | None = None
    twin: Search | None = None
    repeats: bool = False
    passes: bool = False

    @property
    def times(self) -> float:
        """Return how many times the hunt's CPU time seeds took, at least."""
        return self.seeds.cpu_s / self.hunt.cpu_s if self.seeds and self.hunt.trial else 0.0


def search(bug: PlantedBug, program: Path, *options: str) -> Search:
    """Hunt as a person does, from where the program is."""
    words = ["hunt", "--json", "--fresh", "--until", bug.goal, *_target(bug, program), *options]
    begin = _cpu_s()
    done = _ajuste(program.parent, *words, "--", *bug.command)
    cpu_s = round(_cpu_s() - begin, 1)
    if done.returncode not in (0, 3):
        problem = next((line for line in done.stderr.splitlines() if line.startswith("ajuste: ")), done.stderr[-300:])
        return Search(cpu_s, 0, problem=problem)
    document: dict[str, Any] = json.loads(done.stdout)
    finding = document["finding"]
    if finding is None:
        return Search(cpu_s, document["trials"])
    return Search(
        cpu_s,
        document["trials"],
        finding["trial"],
        len(finding["pauses"]),
        finding["replays"],
        finding["attempts"],
    )


def _target(bug: PlantedBug, program: Path) -> list[str]:
    words = ["--kernel", bug.kernel, "--guest-cpus", str(bug.cpus), "--timeout", f"{bug.timeout_s}"]
    return [*words, "--file", str(program)]


def answer(bug: PlantedBug, directory: Path) -> Answer:
    """Hunt the bug, then search with seeds alone, then hunt in the twin."""
    programs = {fixed: _built(bug, directory / ("twin" if fixed else "bug"), fixed=fixed) for fixed in (False, True)}
    study = programs[False].with_name("found.toml")
    minutes = f"{MOST_CPU_S / _CPUS:.0f}s"
    hunted = search(bug, programs[False], "--max-trials", "100000", "--max-time", minutes, "--output", str(study))
    seeds = None
    if hunted.trial is not None:
        least_s = max(10.0, min(TIMES * hunted.cpu_s, MOST_SEEDS_S) / _CPUS)
        seeds = search(bug, programs[False], "--seeds-only", "--max-trials", "1000000", "--max-time", f"{least_s:.0f}s")
    repeats = passes = False
    if study.exists():
        repeats = _ajuste(study.parent, "run", "found.toml", "--json").returncode == 3
        shutil.copy(study, programs[True].parent)
        passes = _ajuste(programs[True].parent, "run", "found.toml", "--json").returncode == 0
    twin = search(bug, programs[True], "--max-trials", str(TWIN_TRIALS), "--max-time", minutes)
    return Answer(bug, hunted, seeds, twin, repeats, passes)


def _built(bug: PlantedBug, out: Path, *, fixed: bool) -> Path:
    out.mkdir(parents=True)
    return build_bug(bug, out, fixed=fixed)


def _ajuste(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("ajuste")), *words]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def answers() -> list[Answer]:
    """Return what was measured, in the order of the bugs."""
    rows: dict[str, dict[str, Any]] = json.loads(ANSWERS.read_text()) if ANSWERS.exists() else {}
    return [_read(bug, rows[bug.name]) for bug in planted_bugs() if bug.name in rows]


def _read(bug: PlantedBug, row: dict[str, Any]) -> Answer:
    searches = {name: Search(**row[name]) if row[name] else None for name in ("seeds", "twin")}
    return Answer(bug, Search(**row["hunt"]), **searches, repeats=row["repeats"], passes=row["passes"])


def _keep(measured: Answer) -> None:
    rows = {each.bug.name: each for each in answers()} | {measured.bug.name: measured}
    fields = ("hunt", "seeds", "twin", "repeats", "passes")
    document = {name: {field: asdict(rows[name])[field] for field in fields} for name in sorted(rows)}
    ANSWERS.write_text(json.dumps(document, indent=2) + "\n")


def measure(names: Sequence[str] = (), *, again: bool = False) -> Iterator[Comparison]:
    there = {each.bug.name for each in answers()}
    console = Console(stderr=True)
    for bug in planted_bugs():
        if bug.kind == "user" and (bug.name in names if names else True) and (again or bug.name not in there):
            with tempfile.TemporaryDirectory() as directory:
                _keep(answer(bug, Path(directory)))
            console.print(" | ".join(row(next(each for each in answers() if each.bug == bug))), highlight=False)
    done = [each for each in answers() if not names or each.bug.name in names]
    found = [each for each in done if each.hunt.trial is not None]
    yield Comparison(
        name="hunt-found",
        what=f"{len(found)} of {len(done)} planted bugs are found: CPU minutes of each",
        unit="minutes",
        figures={"hunt": [each.hunt.cpu_s / 60 for each in done]},
        goal="16 of 20 found in at most 30 CPU minutes each",
        reached=len([each for each in found if each.hunt.cpu_s <= MOST_CPU_S]) >= _FOUND * len(done),
    )
    if found:
        yield Comparison(
            name="hunt-against-seeds",
            what="CPU time of seeds alone, as a multiple of the hunt's; at least, where seeds do not show it",
            unit="times",
            figures={"seeds": [each.times for each in found]},
            goal="ten times as much or more, in the median",
            reached=statistics.median(each.times for each in found) >= TIMES,
        )
        replays = sum(each.hunt.replays for each in found), sum(each.hunt.attempts for each in found)
        yield Comparison(
            name="hunt-replays",
            what=f"replays of what is found: {replays[0]} of {replays[1]} alike to the byte",
            unit="of them",
            figures={"alike": [replays[0] / replays[1]]},
            goal="all",
            reached=replays[0] == replays[1] and all(each.repeats and each.passes for each in found),
        )
    yield Comparison(
        name="hunt-twins",
        what=f"{len(done)} programs without the bug, {TWIN_TRIALS} trials each: something is found",
        unit="of them",
        figures={"found": [sum(bool(each.twin and each.twin.trial) for each in done) / len(done)]},
        goal="in none",
        reached=not any(each.twin is None or each.twin.trial or each.twin.problem for each in done),
    )
    write(page(answers()), PAGE, "hunt")


def page(done: Sequence[Answer]) -> str:
    """Return what was measured as Markdown."""
    found = [each for each in done if each.hunt.trial is not None]
    replays = sum(each.hunt.replays for each in found), sum(each.hunt.attempts for each in found)
    sentences = (
        f"Of {len(done)} bugs {len(found)} are found within {MOST_CPU_S // 60} CPU minutes each, in the median in "
        f"{statistics.median(each.hunt.cpu_s for each in found) / 60:.1f}; seeds alone show "
        f"{sum(bool(each.seeds and each.seeds.trial) for each in found)} of them in "
        f"{statistics.median(each.times for each in found):.1f} times that, in the median. "
        f"{replays[0]} of {replays[1]} replays are alike to the byte, and "
        f"{sum(each.repeats and each.passes for each in found)} of {len(found)} studies that were handed over fail "
        f"with the bug and pass without it. In the {len(done)} programs without the bug, something is found in "
        f"{sum(bool(each.twin and each.twin.trial) for each in done)}."
    )
    head = ("bug", "shows as", "found in trial", "pauses needed", "CPU s", "seeds alone: CPU s", "in the twin")
    lines = [head, ("---", "---", "---:", "---:", "---:", "---:", "---"), *map(row, done)]
    return "\n".join((sentences, "", *(f"| {' | '.join(line)} |" for line in lines), ""))


def row(measured: Answer) -> tuple[str, ...]:
    """Return a bug, its goal, and what was found of it, with seeds alone, and in its twin."""
    bug, hunted, seeds, twin = measured.bug, measured.hunt, measured.seeds, measured.twin
    searched = "" if seeds is None else f"{seeds.cpu_s:.0f}" if seeds.trial else f"not in {seeds.cpu_s:.0f}"
    return (
        f"{bug.name}: {bug.wrong[0].lower()}{bug.wrong[1:].rstrip('.')}",
        f"`{bug.goal}`",
        str(hunted.trial) if hunted.trial else hunted.problem or f"not in {hunted.trials}",
        str(hunted.pauses) if hunted.trial else "",
        f"{hunted.cpu_s:.0f}",
        searched,
        "" if twin is None else twin.problem or (f"trial {twin.trial}" if twin.trial else "nothing"),
    )


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="only this bug (repeatable)")
    parser.add_argument("--again", action="store_true", help="also measure what was measured before")
    options = parser.parse_args(arguments)
    reached = True
    for comparison in measure(options.only, again=options.again):
        show(comparison, Console())
        reached = reached and comparison.reached
    return 0 if reached else 1
