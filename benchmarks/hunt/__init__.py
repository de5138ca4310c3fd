"""Planted bugs hunted with pauses and with seeds alone, and their twins, which have no bug.

``python -m benchmarks.hunt [--only NAME]... [--again] [--without-seeds]``; of ``python -m benchmarks hunt`` are the
same figures. A bug is hunted as a person would who knows nothing of it but how it shows (``planted/NAME/bug.toml``):
which trial shows it is the same on every machine. ``answers.json`` has what was measured, and only the rest is
measured. The table is that of docs/reference/hunts.md.
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
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from ajuste.machine.home import home
from ajuste_guest.kernel.fetch import fetch_kernel
from ajuste_guest.kernel.own_module import fetch_headers
from benchmarks.comparison import Comparison, show
from benchmarks.hunt.planted.catalogue import PlantedBug, build_bug, module_study, planted_bugs
from benchmarks.verdicts.page import write

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "hunts.md"
ANSWERS: Final = Path(__file__).with_name("answers.json")
MOST_CPU_S: Final = 30 * 60
TIMES: Final = 10
"""Seeds alone are tried for so many times as long as the search with pauses."""
MOST_SEEDS_S: Final = 600
"""But guests run for no longer than this."""
TWIN_TRIALS: Final = 100
_FOUND: Final = 16 / 20
_CPUS: Final = 2


@dataclass(frozen=True)
class Search:
    """The outcome of a search: the ``trial`` that showed the goal, if any, of ``trials``. ``cpu_s`` is what the whole
    command took, and ``guest_s`` how long guests ran until the goal was shown, or in all.
    """

    cpu_s: float
    trials: int
    guest_s: float = 0.0
    trial: int | None = None
    pauses: int = 0
    replays: int = 0
    attempts: int = 0


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
    def times(self) -> float | None:
        """Return how many times as long seeds took as pauses, at least."""
        return self.seeds.guest_s / self.hunt.guest_s if self.seeds and self.hunt.trial else None


def search(bug: PlantedBug, program: Path, *options: str) -> Search:
    """Hunt as a person does, from where the program is."""
    words = ["hunt", "--json", "--fresh", "--until", bug.goal, *options]
    begin = _cpu_s()
    done = _ajuste(program.parent, *words, *_job(bug))
    cpu_s = round(_cpu_s() - begin, 1)
    if done.returncode not in (0, 3):
        raise RuntimeError(f"{bug.name}: {' '.join(done.args)}: {done.stderr.strip()[-500:]}")
    document: dict[str, Any] = json.loads(done.stdout)
    finding = document["finding"]
    if finding is None:
        return Search(cpu_s, document["trials"], round(document["host_seconds"], 1))
    return Search(
        cpu_s,
        document["trials"],
        finding["host_seconds"],
        finding["trial"],
        len(finding["pauses"]),
        finding["replays"],
        finding["attempts"],
    )


def _job(bug: PlantedBug) -> list[str]:
    if bug.kind == "module":
        return [f"{bug.name}.toml"]
    words = ["--kernel", bug.kernel, "--guest-cpus", str(bug.cpus), "--file", bug.command[0]]
    # A hang is 20 times the usual time, as the hunt has it; what only takes long has a limit of its own.
    limit = [] if bug.goal == "hung" or "exit" in bug.goal else ["--timeout", f"{bug.timeout_s:g}"]
    return [*words, *limit, "--", *bug.command]


def hunted(bug: PlantedBug) -> Answer:
    """Hunt the bug, run the study that is handed over with the bug and without it, and hunt in the twin."""
    with tempfile.TemporaryDirectory() as directory:
        programs = {fixed: _built(bug, Path(directory), fixed=fixed) for fixed in (False, True)}
        study = programs[False].with_name("found.toml")
        limits = ["--max-trials", "100000", "--max-time", f"{MOST_CPU_S / _CPUS:.0f}s"]
        answer = Answer(bug, search(bug, programs[False], *limits, "--output", str(study)))
        if study.exists():
            shutil.copy(study, programs[True].parent)
            codes = [_ajuste(program.parent, "run", "found.toml", "--json").returncode for program in programs.values()]
            answer = replace(answer, repeats=codes[0] == 3, passes=codes[1] == 0)
        return replace(answer, twin=search(bug, programs[True], "--max-trials", str(TWIN_TRIALS)))


def with_seeds(answer: Answer) -> Answer:
    """Search for the same with seeds alone, for so many times as long."""
    least_s = min(TIMES * answer.hunt.guest_s, MOST_SEEDS_S) / _CPUS
    limits = ["--seeds-only", "--max-trials", "1000000", "--max-time", f"{max(5.0, 1.1 * least_s):.0f}s"]
    with tempfile.TemporaryDirectory() as directory:
        return replace(answer, seeds=search(answer.bug, _built(answer.bug, Path(directory), fixed=False), *limits))


def _built(bug: PlantedBug, directory: Path, *, fixed: bool) -> Path:
    out = directory / ("twin" if fixed else "bug")
    out.mkdir()
    if bug.kind != "module":
        return build_bug(bug, out, fixed=fixed)
    image = fetch_kernel(bug.kernel, home())
    module_study(bug, out, image.vmlinuz)
    return build_bug(bug, out, fixed=fixed, headers=fetch_headers(image, home()).directory)


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
    rows = {each.bug.name: asdict(each) for each in (*answers(), measured)}
    document = {
        name: {field: value for field, value in row.items() if field != "bug"} for name, row in sorted(rows.items())
    }
    ANSWERS.write_text(json.dumps(document, indent=2) + "\n")
    Console(stderr=True).print(" | ".join(row(measured)), highlight=False)


def measure(names: Sequence[str] = (), *, again: bool = False, seeds: bool = True) -> Iterator[Comparison]:
    wanted = [bug for bug in planted_bugs() if not names or bug.name in names]
    there = {} if again else {each.bug: each for each in answers()}
    for bug in wanted:
        if bug not in there:
            _keep(hunted(bug))
    # Those first that are soon measured.
    for answer in sorted(answers(), key=lambda each: each.hunt.guest_s) if seeds else ():
        if answer.bug in wanted and answer.hunt.trial is not None and answer.seeds is None:
            _keep(with_seeds(answer))
    done = [each for each in answers() if each.bug in wanted]
    hits = [each for each in done if each.hunt.trial is not None]
    yield Comparison(
        name="hunt-found",
        what=f"{len(hits)} of {len(done)} planted bugs are found: CPU minutes of each",
        unit="minutes",
        figures={"hunt": [each.hunt.cpu_s / 60 for each in done]},
        goal="16 of 20 found in at most 30 CPU minutes each",
        reached=len([each for each in hits if each.hunt.cpu_s <= MOST_CPU_S]) >= _FOUND * len(done),
    )
    if times := [each.times for each in hits if each.times is not None]:
        yield Comparison(
            name="hunt-against-seeds",
            what="time of guests with seeds alone, as a multiple; at least, where seeds do not show it",
            unit="times",
            figures={"seeds": times},
            goal="ten times as much or more for half of all that are found",
            reached=2 * sum(each >= TIMES for each in times) >= len(hits),
        )
    if hits:
        replays = sum(each.hunt.replays for each in hits), sum(each.hunt.attempts for each in hits)
        yield Comparison(
            name="hunt-replays",
            what=f"replays of what is found: {replays[0]} of {replays[1]} alike to the byte",
            unit="of them",
            figures={"alike": [replays[0] / replays[1]]},
            goal="all, and each study that is handed over fails with the bug and passes without it",
            reached=replays[0] == replays[1] and all(each.repeats and each.passes for each in hits),
        )
    yield Comparison(
        name="hunt-twins",
        what=f"{len(done)} programs without the bug, {TWIN_TRIALS} trials each: something is found",
        unit="of them",
        figures={"found": [sum(bool(each.twin and each.twin.trial) for each in done) / len(done)]},
        goal="in none",
        reached=not any(each.twin is None or each.twin.trial for each in done),
    )
    if hits:
        write(page(answers()), PAGE, "hunt")


def page(done: Sequence[Answer]) -> str:
    """Return what was measured as Markdown."""
    hits = [each for each in done if each.hunt.trial is not None]
    seeds = [each for each in hits if each.seeds is not None]
    replays = sum(each.hunt.replays for each in hits), sum(each.hunt.attempts for each in hits)
    sentences = [
        f"Of {len(done)} bugs {len(hits)} are found within {MOST_CPU_S // 60} CPU minutes each, in the median in "
        f"{statistics.median(each.hunt.cpu_s for each in hits) / 60:.1f}. {replays[0]} of {replays[1]} replays are "
        f"alike to the byte, and {sum(each.repeats and each.passes for each in hits)} of {len(hits)} studies that "
        f"were handed over fail with the bug and pass without it. In the {len(done)} programs without the bug, "
        f"something is found in {sum(bool(each.twin and each.twin.trial) for each in done)}.",
    ]
    if seeds:
        showing = sum(bool(each.seeds and each.seeds.trial) for each in seeds)
        longer = sum((each.times or 0) >= TIMES for each in seeds)
        sentences.append(
            f"Seeds alone show {showing} of the {len(seeds)} that they were tried on, and take {TIMES} times as long "
            f"or more for {longer} of the {len(hits)} that are found."
        )
    head = ("bug", "shows as", "found in trial", "pauses needed", "guests ran, s", "CPU s", "seeds alone, s", "twin")
    lines = [head, ("---", "---", *("---:",) * 5, "---"), *map(row, done)]
    return "\n".join((" ".join(sentences), "", *(f"| {' | '.join(line)} |" for line in lines), ""))


def row(measured: Answer) -> tuple[str, ...]:
    """Return a bug, its goal, and what was found of it, with seeds alone, and in its twin."""
    bug, hunt, seeds, twin = measured.bug, measured.hunt, measured.seeds, measured.twin
    return (
        f"{bug.name}: {bug.wrong[0].lower()}{bug.wrong[1:].rstrip('.')}",
        f"`{bug.goal}`",
        str(hunt.trial) if hunt.trial else f"not in {hunt.trials}",
        str(hunt.pauses) if hunt.trial else "",
        f"{hunt.guest_s:.0f}",
        f"{hunt.cpu_s:.0f}",
        "" if seeds is None else f"{'' if seeds.trial else 'not in '}{seeds.guest_s:.0f}",
        "" if twin is None else f"trial {twin.trial}" if twin.trial else "nothing",
    )


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="only this bug (repeatable)")
    parser.add_argument("--again", action="store_true", help="also hunt what was hunted before")
    parser.add_argument("--without-seeds", action="store_true", help="do not search with seeds alone")
    options = parser.parse_args(arguments)
    reached = True
    for comparison in measure(options.only, again=options.again, seeds=not options.without_seeds):
        show(comparison, Console())
        reached = reached and comparison.reached
    return 0 if reached else 1
