"""A study as it would run: everything that ``ajuste plan`` shows, in words and as JSON."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from itertools import groupby

from pydantic import BaseModel, ConfigDict, Field
from rich.console import Console
from rich.text import Text

from ajuste.model.metric import Metric
from ajuste.model.plan import Sampler
from ajuste.model.results import Clock
from ajuste.model.trial import Factor, Slot
from ajuste.model.wording import number, visible, visible_line
from ajuste.report.environment import VIRTUAL
from ajuste.report.format import count_of, duration, level_text
from ajuste.report.sheet import INDENT, Sheet, plain_table, sheet
from ajuste.report.verdicts import effect_band


class _Planned(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PlannedWrite(_Planned):
    """A value that would be written. ``where`` is the path (and flag) in the target; ``now`` what a host has there now,
    or why that cannot be said.
    """

    tunable: str
    where: str
    value: str
    now: str = ""


class PlannedCommand(_Planned):
    """A program that would run. ``attributes`` are nice, policy, affinity and the like, as text; ``count`` copies.
    ``user`` is whose process it would be on a host.
    """

    role: str
    argv: tuple[str, ...] = Field(min_length=1)
    attributes: dict[str, str] = Field(default_factory=dict)
    environment: dict[str, str] = Field(default_factory=dict)
    directory: str = "/"
    user: str = ""
    count: int = Field(default=1, ge=1)


class PlannedConfiguration(_Planned):
    """What one configuration writes and runs; ``target`` only where it is not the study's (another kernel), and
    ``kernel_arguments`` beside the study's; ``modules`` are those of Ajuste's own.
    """

    name: str
    levels: dict[str, str]
    baseline: bool = False
    target: str = ""
    kernel_arguments: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    writes: tuple[PlannedWrite, ...] = ()
    commands: tuple[PlannedCommand, ...] = ()


class PlannedBudget(_Planned):
    """Blocks that are run at least and at most, and minutes at most (``None``: no limit)."""

    min_blocks: int
    max_blocks: int
    max_minutes: float | None = None


class PlannedNeed(_Planned):
    """About how many ``blocks`` tell the smallest effect that matters from none, where single runs scatter by
    ``run_percent``; ``None`` where it takes more than can be told.
    """

    run_percent: float
    blocks: int | None


class PlannedStudy(_Planned):
    """``target`` describes in a line where trials would run. ``trials`` are those of the first blocks, in order;
    later blocks are drawn in the same way from ``seed``. ``once`` is what runs before the first and after the last
    trial. ``design`` says in sentences how they are ordered. ``units`` are the factors' units, where they have one.
    """

    schema_version: int = 1
    study: str
    title: str
    question: str
    target: str
    clock: Clock
    seed: int
    factors: tuple[Factor, ...]
    units: dict[str, str] = Field(default_factory=dict)
    configurations: tuple[PlannedConfiguration, ...]
    once: tuple[PlannedCommand, ...] = ()
    trials: tuple[Slot, ...]
    design: str = ""
    budget: PlannedBudget
    warm_up_blocks: int = 0
    timeout_s: float
    settle_s: float = 0.0
    samplers: tuple[Sampler, ...] = ()
    observe_s: float = 0.0
    deciding: tuple[Metric, ...]
    described: tuple[Metric, ...] = ()
    counters: tuple[str, ...] = ()
    level: float
    smallest_effect: float
    correction: str = ""
    needed: tuple[PlannedNeed, ...] = ()
    notes: tuple[str, ...] = ()


# A study's plan in the terminal: every write, command and trial, and that nothing was done.


def print_plan(plan: PlannedStudy, console: Console) -> None:
    """Print ``plan``. Commands are quoted for a shell, so that what is shown is exactly what would run."""
    with sheet(console) as out:
        out.say(visible_line(plan.title), style="bold")
        out.say(visible(plan.question), style="italic")
        _print_frame(out, plan)
        if plan.factors:
            _print_factors(out, plan)
        _print_configurations(out, plan)
        _print_trials(out, plan)
        _print_metrics(out, plan)
        out.blank()
        for note in (*((VIRTUAL,) if plan.clock == "virtual" else ()), *plan.notes):
            out.say(f"Note: {visible_line(note)}")
        out.say("Nothing was written and nothing was run.", style="bold")


def _print_frame(out: Sheet, plan: PlannedStudy) -> None:
    budget = plan.budget
    limit = f", at most {duration(60 * budget.max_minutes)}" if budget.max_minutes is not None else ""
    configurations = len(plan.configurations)
    warm_up = f", after {count_of(plan.warm_up_blocks, 'warm-up block')}" if plan.warm_up_blocks else ""
    lines = (
        ("target", visible_line(plan.target)),
        ("clock", plan.clock),
        ("seed", str(plan.seed)),
        (
            "blocks",
            f"{budget.min_blocks} to {budget.max_blocks}{warm_up}, "
            f"of {count_of(configurations, 'trial')} each: at most "
            f"{count_of(configurations * (budget.max_blocks + plan.warm_up_blocks), 'trial')} and repeats of unclean "
            f"ones{limit}",
        ),
        *((("design", visible_line(plan.design)),) if plan.design else ()),
        ("time limit", f"{duration(plan.timeout_s)} for each trial"),
    )
    out.blank()
    _print_pairs(out, lines)


def _print_factors(out: Sheet, plan: PlannedStudy) -> None:
    out.heading("Varied")
    for factor in plan.factors:
        out.say(visible_line(factor.name), style="bold", indent=INDENT)
        unit = plan.units.get(factor.name, "")
        levels = (
            f"{visible_line(level_text(level, unit))}{'*' if level == factor.baseline else ''}"
            for level in factor.levels
        )
        out.say(f"{', '.join(levels)}  (* baseline)", indent=2 * INDENT)


def _print_configurations(out: Sheet, plan: PlannedStudy) -> None:
    """Commands that all configurations share once, then what each one writes and what it runs besides."""
    shared = [
        command
        for command in plan.configurations[0].commands
        if all(command in c.commands for c in plan.configurations)
    ]
    if shared:
        out.heading("Every trial runs")
        if plan.settle_s and any(command.role == "background" for c in plan.configurations for command in c.commands):
            out.say(f"The background load runs {plan.settle_s:g} s before the workload starts.", indent=INDENT)
        for command in shared:
            _print_command(out, command, INDENT)
        _print_samplers(out, plan)
    if plan.once:
        out.heading("Runs once per study")
        for command in plan.once:
            _print_command(out, command, INDENT)
    out.heading("Configurations")
    for configuration in plan.configurations:
        _print_configuration(out, configuration, shared)


def _print_samplers(out: Sheet, plan: PlannedStudy) -> None:
    for sampler in plan.samplers:
        keys = visible_line(", ".join(sampler.keys))
        out.say(f"read every {sampler.interval_ns / 1e6:g} ms: {sampler.source} {keys}", indent=INDENT)
    if plan.samplers and plan.observe_s:
        out.say(f"Sampling continues for {plan.observe_s:g} s after the workload's end.", indent=INDENT)


def _print_configuration(out: Sheet, configuration: PlannedConfiguration, shared: list[PlannedCommand]) -> None:
    baseline = " (baseline)" if configuration.baseline else ""
    out.say(f"{visible_line(configuration.name)}{baseline}", style="bold", indent=INDENT)
    if configuration.target:
        out.say(f"runs on {visible_line(configuration.target)}", indent=2 * INDENT)
    if configuration.kernel_arguments:
        out.say(f"boots with {visible_line(' '.join(configuration.kernel_arguments))}", indent=2 * INDENT)
    if configuration.modules:
        names = visible_line(", ".join(configuration.modules))
        out.say(f"loads the kernel module {names}, which is built for the guest's kernel", indent=2 * INDENT)
    for write in configuration.writes:
        now = f" (now {visible_line(write.now)})" if write.now else ""
        out.say(f"write {visible_line(write.value)} to {visible_line(write.where)}{now}", indent=2 * INDENT)
    own = [command for command in configuration.commands if command not in shared]
    for command in own:
        _print_command(out, command, 2 * INDENT)
    if not (configuration.writes or own or configuration.target or configuration.kernel_arguments):
        out.say("writes nothing", indent=2 * INDENT, style="dim")


def _print_command(out: Sheet, command: PlannedCommand, indent: int) -> None:
    count = f" × {command.count}" if command.count > 1 else ""
    out.say(f"{visible_line(command.role)}{count}: {visible_line(shlex.join(command.argv))}", indent=indent)
    how = [f"{visible_line(name)} {visible_line(value)}" for name, value in command.attributes.items()]
    if command.user:
        how.append(f"as {visible_line(command.user)}")
    if command.directory != "/":
        how.append(f"in {visible_line(shlex.quote(command.directory))}")
    how += [visible_line(f"{name}={shlex.quote(value)}") for name, value in command.environment.items()]
    if how:
        out.say(", ".join(how), indent=indent + INDENT, style="dim")


def _print_trials(out: Sheet, plan: PlannedStudy) -> None:
    if not plan.trials:
        return
    short = {c.name: _short(c, plan) for c in plan.configurations}
    out.heading("Order of the first blocks")
    for block, slots in groupby(plan.trials, key=lambda slot: slot.block):
        trials = list(slots)
        seeds = ", ".join(str(seed) for seed in dict.fromkeys(trial.seed for trial in trials))
        warm_up = ", warm-up" if trials[0].warm_up else ""
        out.say(f"block {block} (seed {seeds}{warm_up})", indent=INDENT)
        names = (short.get(trial.configuration, visible_line(trial.configuration)) for trial in trials)
        out.say(" → ".join(names), indent=2 * INDENT)


def _short(configuration: PlannedConfiguration, plan: PlannedStudy) -> str:
    levels = (level_text(level, plan.units.get(name, "")) for name, level in configuration.levels.items())
    return visible_line(", ".join(levels) or configuration.name)


def _print_metrics(out: Sheet, plan: PlannedStudy) -> None:
    out.heading("Measured")
    pairs = [
        ("decides", ", ".join(visible_line(metric.name) for metric in plan.deciding)),
        ("described", ", ".join(visible_line(metric.name) for metric in plan.described)),
        ("counters", ", ".join(visible_line(name) for name in plan.counters)),
        ("confidence", f"{100 * plan.level:g} % for all verdicts together"),
        ("correction", visible_line(plan.correction)),
        ("smallest effect that matters", effect_band(plan.smallest_effect)),
        ("blocks to see it", _needed(plan)),
    ]
    _print_pairs(out, [(name, text) for name, text in pairs if text])


def _needed(plan: PlannedStudy) -> str:
    """About how many blocks the smallest effect takes; empty where that cannot be told beforehand."""
    told = [
        f"{f'about {number(need.blocks)}' if need.blocks else 'very many'} if runs scatter by {need.run_percent:g} %"
        for need in plan.needed
    ]
    return f"{', '.join(told)} (ajuste doctor measures it here)" if told else ""


def _print_pairs(out: Sheet, pairs: Iterable[tuple[str, str]]) -> None:
    table = plain_table(header=False)
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    for name, text in pairs:
        table.add_row(Text(name, style="dim"), Text(text))
    out.table(table)
