"""Advice on workloads whose best change is known, and on workloads that no setting helps.

``python -m benchmarks.advice [--only NAME]... [--again]``; of ``python -m benchmarks advice`` are the same figures.
Each is a guest under the virtual clock (``workloads.toml`` says how the right answers were measured), and advice has a
number of trials, so the answers are the same on every machine: ``answers.json`` has those that were measured, and only
others are measured. The table is that of docs/reference/advice.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from ajuste.model.verdict import Verdict
from ajuste_advise.model import better_by, gain
from benchmarks.comparison import Comparison, show
from benchmarks.verdicts.page import write

MAX_TRIALS: Final = 300
PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "advice.md"
ANSWERS: Final = Path(__file__).with_name("answers.json")
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
    """The advice on a workload, in how many ``seconds`` and ``trials``; ``problem`` where nothing was. ``better`` is
    how much better the lines are, as a share, with ``low`` and ``high``.
    """

    workload: Workload
    seconds: float
    trials: int = 0
    lines: tuple[str, ...] = ()
    better: float | None = None
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


def advise(workload: Workload) -> Advised:
    """Ask for advice, as a person does."""
    command = [
        str(Path(sys.executable).with_name("ajuste")),
        "advise",
        "--json",
        "--no-functions",
        "--max-trials",
        str(MAX_TRIALS),
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
    better, low, high = _shares(Verdict.model_validate(document["proof"])) if document["lines"] else (None,) * 3
    return Advised(
        workload,
        round(seconds, 1),
        sum(stage["trials"] for stage in document["stages"]),
        tuple(f"{line['setting']}={line['level']}" for line in document["lines"]),
        better=better,
        low=low,
        high=high,
        answer=document["answer"],
    )


def _shares(proof: Verdict) -> tuple[float | None, float | None, float | None]:
    low, high = (better_by(proof, bound) for bound in (proof.low, proof.high))
    return gain(proof), *((high, low) if proof.direction == "lower" else (low, high))


# Metrics without a better direction, which the answers of the benchmark make smaller.
_FALLS: Final = ("involuntary-switches", "context-switches", "cpu-migrations", "minor-faults", "page-faults")


def answers() -> list[Advised]:
    """Return the advice that was measured, in the order of the workloads."""
    known = {workload.name: workload for workload in workloads()}
    rows = {row.pop("name"): row for row in json.loads(ANSWERS.read_text())} if ANSWERS.exists() else {}
    return [
        Advised(workload, **rows[name] | {"lines": tuple(rows[name]["lines"])})
        for name, workload in known.items()
        if name in rows
    ]


def measure(names: Sequence[str] = (), *, again: bool = False) -> Iterator[Comparison]:
    there = {each.workload.name for each in answers()}
    console = Console(stderr=True)
    for workload in workloads():
        if (workload.name in names if names else True) and (again or workload.name not in there):
            advised = advise(workload)
            console.print(_sentence(advised), highlight=False)
            _keep(advised)
    done = [each for each in answers() if not names or each.workload.name in names]
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
        false = sum(bool(each.lines) for each in null)
        yield Comparison(
            name="advice-null",
            what=f"{len(null)} workloads that no setting helps: something is advised",
            unit="of them",
            figures={"advised": [false / len(null)]},
            goal="in at most 5 %",
            reached=false <= _FALSE * len(null),
        )
    yield Comparison(
        name="advice-minutes",
        what=f"advice on {len(done)} workloads, --max-trials {MAX_TRIALS}",
        unit="minutes",
        figures={"advice": [each.seconds / 60 for each in done]},
        goal="at most 10 minutes each",
        reached=max(each.seconds for each in done) <= 600,
    )
    write(page(answers()), PAGE, "advice")
    Console().print(_table(done))


def _sentence(advised: Advised) -> str:
    mark = "first" if advised.is_hit else "advised" if advised.lines else "nothing"
    return f"{advised.workload.name}: {mark}, {advised.seconds:.0f} s: {advised.problem or advised.answer}"


def _keep(advised: Advised) -> None:
    others = {each.workload.name: each for each in answers()} | {advised.workload.name: advised}
    rows = [
        {"name": name} | {key: value for key, value in asdict(each).items() if key != "workload"}
        for name, each in others.items()
    ]
    ANSWERS.write_text(json.dumps(rows, indent=2, ensure_ascii=False) + "\n")


def _table(done: Sequence[Advised]) -> Table:
    table = Table("Workload", "Right answers", "Advised", "Better by", "By hand", "Trials", "s")
    for each in done:
        table.add_row(*row(each), f"{each.seconds:.0f}")
    return table


def page(done: Sequence[Advised]) -> str:
    """Return what was measured as Markdown: how often the right answer is first, and all answers."""
    answered = [each for each in done if each.workload.decisive]
    held = [each for each in answered if each.workload.held_out]
    null = [each for each in done if not each.workload.decisive]
    first, false = sum(each.is_hit for each in answered), sum(bool(each.lines) for each in null)
    sentences = (
        f"Measured: {len(done)} of {len(workloads())} workloads, with at most {MAX_TRIALS} trials each. The best "
        f"change is named first in {first} of {len(answered)} where it is known, and in "
        f"{sum(each.is_hit for each in held)} of the {len(held)} among them that were held out. Where nothing is known "
        f"to help, something is advised in {false} of {len(null)}."
    )
    head = ("workload", "right answers", "advised", "better by", "by hand", "trials")
    lines = [head, ("---", "---", "---", "---:", "---:", "---:"), *map(row, done)]
    return "\n".join((sentences, "", *(f"| {' | '.join(line)} |" for line in lines), ""))


def row(advised: Advised) -> tuple[str, ...]:
    """Return a workload, its right answers, the advice, its effect, that of its first line by hand, and the trials."""
    workload = advised.workload
    first = advised.lines[0].partition("=")[0] if advised.lines else ""
    return (
        workload.name,
        ", ".join(f"{name}={level}" for name, level in workload.decisive.items()) or "none",
        ", ".join(advised.lines) or advised.problem or "nothing",
        "" if advised.better is None else f"{100 * advised.better:.1f} %",
        f"{100 * abs(workload.effect[first]):.1f} %" if first in workload.effect else "",
        str(advised.trials),
    )


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="only this workload (repeatable)")
    parser.add_argument("--again", action="store_true", help="also measure what was measured before")
    options = parser.parse_args(arguments)
    reached = True
    for comparison in measure(options.only, again=options.again):
        show(comparison, Console())
        reached = reached and comparison.reached
    return 0 if reached else 1
