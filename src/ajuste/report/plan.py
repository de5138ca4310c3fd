"""The plan of a study: the output of ``ajuste plan``, in words and as JSON."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from itertools import groupby

from pydantic import Field

from ajuste.model.base import ClosedModel
from ajuste.model.metric import Metric
from ajuste.model.plan import Sampler
from ajuste.model.results import Clock
from ajuste.model.trial import Factor, Slot
from ajuste.model.wording import block_name, count_of, number, shell_line
from ajuste.report.document import Fact, Facts, Item, Listing, Notes, Paragraph, Report, Section, Subsection, to_facts
from ajuste.report.format import duration, level_text
from ajuste.report.method import MODELLED, VIRTUAL
from ajuste.report.verdicts import effect_band


class PlannedWrite(ClosedModel):
    """A value that would be written. ``where`` is the path (and flag) in the target; ``now`` what a host has there now,
    or why that is unknown.
    """

    tunable: str
    where: str
    value: str
    now: str = ""


class PlannedCommand(ClosedModel):
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


class PlannedConfiguration(ClosedModel):
    """The writes and commands of one configuration; ``target`` only where it is not the study's (another kernel), and
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


class PlannedBudget(ClosedModel):
    """The minimum and maximum number of blocks, and the maximum of minutes (``None``: no limit)."""

    min_blocks: int
    max_blocks: int
    max_minutes: float | None = None


class PlannedNeed(ClosedModel):
    """The approximate number of ``blocks`` that detect the smallest effect that matters, where single runs scatter by
    ``run_percent``; ``None`` where it takes longer than the plan can estimate.
    """

    run_percent: float
    blocks: int | None


class PlannedReboots(ClosedModel):
    """The reboots of this machine: ``least`` to ``most``, which boot these ``states`` in turn, with ``each`` blocks in
    each boot. They take ``seconds`` each, about.
    """

    least: int
    most: int
    states: tuple[str, ...]
    each: int
    seconds: float


class PlannedPackageSet(ClosedModel):
    """The Debian packages of the guests: those that were ``asked`` for, and the versions of all by name."""

    release: str
    asked: tuple[str, ...]
    versions: dict[str, str]
    download_bytes: int


class PlannedStudy(ClosedModel):
    """``target`` describes in a line where trials would run. ``trials`` are those of the first blocks, in order;
    later blocks are drawn in the same way from ``seed``. ``once`` is what runs before the first and after the last
    trial. ``design`` says in sentences how they are ordered. ``units`` are the factors' units, where they have one.
    ``builds`` are commands that build schedulers on this machine first. All guests boot with ``kernel_arguments`` and
    load ``modules``. ``disk`` may be overwritten.
    """

    schema_version: int = 1
    study: str
    title: str
    question: str
    target: str
    clock: Clock
    paced_by: str = Field(default="", exclude_if=lambda machine: not machine)
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
    precision: float | None = None
    correction: str = ""
    needed: tuple[PlannedNeed, ...] = ()
    notes: tuple[str, ...] = ()
    kernel_arguments: tuple[str, ...] = Field(default=(), exclude_if=lambda words: not words)
    modules: tuple[str, ...] = Field(default=(), exclude_if=lambda modules: not modules)
    disk: str = Field(default="", exclude_if=lambda disk: not disk)
    builds: tuple[str, ...] = Field(default=(), exclude_if=lambda builds: not builds)
    packages: PlannedPackageSet | None = Field(default=None, exclude_if=lambda packages: packages is None)
    reboots: PlannedReboots | None = Field(default=None, exclude_if=lambda reboots: reboots is None)

    @property
    def block_size(self) -> int:
        """Return the number of trials in a whole block: an ablation has more trials than configurations."""
        return max(Counter(slot.block for slot in self.trials).values(), default=len(self.configurations))


# A study's plan as a report: every write, command and trial, and that nothing was done.


