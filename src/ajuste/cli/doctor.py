"""``ajuste doctor``: how quiet this machine is."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Final

import typer
from rich.text import Text

from ajuste.analysis.precision import MOST_BLOCKS
from ajuste.cli.options import Json, example
from ajuste.executor.host.host import HostExecutor
from ajuste.executor.host.machine_lock import MachineLock
from ajuste.machine.doctor.diagnosis import Diagnosis, NoiseEffect, NoiseFinding, Power, amount, diagnose
from ajuste.machine.doctor.measuring import FULL, QUICK, measure
from ajuste.model.wording import Say, visible_line
from ajuste.report.console import Console
from ajuste.report.format import count_of
from ajuste.report.sheet import INDENT, Sheet, plain_table, sheet


@example("ajuste doctor --quick")
def doctor(
    quick: Annotated[bool, typer.Option("--quick", help="Measure for 5 s instead of 30 s.")] = False,
    as_json: Json = False,
) -> None:
    """Check how quiet this machine is: what you can measure, what disturbs, and what to do.

    Measures timers, other load, stolen time and the spread of a fixed job. Changes nothing. Run no experiment
    at the same time: they would disturb each other.
    """
    with MachineLock("measurement"), _saying() as say, HostExecutor() as target:
        measured = measure(target, QUICK if quick else FULL, say)
    diagnosis = diagnose(measured)
    if as_json:
        typer.echo(diagnosis.model_dump_json(indent=2))
    else:
        print_diagnosis(diagnosis, Console(file=sys.stdout))


@contextmanager
def _saying() -> Iterator[Say]:
    """Shows on a terminal what happens now, and elsewhere nothing; nothing remains of it in the end."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.telling() as say:
        yield say


# How ``ajuste doctor`` looks on a terminal.


_MARKS: Final = {"much": ("!!", "bold red"), "some": ("! ", "yellow"), "note": ("i ", "cyan")}
_WORDS: Final = {"quiet": "bold green", "usable": "bold yellow", "noisy": "bold red"}


def print_diagnosis(diagnosis: Diagnosis, console: Console) -> None:
    """What can be detected, what disturbs and what to do, what does not disturb, and the verdict at the end."""
    with sheet(console) as out:
        _print_effects(out, diagnosis)
        disturbing = [finding for finding in diagnosis.findings if finding.severity in _MARKS]
        out.heading("Disturbances, most important first")
        for finding in disturbing:
            _print_finding(out, finding)
        if not disturbing:
            out.say("None found.", indent=INDENT)
        _print_busy(out, diagnosis)
        _print_rest(out, diagnosis)
        out.blank()
        out.say(Text("This machine is ") + Text(diagnosis.sentence, style=_WORDS[diagnosis.verdict]) + Text("."))


def _print_effects(out: Sheet, diagnosis: Diagnosis) -> None:
    runs = diagnosis.measured.runs
    out.heading("What a study could see here")
    out.say(
        f"{count_of(len(runs), 'run')} of a fixed job spread by {amount(diagnosis.spread_percent, '%')} "
        f"({amount(min(run.elapsed_s for run in runs), 's')} to {amount(max(run.elapsed_s for run in runs), 's')}).",
        indent=INDENT,
    )
    table = plain_table()
    for header in ("effect", "blocks", "range"):
        table.add_column(header, justify="right")
    for effect in diagnosis.effects:
        table.add_row(f"{effect.effect_percent:g} %", *_blocks(effect))
    out.blank()
    out.table(table)
    out.blank()
    said = [f"{power.blocks} blocks show {_effect(power)}" for power in diagnosis.powers]
    out.say(f"{'; '.join(said)}.", indent=INDENT)


def _blocks(effect: NoiseEffect) -> tuple[str, str]:
    if effect.blocks is None:
        return f"over {MOST_BLOCKS:,}", ""
    high = f"over {MOST_BLOCKS:,}" if effect.high is None else f"{effect.high:,}"
    return f"about {effect.blocks:,}", f"{effect.low:,} … {high}" if effect.low is not None else ""


def _effect(power: Power) -> str:
    return "nothing" if power.effect_percent is None else f"effects from {amount(power.effect_percent, '%')} on"


def _print_finding(out: Sheet, finding: NoiseFinding) -> None:
    mark, style = _MARKS[finding.severity]
    out.say(Text(f"{mark} ", style=style) + Text(finding.title, style="bold"), indent=INDENT)
    limit = f" (from {amount(finding.threshold, finding.unit)} on)" if finding.threshold is not None else ""
    out.say(f"{visible_line(finding.said)}{limit}.", indent=3 * INDENT)
    for line in finding.advice:
        out.say(f"→ {line}", style="dim", indent=3 * INDENT)


def _print_busy(out: Sheet, diagnosis: Diagnosis) -> None:
    if not diagnosis.measured.busy:
        return
    out.heading("Programs that used most CPU meanwhile (% of one CPU)")
    table = plain_table(header=False)
    table.add_column(justify="right")
    table.add_column(overflow="fold")
    for busy in diagnosis.measured.busy:
        table.add_row(f"{busy.cpu_percent:.1f}", Text(visible_line(busy.name)))
    out.table(table)


def _print_rest(out: Sheet, diagnosis: Diagnosis) -> None:
    quiet = [finding for finding in diagnosis.findings if finding.severity == "none"]
    unknown = [finding for finding in diagnosis.findings if finding.severity == "unknown"]
    if quiet:
        out.heading("No disturbance")
        for finding in quiet:
            out.say(f"{finding.said}.", style="dim", indent=INDENT)
    if unknown:
        out.heading("Not visible here")
        for finding in unknown:
            out.say(f"{finding.title}? {finding.said}.", style="dim", indent=INDENT)
