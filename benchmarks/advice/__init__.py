"""Advice on workloads whose best change is known, and on workloads that no setting helps.

``python -m benchmarks.advice [--only NAME]... [--max-time 10m]``; of ``python -m benchmarks advice`` are the same
figures. Each is a guest under the virtual clock (``workloads.toml`` says how the answers were measured).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from benchmarks.comparison import RESULTS, Comparison, show

MAX_TIME: Final = "10m"
_WORKLOADS: Final = Path(__file__).with_name("workloads.toml")
_HITS: Final = 20 / 24
_FALSE: Final = 0.05


@dataclass(frozen=True)
class Workload:
    """A workload: the words after ``ajuste advise``, and the settings of which any is the right answer."""

    name: str
    command: list[str]
    decisive: dict[str, str] = field(default_factory=dict)
    effect: dict[str, float] = field(default_factory=dict)
    held_out: bool = False


@dataclass(frozen=True)
class Advised:
    """The advice on a workload, in how many ``seconds``; ``problem`` where nothing was."""

    workload: Workload
    seconds: float
    lines: tuple[str, ...] = ()
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    answer: str = ""
    problem: str = ""

    @property
    def is_hit(self) -> bool:
        """Return whether the line with the largest effect is one of the right answers."""
        return bool(self.lines) and self.lines[0].partition("=")[0] in self.workload.decisive


def workloads() -> list[Workload]:
    """Return all of them: those with an answer first."""
    known = ("name", "command", "decisive", "effect", "held_out")
    tables = tomllib.loads(_WORKLOADS.read_text())["workload"]
    return [Workload(**{key: table[key] for key in known if key in table}) for table in tables]


def advise(workload: Workload, max_time: str) -> Advised:
    """Ask for advice, as a person does."""
    command = [
        str(Path(sys.executable).with_name("ajuste")),
        "advise",
        "--json",
        "--no-functions",
        "--max-time",
        max_time,
    ]
    words = list(workload.command)
    if "--metric" in words and workload.decisive:
        place = words.index("--metric") + 1
        if words[place] in _FALLS:
            words[place] += "=lower"
    begin = time.monotonic()
    done = subprocess.run(
        [*command, "--name", workload.name.replace(".", "-"), *words], capture_output=True, text=True, check=False
    )
    seconds = time.monotonic() - begin
    if done.returncode:
        return Advised(
            workload, seconds, problem=next(line for line in done.stderr.splitlines() if line.startswith("ajuste: "))
        )
    document: dict[str, Any] = json.loads(done.stdout)
    proof = document["proof"] or {}
    return Advised(
        workload,
        seconds,
        tuple(f"{line['setting']}={line['level']}" for line in document["lines"]),
        estimate=proof.get("estimate"),
        low=proof.get("low"),
        high=proof.get("high"),
        answer=document["answer"],
    )


# Metrics without a better direction, which the answers of the benchmark make smaller.
_FALLS: Final = ("involuntary-switches", "context-switches", "cpu-migrations", "minor-faults", "page-faults")


def measure(names: Sequence[str] = (), max_time: str = MAX_TIME) -> Iterator[Comparison]:
    chosen = [workload for workload in workloads() if not names or workload.name in names]
    console = Console(stderr=True)
    done: list[Advised] = []
    for workload in chosen:
        done.append(advise(workload, max_time))
        console.print(_sentence(done[-1]), highlight=False)
        _keep(done)
    answered = [each for each in done if each.workload.decisive]
    null = [each for each in done if not each.workload.decisive]
    if answered:
        hits = sum(each.is_hit for each in answered)
        held = [each for each in answered if each.workload.held_out]
        figures = {"first": [hits / len(answered)], "advised": [sum(bool(a.lines) for a in answered) / len(answered)]}
        if held:
            figures["first, held out"] = [sum(each.is_hit for each in held) / len(held)]
        yield Comparison(
            name="advice-decisive",
            what=f"{len(answered)} workloads with a known best change: it is named first",
            unit="of them",
            figures=figures,
            goal="named first in 20 of 24",
            reached=hits >= _HITS * len(answered),
        )
    if null:
        advised = sum(bool(each.lines) for each in null)
        yield Comparison(
            name="advice-null",
            what=f"{len(null)} workloads that no setting helps: something is advised",
            unit="of them",
            figures={"advised": [advised / len(null)]},
            goal="in at most 5 %",
            reached=advised <= _FALSE * len(null),
        )
    yield Comparison(
        name="advice-minutes",
        what=f"advice on {len(done)} workloads, --max-time {max_time}",
        unit="minutes",
        figures={"advice": [each.seconds / 60 for each in done]},
        goal="at most 10 minutes each",
        reached=max(each.seconds for each in done) <= 600,
    )
    Console().print(_table(done))


def _sentence(advised: Advised) -> str:
    mark = "first" if advised.is_hit else "advised" if advised.lines else "nothing"
    return f"{advised.workload.name}: {mark}, {advised.seconds:.0f} s: {advised.problem or advised.answer}"


def _keep(done: Sequence[Advised]) -> None:
    RESULTS.mkdir(exist_ok=True)
    rows = [
        {
            "name": each.workload.name, "decisive": each.workload.decisive, "held_out": each.workload.held_out,
            "advised": each.lines, "first": each.is_hit, "estimate": each.estimate, "low": each.low,
            "high": each.high, "seconds": round(each.seconds, 1), "answer": each.answer, "problem": each.problem,
        }
        for each in done
    ]  # fmt: skip
    (RESULTS / "advice.json").write_text(json.dumps(rows, indent=2, ensure_ascii=False) + "\n")


def _table(done: Sequence[Advised]) -> Table:
    table = Table("Workload", "Right answers", "Advised", "Change", "By hand", "s")
    for each in done:
        change = "" if each.estimate is None else f"{100 * (each.estimate - 1):+.1f} %"
        first = each.lines[0].partition("=")[0] if each.lines else ""
        by_hand = f"{100 * each.workload.effect[first]:+.1f} %" if first in each.workload.effect else ""
        answers = ", ".join(f"{name}={level}" for name, level in each.workload.decisive.items()) or "none"
        advised = ", ".join(each.lines) or each.problem or "nothing"
        table.add_row(each.workload.name, answers, advised, change, by_hand, f"{each.seconds:.0f}")
    return table


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="only this workload (repeatable)")
    parser.add_argument("--max-time", default=MAX_TIME, help="time for each (default: 10m)")
    options = parser.parse_args(arguments)
    reached = True
    for comparison in measure(options.only, options.max_time):
        show(comparison, Console())
        reached = reached and comparison.reached
    return 0 if reached else 1