def plan_report(plan: PlannedStudy) -> Report:
    """Return the report of ``plan``; commands are quoted for a shell, exactly as they would run."""
    virtual = MODELLED.format(machine=plan.paced_by) if plan.paced_by else VIRTUAL
    notes = (*((virtual,) if plan.clock == "virtual" else ()), *plan.notes)
    sections = (
        Section("", (Facts(_frame(plan)),)),
        *((Section("Varied", (Facts(tuple(_varied(plan))),)),) if plan.factors else ()),
        *_commands(plan),
        Section("Configurations", tuple(_configurations(plan))),
        *((Section("Order of the first blocks", (Listing(tuple(_order(plan))),)),) if plan.trials else ()),
        Section("Measured", (Facts(_measured(plan)),)),
        *((Section("", (Notes(notes),)),) if notes else ()),
        Section("", (Paragraph("No setting was changed and nothing was run.", "bold"),)),
    )
    lead = (Paragraph(plan.question, "italic"),) if plan.question else ()
    return Report(plan.title, plan.title, sections, lead=lead)


def _frame(plan: PlannedStudy) -> tuple[Fact, ...]:
    budget = plan.budget
    limit = f", at most {duration(60 * budget.max_minutes)}" if budget.max_minutes is not None else ""
    limit += " (the first block is completed in any case)" if limit else ""
    warm_up = f", after {count_of(plan.warm_up_blocks, 'warm-up block')}" if plan.warm_up_blocks else ""
    trials = count_of(plan.block_size * (budget.max_blocks + plan.warm_up_blocks), "trial")
    blocks = (
        f"{budget.min_blocks} to {budget.max_blocks}{warm_up}, of {count_of(plan.block_size, 'trial')} each: "
        f"at most {trials}, plus repeats of flagged ones{limit}"
    )
    packages = reboots = ""
    if plan.packages is not None:
        download_mb = plan.packages.download_bytes / 1e6
        fetched = f"{download_mb:.0f} MB to download" if download_mb else "all in the cache"
        names = ", ".join(f"{name} {plan.packages.versions[name]}" for name in plan.packages.asked)
        more = count_of(len(plan.packages.versions) - len(plan.packages.asked), "package")
        packages = f"{names}, and {more} that they require, of Debian {plan.packages.release}; {fetched}"
    if plan.reboots is not None:
        time = [duration(count * plan.reboots.seconds) for count in (plan.reboots.least, plan.reboots.most)]
        reboots = (
            f"{plan.reboots.least} to {plan.reboots.most} of this machine, in about {time[0]} to {time[1]} without "
            f"the trials; {count_of(plan.reboots.each, 'block')} in each boot of: {', '.join(plan.reboots.states)}"
        )
    return to_facts(
        ("Target", plan.target),
        ("Packages", packages),
        ("Boots with", " ".join(plan.kernel_arguments)),
        ("Modules", ", ".join(plan.modules)),
        ("Disk", plan.disk),
        ("Built here, with --build", "; ".join(plan.builds)),
        ("Clock", f"{plan.clock}, the modelled time of {plan.paced_by}" if plan.paced_by else plan.clock),
        ("Seed", str(plan.seed)),
        ("Blocks", blocks),
        ("Reboots", reboots),
        ("Design", plan.design),
        ("Time limit", f"{duration(plan.timeout_s)} for each trial"),
    )


def _varied(plan: PlannedStudy) -> Iterator[Fact]:
    for factor in plan.factors:
        unit = plan.units.get(factor.name, "")
        levels = (
            f"{level_text(level, unit)}{' (baseline)' if level == factor.baseline else ''}" for level in factor.levels
        )
        yield Fact(factor.name, ", ".join(levels))


def _shared(plan: PlannedStudy) -> list[PlannedCommand]:
    first, *others = plan.configurations
    return [command for command in first.commands if all(command in other.commands for other in others)]


