"""Plans: everything a study would do, without doing it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import PurePosixPath
from typing import Final

from ajuste.analysis.results import configurations, effects
from ajuste.analysis.verdict import family
from ajuste.catalogue.loader import Catalogue
from ajuste.model.plan import Command, Scratch, location_words
from ajuste.model.relevance import NoChance
from ajuste.model.trial import KERNEL_FACTOR, Configuration
from ajuste.model.wording import count_of
from ajuste.report.plan import (
    PlannedBudget,
    PlannedCommand,
    PlannedConfiguration,
    PlannedNeed,
    PlannedStudy,
    PlannedWrite,
)
from ajuste.run.runner import schedule_of
from ajuste.run.schedule import TrialHistory
from ajuste.study.explain import design_words
from ajuste.study.factors import canonical
from ajuste.study.named import LOOP
from ajuste.study.resolved import ResolvedConfiguration, ResolvedStudy
from ajuste.study.schema import Study
from ajuste.study.site import SERVICE
from ajuste_stats.decision import blocks_to_decide
from ajuste_stats.precision import blocks_needed, pair_variance
from ajuste_stats.sign_intervals import fewest_blocks

RUN_PERCENTS: Final = (1.0, 3.0, 10.0)
"""Scatter of single runs in percent, on a quiet, an ordinary and a busy machine."""


def planned_study(
    resolved: ResolvedStudy,
    catalogue: Catalogue,
    current: Mapping[str, str] | None = None,
    user: str = "",
    no_chance: Sequence[NoChance] = (),
    risks: Sequence[str] = (),
) -> PlannedStudy:
    """Return every write, command and trial of ``resolved``, up to the minimum number of blocks.

    On a host, ``current`` are the present values of tunables, and ``user`` is the default user of commands.
    ``no_chance`` are factors that cannot matter, ``risks`` what the person has to accept.
    """
    study, target = resolved.study, resolved.study.target
    made = configurations(resolved)
    schedule, blocks = schedule_of(resolved, TrialHistory()), range(study.design.warm_up + study.budget.min_blocks)
    names = {factor.name: canonical(factor.name, catalogue).partition("[")[0] for factor in resolved.factors}
    units = {name: catalogue.tunables[known].unit for name, known in names.items() if known in catalogue.tunables}
    now = current or {}
    return PlannedStudy(
        study=study.name,
        title=study.title or study.name,
        question=study.question,
        target=_place(study),
        clock=target.clock,
        paced_by=resolved.paced_by.name if resolved.paced_by else "",
        seed=study.design.seed,
        factors=resolved.factors,
        units={name: unit for name, unit in units.items() if unit},
        configurations=tuple(
            _configuration(c, now, user, several=len(study.kernels) > 1) for c in resolved.configurations[: len(made)]
        ),
        once=tuple(
            _command(role, command, 1, user)
            for role, commands in (("setup", resolved.setup), ("cleanup", resolved.cleanup))
            for command in commands
            if not _serves(command)
        ),
        trials=tuple(slot for number in blocks for slot in schedule.block(number)),
        design=design_words(study, made),
        budget=PlannedBudget(
            min_blocks=study.budget.min_blocks,
            max_blocks=study.budget.max_blocks,
            max_minutes=study.budget.max_minutes,
        ),
        warm_up_blocks=study.design.warm_up,
        timeout_s=study.workload.timeout_s,
        settle_s=study.workload.settle_s,
        samplers=resolved.samplers,
        observe_s=study.workload.observe_s,
        deciding=resolved.deciding,
        described=resolved.described,
        counters=resolved.counters,
        level=study.analysis.confidence,
        smallest_effect=study.analysis.smallest_effect,
        precision=study.analysis.precision,
        correction=schedule.correction or _correction(resolved),
        needed=_needed(resolved, family(made, resolved.deciding, study.analysis.confidence).alpha),
        kernel_arguments=target.kernel_arguments,
        modules=(*target.modules, *resolved.modules),
        disk=_disk(study),
        builds=tuple(shlex.join(scheduler.build) for scheduler in study.schedulers if scheduler.build),
        notes=(
            *(f"requires --accept-risk: {risk}" for risk in risks),
            *(factor.warning for factor in no_chance),
            *_too_few_blocks(resolved),
            *_looked_at(study),
            *_further(resolved, made),
            *resolved.notes,
        ),
    )


def _needed(resolved: ResolvedStudy, alpha: float) -> tuple[PlannedNeed, ...]:
    # Only for means of ratios: other effects depend on more than the scatter of runs.
    if len(resolved.configurations) < 2 or not any(m.scale == "ratio" and not m.quantile for m in resolved.deciding):
        return ()
    if resolved.study.design.judges_effects:
        return ()
    effect = resolved.study.analysis.smallest_effect
    return tuple(
        PlannedNeed(run_percent=percent, blocks=blocks_needed(effect, pair_variance(percent / 100), alpha))
        for percent in RUN_PERCENTS
    )


def _too_few_blocks(resolved: ResolvedStudy) -> tuple[str, ...]:
    study = resolved.study
    if study.design.judges_effects or all(metric.quantile for metric in resolved.deciding):
        return ()
    compared = family(configurations(resolved), resolved.deciding, study.analysis.confidence)
    least, most = fewest_blocks(compared.alpha), study.budget.max_blocks
    if not compared.comparisons:
        return ()
    if most >= least:
        all_verdicts = blocks_to_decide(compared.alpha)
        equivalent = (
            f"No verdict can be equivalent: {count_of(most, 'block')} at most, and it needs {all_verdicts} trials of "
            "each configuration."
        )
        return () if most >= all_verdicts else (equivalent,)
    comparisons = "1 comparison" if compared.comparisons == 1 else f"{compared.comparisons} comparisons at once"
    nothing = "No verdict can come" if len(study.factors) < 2 else "No verdict on a single configuration can come"
    return (f"{nothing}: {count_of(most, 'block')} at most, and {comparisons} need {least} or more.",)


def _looked_at(study: Study) -> tuple[str, ...]:
    by_kernel = next((factor.prove for factor in study.factors if factor.name == KERNEL_FACTOR), {})
    claimed = [
        ", ".join(study.target.prove),
        *(f"{kernel}: {', '.join(claims)}" for kernel, claims in by_kernel.items()),
    ]
    claims = "; ".join(filter(None, claimed))
    features = (f"Before the first trial, each kernel boots to check its features: {claims}.",) if claims else ()
    topology = ("Before the first trial, each kernel boots to check that it shows the topology.",)
    return features + (topology if study.target.topology else ())


def _further(resolved: ResolvedStudy, made: Sequence[Configuration]) -> tuple[str, ...]:
    # An ablation has more combinations than a plan can list.
    more = len(resolved.configurations) - len(made)
    return (f"Blocks also hold combinations of these lines, {more} in all.",) if more else ()


def _correction(resolved: ResolvedStudy) -> str:
    study, made = resolved.study, configurations(resolved)
    if study.design.combine == "screening":
        return effects(resolved, ()).correction
    group = family(made, resolved.deciding, study.analysis.confidence)
    return group.describe(len(resolved.deciding))


def _place(study: Study) -> str:
    target = study.target
    if target.on_host:
        return "this machine"
    cpus = count_of(target.cpus, "CPU")
    where = f" ({target.topology.in_words})" if target.topology else ""
    nodes = f" on {len(target.nodes)} nodes" if target.nodes else ""
    return f"a virtual machine with {' or '.join(study.kernels)}, {cpus}{where}, {target.memory_mib} MiB{nodes}"


def _disk(study: Study) -> str:
    if study.disk is None:
        return ""
    made = study.target.on_host and study.disk.device.startswith(LOOP)
    return f"{f'a loop device of {study.disk.size_mib} MiB' if made else study.disk.device}, may be overwritten"


def _configuration(
    resolved: ResolvedConfiguration, now: Mapping[str, str], user: str, *, several: bool
) -> PlannedConfiguration:
    configuration = resolved.configuration
    return PlannedConfiguration(
        name=configuration.name,
        levels=configuration.levels,
        baseline=configuration.baseline,
        target=(resolved.kernel if several else "") or (resolved.boot.kernel if resolved.boot else ""),
        writes=tuple(
            PlannedWrite(
                tunable=write.tunable,
                where=location_words(write.location),
                value=write.value,
                now=now.get(write.tunable, ""),
            )
            for write in resolved.writes
        ),
        kernel_arguments=resolved.kernel_arguments or (resolved.boot.words if resolved.boot else ()),
        modules=resolved.modules,
        commands=(
            *((_file_system(resolved.scratch, user),) if resolved.scratch else ()),
            *(_command(f"service {service.name}", service.command, 1, user) for service in resolved.services),
            *(_command("before it", command, 1, user) for command in resolved.before if not _serves(command)),
            _command("workload", resolved.workload, 1, user),
            *(
                _command("background", command, len(list(copies)), user)
                for command, copies in groupby(resolved.background)
            ),
            *(_command("after it", command, 1, user) for command in resolved.after if not _serves(command)),
        ),
    )


def _file_system(scratch: Scratch, user: str) -> PlannedCommand:
    # The agent formats and mounts it.
    size = f"{scratch.size_bytes >> 20} MiB in {scratch.directory}" if not scratch.device else ""
    how = {"mounted at": scratch.mount, "with": scratch.options, "on a nameless file of": size}
    return PlannedCommand(
        role="file system",
        argv=(*scratch.make, scratch.device or f"{LOOP}…"),
        attributes={name: text for name, text in how.items() if text},
        user="root" if user else "",
    )


def _serves(command: Command) -> bool:
    # A service is listed with its own command.
    return PurePosixPath(command.argv[0]).name == SERVICE


def _command(role: str, command: Command, count: int, user: str) -> PlannedCommand:
    attributes = command.attributes.model_dump(mode="json", exclude_none=True)
    attributes |= attributes.pop("cgroup_limits", {})
    return PlannedCommand(
        role=role,
        argv=command.argv,
        attributes={
            name: ",".join(map(str, value)) if isinstance(value, list) else str(value)
            for name, value in attributes.items()
        },
        environment=command.environment,
        directory=command.directory,
        user=f"user {command.user.uid}" if command.user else user,
        count=count,
    )
