"""What a study would do, told without doing it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from ajuste.analysis.results import configurations
from ajuste.analysis.verdict import family
from ajuste.catalogue.loader import Catalogue
from ajuste.design.blocks import block
from ajuste.model.plan import Command, Write, location_words
from ajuste.report.planned import (
    PlannedBudget,
    PlannedCommand,
    PlannedConfiguration,
    PlannedStudy,
    PlannedWrite,
)
from ajuste.study.resolved import ResolvedConfiguration, ResolvedStudy


def planned_study(resolved: ResolvedStudy, catalogue: Catalogue) -> PlannedStudy:
    """Every write, command and trial of ``resolved``: the trials of the blocks that are run in any case."""
    study, target = resolved.study, resolved.study.target
    made = configurations(resolved)
    group = family(made, resolved.deciding, study.analysis.confidence)
    blocks = range(study.design.warm_up + study.budget.min_blocks)
    units = {f.name: catalogue.tunables[f.name].unit for f in resolved.factors if f.name in catalogue.tunables}
    cpus = "1 CPU" if target.cpus == 1 else f"{target.cpus} CPUs"
    return PlannedStudy(
        study=study.name,
        title=study.title or study.name,
        question=study.question,
        target=f"a virtual machine with {' or '.join(study.kernels)}, {cpus}, {target.memory_mib} MiB",
        clock=target.clock,
        seed=study.design.seed,
        factors=resolved.factors,
        units={name: unit for name, unit in units.items() if unit},
        configurations=tuple(_configuration(c, several=len(study.kernels) > 1) for c in resolved.configurations),
        once=tuple(
            _command(role, command, 1)
            for role, commands in (("setup", resolved.setup), ("cleanup", resolved.cleanup))
            for command in commands
        ),
        trials=tuple(
            slot
            for number in blocks
            for slot in block(number, resolved.names, study.design.seed, warm_up=study.design.warm_up)
        ),
        budget=PlannedBudget(
            min_blocks=study.budget.min_blocks,
            max_blocks=study.budget.max_blocks,
            max_minutes=study.budget.max_minutes,
        ),
        warm_up_blocks=study.design.warm_up,
        timeout_s=study.workload.timeout_s,
        settle_s=study.workload.settle_s,
        deciding=resolved.deciding,
        described=resolved.described,
        counters=resolved.counters,
        level=study.analysis.confidence,
        smallest_effect=study.analysis.smallest_effect,
        correction=group.describe(len(made) - 1, len(resolved.deciding)),
        notes=resolved.notes,
    )


def _configuration(resolved: ResolvedConfiguration, *, several: bool) -> PlannedConfiguration:
    own = resolved.configuration
    return PlannedConfiguration(
        name=own.name,
        levels=own.levels,
        baseline=own.baseline,
        target=resolved.kernel if several else "",
        writes=tuple(_write(write) for write in resolved.writes),
        kernel_arguments=resolved.kernel_arguments,
        commands=(
            *(_command("before it", command, 1) for command in resolved.before),
            _command("workload", resolved.workload, 1),
            *_background(resolved.background),
            *(_command("after it", command, 1) for command in resolved.after),
        ),
    )


def _write(write: Write) -> PlannedWrite:
    location = write.location
    where = location_words(location)
    return PlannedWrite(tunable=write.tunable, where=where, value=write.value)


def _background(commands: Iterable[Command]) -> Iterable[PlannedCommand]:
    for command, copies in groupby(commands):
        yield _command("background", command, len(list(copies)))


def _command(role: str, command: Command, count: int) -> PlannedCommand:
    attributes = command.attributes.model_dump(mode="json", exclude_none=True)
    attributes |= attributes.pop("cgroup_limits", {})
    return PlannedCommand(
        role=role,
        argv=command.argv,
        attributes={name: _text(value) for name, value in attributes.items()},
        environment=command.environment,
        directory=command.directory,
        count=count,
    )


def _text(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