def _commands(plan: PlannedStudy) -> Iterator[Section]:
    shared = _shared(plan)
    if shared:
        background = any(command.role == "background" for c in plan.configurations for command in c.commands)
        settle = f"The workload starts {plan.settle_s:g} s after the background load at least, and when that is ready."
        reading = f"Sampling continues for {plan.observe_s:g} s after the workload's end."
        samplers = (
            Item(f"read every {sampler.interval_ns / 1e6:g} ms", f"{sampler.source} {', '.join(sampler.keys)}")
            for sampler in plan.samplers
        )
        yield Section(
            "Every trial runs",
            (
                *((Paragraph(settle),) if plan.settle_s and background else ()),
                Listing((*map(_command, shared), *samplers)),
                *((Paragraph(reading),) if plan.samplers and plan.observe_s else ()),
            ),
        )
    if plan.once:
        yield Section("Runs once per study", (Listing(tuple(map(_command, plan.once))),))


def _configurations(plan: PlannedStudy) -> Iterator[Subsection]:
    shared = _shared(plan)
    for configuration in plan.configurations:
        where = (
            ("runs on", configuration.target),
            ("boots with", " ".join(configuration.kernel_arguments)),
            ("loads the kernel module", ", ".join(configuration.modules)),
        )
        items = (
            *(Item(name, text) for name, text in where if text),
            *(
                Item(f"write {write.value} to {write.where}", note=write.now and f"now {write.now}")
                for write in configuration.writes
            ),
            *(_command(command) for command in configuration.commands if command not in shared),
        )
        title = f"{configuration.name}{' (baseline)' if configuration.baseline else ''}"
        yield Subsection(title, (Listing(items or (Item("writes nothing", tone="dim"),)),))


def _command(command: PlannedCommand) -> Item:
    count = f" × {command.count}" if command.count > 1 else ""
    how = [f"{name} {value}" for name, value in command.attributes.items()]
    if command.user:
        how.append(f"as {command.user}")
    if command.directory != "/":
        how.append(f"in {shlex.quote(command.directory)}")
    how += [f"{name}={shlex.quote(value)}" for name, value in command.environment.items()]
    return Item(f"{command.role}{count}", shell_line(shlex.join(command.argv)), more=(", ".join(how),) if how else ())


def _order(plan: PlannedStudy) -> Iterator[Item]:
    short = {}
    for configuration in plan.configurations:
        levels = (level_text(level, plan.units.get(name, "")) for name, level in configuration.levels.items())
        short[configuration.name] = ", ".join(levels) or configuration.name
    for block, slots in groupby(plan.trials, key=lambda slot: slot.block):
        trials = list(slots)
        seeds = ", ".join(str(seed) for seed in dict.fromkeys(trial.seed for trial in trials))
        names = " → ".join(short.get(trial.configuration, trial.configuration) for trial in trials)
        yield Item(f"{block_name(block, plan.warm_up_blocks)} (seed {seeds})", names)


def _measured(plan: PlannedStudy) -> tuple[Fact, ...]:
    within = "" if plan.precision is None else effect_band(plan.precision)
    precision = f"goes on until each interval is within {within}" if within else ""
    return to_facts(
        ("Decides", ", ".join(metric.name for metric in plan.deciding)),
        ("Described", ", ".join(metric.name for metric in plan.described)),
        ("Counters", ", ".join(plan.counters)),
        ("Confidence", f"{100 * plan.level:g} % for all verdicts together"),
        ("Correction", plan.correction),
        ("Smallest effect that matters", effect_band(plan.smallest_effect)),
        ("Blocks to see it", _needed(plan)),
        ("Precision", precision),
    )


def _needed(plan: PlannedStudy) -> str:
    texts = [
        f"{f'about {number(need.blocks)}' if need.blocks else 'very many'} if runs scatter by {need.run_percent:g} %"
        for need in plan.needed
    ]
    measure = "" if plan.clock == "virtual" else " (ajuste doctor measures it here)"
    return f"{', '.join(texts)}{measure}" if texts else ""
