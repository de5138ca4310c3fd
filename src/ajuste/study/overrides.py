"""The same study with other parameters, levels, places or time, as chosen on a command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Literal

from pydantic import ValidationError

from ajuste.catalogue.level import check_parameter
from ajuste.catalogue.loader import Catalogue, absolute_machine
from ajuste.model.boot import DEFAULT_PER_BOOT
from ajuste.model.error import Place, RequestError
from ajuste.model.metric import split_percentile
from ajuste.model.topology import Topology
from ajuste.model.trial import KERNEL_FACTOR
from ajuste.outputs.base import MODELLED_METRICS, MODELLED_TIME
from ajuste.study.answerable import check_boots
from ajuste.study.check import check
from ajuste.study.command_line.request import (
    TOPOLOGY_HINT,
    Request,
    block_range,
    package_names,
    read_topology,
    seconds,
    share,
    wrong,
)
from ajuste.study.command_line.study import varied
from ajuste.study.factors import (
    KERNEL_ARGUMENTS,
    WORKLOAD_PREFIX,
    ParseKernel,
    canonical,
    names_set,
    no_parameter,
    varies,
)
from ajuste.study.job import DiskTable
from ajuste.study.metrics import check_modelled, check_precision
from ajuste.study.problem import nearest
from ajuste.study.ranges import with_levels
from ajuste.study.schema import AnalysisTable, FactorTable, Study
from ajuste.study.target import MachineTable, TargetTable


def overridden(study: Study, request: Request, catalogue: Catalogue) -> Study:
    """Return ``study`` with what ``request`` says of its guests, blocks, boots and limits. Raises RequestError."""
    if request.machine is not None:
        study = with_machine(study, request.machine, catalogue)
    if request.package:
        study = with_packages(study, request.package)
    if request.guest_cpus is not None:
        study = with_cpus(study, request.guest_cpus, catalogue)
    if request.topology is not None:
        study = with_topology(study, request.topology, catalogue)
    if request.precision is not None:
        study = with_precision(study, request.precision)
    if request.blocks is not None:
        fewest, most = block_range("--blocks", request.blocks)
        limits = {"min_blocks": fewest, "max_blocks": most}
        study = study.model_copy(update={"budget": study.budget.model_copy(update=limits)})
    if request.max_time is not None:
        study = with_time(study, seconds("--max-time", request.max_time))
    if request.reboots or request.reboot_each is not None:
        study = _with_boots(study, request.reboot_each)
    return study


def with_parameters(study: Study, parameters: Mapping[str, str], catalogue: Catalogue) -> Study:
    """Return ``study`` with these workload ``parameters`` instead of its own, on whatever target it has.

    Raises RequestError for what the workload does not have or cannot be, and for what a factor varies.
    """
    kind = catalogue.workloads.get(study.workload.kind or "")
    for name, value in parameters.items():
        place = Place(f"--parameter {name}={value}")
        if kind is None:
            raise RequestError(
                "only workloads of the catalogue have parameters; this study runs a custom command", place=place
            )
        if name not in kind.parameters:
            raise RequestError(no_parameter(kind, name), place=place)
        if varies(study, WORKLOAD_PREFIX + name):
            raise RequestError(f"{name} is a factor of {study.name}; change its levels in the study", place=place)
        try:
            check_parameter(f"{kind.name}'s {name}", kind.parameters[name], value)
        except RequestError as failure:
            raise failure.at(place) from None
    workload = study.workload.model_copy(update={"parameters": {**study.workload.parameters, **parameters}})
    return study.model_copy(update={"workload": workload})


def with_time(study: Study, most_s: float) -> Study:
    """Return ``study`` with a limit of so many seconds."""
    return study.model_copy(update={"budget": study.budget.model_copy(update={"max_minutes": most_s / 60})})


def _with_boots(study: Study, each: int | None) -> Study:
    # `study` with so many blocks in each boot of this machine, or as many as it says itself. Raises RequestError.
    blocks = each or study.blocks_per_boot or DEFAULT_PER_BOOT
    changed = study.model_copy(update={"design": study.design.model_copy(update={"blocks_per_boot": blocks})})
    for problem in check_boots(changed):
        raise RequestError(problem.message, hint=problem.hint or "remove --reboots", place=Place("--reboots"))
    return changed


def with_precision(study: Study, text: str) -> Study:
    """Return ``study`` until its intervals are so narrow. Raises RequestError."""
    option = "--precision"
    value = share(option, text)
    if not 0 < value <= 10:
        raise wrong(option, text, "a share above 0, such as 2%", "see ajuste run --help")
    changed = study.model_copy(update={"analysis": study.analysis.model_copy(update={"precision": value})})
    for problem in check_precision(changed):
        raise RequestError(problem.message, hint="remove the option", place=Place(f"{option} {text}"))
    return changed


def with_machine(study: Study, name: str, catalogue: Catalogue) -> Study:
    """Return ``study`` with another machine to model, by its name or file. Raises RequestError.

    The study describes the modelled time then, too.
    """
    place = Place(f"--machine {name}")
    _require_guest(study, place)
    machine = MachineTable(model=absolute_machine(name))
    target = study.target.model_copy(update={"machine": machine})
    analysis = study.analysis
    # Studies that name nothing to describe describe all they have.
    if analysis.describe is not None and MODELLED_TIME not in (*analysis.metrics, *analysis.describe):
        analysis = analysis.model_copy(update={"describe": (*analysis.describe, MODELLED_TIME)})
    changed = study.model_copy(update={"target": target, "analysis": analysis})
    for problem in check_modelled(changed, catalogue):
        raise RequestError(problem.message, hint=problem.hint, place=place)
    return changed


def _require_guest(study: Study, place: Place) -> None:
    if study.target.on_host:
        raise RequestError("applies only to guests", hint="remove the option, or add --target vm", place=place)


def with_cpus(study: Study, cpus: int, catalogue: Catalogue) -> Study:
    """Return ``study`` with so many CPUs of its guests. Raises RequestError."""
    hint = "give another number, or --topology where the study has one"
    return _with_target(study, {"cpus": cpus}, Place(f"--guest-cpus {cpus}"), hint, catalogue)


def with_topology(study: Study, text: str, catalogue: Catalogue) -> Study:
    """Return ``study`` with another topology of its guests, and so many CPUs. Raises RequestError."""
    place = Place(f"--topology {text}")
    table = read_topology(text)
    try:
        topology = Topology.model_validate(table)
    except ValidationError as failure:
        raise RequestError(_first_message(failure), hint=TOPOLOGY_HINT, place=place) from None
    return _with_target(study, {"topology": topology, "cpus": topology.cpus}, place, TOPOLOGY_HINT, catalogue)


def _with_target(study: Study, changes: Mapping[str, Any], place: Place, hint: str, catalogue: Catalogue) -> Study:
    _require_guest(study, place)
    try:
        target = TargetTable.model_validate({**study.target.model_dump(), **changes})
    except ValidationError as failure:
        raise RequestError(_first_message(failure), hint=hint, place=place) from None
    changed = study.model_copy(update={"target": target})
    for problem in check(changed, catalogue):
        raise RequestError(problem.message, hint=problem.hint, place=place)
    return changed


def _first_message(failure: ValidationError) -> str:
    return failure.errors()[0]["msg"].removeprefix("Value error, ")


def with_packages(study: Study, packages: Sequence[str]) -> Study:
    """Return ``study`` with more Debian ``packages`` for its guests; each can be a list between commas. Raises
    RequestError.
    """
    place = Place(" ".join(f"--package {text}" for text in packages))
    _require_guest(study, place)
    names = (*study.target.packages, *package_names(packages))
    target = study.target.model_dump(by_alias=True, exclude_unset=True) | {"packages": tuple(dict.fromkeys(names))}
    return study.model_copy(update={"target": TargetTable.model_validate(target)})


# The same study with other levels of its factors, as chosen on a command line.


def with_factor_levels(
    study: Study, assignments: Sequence[str], catalogue: Catalogue, parse_kernel: ParseKernel
) -> Study:
    """Return ``study`` with levels by ``assignments``, each ``FACTOR=LEVEL,LEVEL`` or ``FACTOR=LOW..HIGH``.

    A baseline that is no longer among them is replaced by the first. Raises RequestError.
    """
    for text in assignments:
        place = Place(f"--set {text}")
        name, _, levels = (part.strip() for part in text.partition("="))
        if not (name and levels):
            raise RequestError("expected FACTOR=LEVEL,LEVEL, such as nice=0,10", place=place)
        index = _factor_index(study, canonical(name, catalogue), place)
        factor = _with_new_levels(study.factors[index], levels, place, catalogue)
        factors = (*study.factors[:index], factor, *study.factors[index + 1 :])
        study, problems = with_levels(study.model_copy(update={"factors": factors}), catalogue)
        for problem in (*problems, *check(study, catalogue, parse_kernel)):
            raise RequestError(problem.message, hint=problem.hint, place=place)
    return study


def _factor_index(study: Study, name: str, place: Place) -> int:
    names = [factor.name for factor in study.factors]
    if name not in names:
        near = nearest(name, names) or f"; expected one of {', '.join(names) or 'none'}"
        hint = f"see its factors with ajuste studies show {study.name}"
        raise RequestError(f"{study.name} has no factor {name!r}{near}", hint=hint, place=place)
    return names.index(name)


def _with_new_levels(factor: FactorTable, text: str, place: Place, catalogue: Catalogue) -> FactorTable:
    # The factor with the levels in `text`; names of settings may have commas, and stand between semicolons then.
    if factor.settings:
        chosen = [level.strip() for level in text.split(";" if ";" in text or text in factor.settings else ",")]
        if unknown := [level for level in chosen if level not in factor.settings]:
            known = "; ".join(factor.settings)
            raise RequestError(f"{factor.name} has no level {unknown[0]!r}; expected some of {known}", place=place)
        table: dict[str, Any] = {"settings": {level: factor.settings[level] for level in chosen}}
    else:
        table = varied(factor.name, str(place), text, catalogue).table
        chosen = table["levels"] if isinstance(table["levels"], list) else []
    if factor.baseline in chosen:
        table["baseline"] = factor.baseline
    table["prove"] = {level: claims for level, claims in factor.prove.items() if level in chosen}
    try:
        return FactorTable.model_validate(
            {**table, "name": factor.name, "in_order": factor.in_order, "successor": factor.successor}
        )
    except ValidationError as failure:
        message = failure.errors()[0]["msg"].removeprefix("Value error, ")
        raise RequestError(message, hint=f"write {factor.name}=LEVEL,LEVEL", place=place) from None


# The same study without some levels of its factors, as chosen on a command line.


def without_levels(study: Study, assignments: Sequence[str]) -> Study:
    """Return ``study`` without the levels in ``assignments``, each ``FACTOR=LEVEL`` as the study has them.

    Raises RequestError for what is no level of the study, and for the baseline.
    """
    for text in assignments:
        study = _without(study, text)
    return study


def _without(study: Study, text: str) -> Study:
    place = Place(f"--without {text}")
    name, equals, level = (part.strip() for part in text.partition("="))
    if not (equals and name and level):
        raise RequestError("expected FACTOR=LEVEL, such as nice=10", place=place)
    index = _factor_index(study, name, place)
    factor = study.factors[index]
    if level not in factor.levels:
        raise RequestError(f"{name} has no level {level!r}; expected one of {'; '.join(factor.levels)}", place=place)
    if level == factor.baseline_level:
        raise RequestError("cannot leave out the baseline; expected another level", place=place)
    factors = (*study.factors[:index], _less(factor, level), *study.factors[index + 1 :])
    return study.model_copy(update={"factors": factors})


def _less(factor: FactorTable, level: str) -> FactorTable:
    return factor.model_copy(
        update={
            "levels": tuple(other for other in factor.levels if other != level),
            "settings": {name: settings for name, settings in factor.settings.items() if name != level},
            "prove": {name: claims for name, claims in factor.prove.items() if name != level},
        }
    )


# The same study with other names for its kernels.


def with_kernels(study: Study, names: Mapping[str, str]) -> Study:
    """Return ``study`` with each kernel called as in ``names``."""
    kernel = study.target.kernel
    factors = tuple(_with_kernels(factor, names) for factor in study.factors)
    background = tuple(
        load.model_copy(update={"when": _named(load.when, names)}) if KERNEL_FACTOR in load.when else load
        for load in study.workload.background
    )
    return study.model_copy(
        update={
            "target": study.target.model_copy(update={"kernel": names.get(kernel, kernel) if kernel else None}),
            "factors": factors,
            "workload": study.workload.model_copy(update={"background": background}),
        }
    )


def _with_kernels(factor: FactorTable, names: Mapping[str, str]) -> FactorTable:
    if factor.name != KERNEL_FACTOR:
        settings = {
            level: {**settings, KERNEL_FACTOR: names.get(settings[KERNEL_FACTOR], settings[KERNEL_FACTOR])}
            if KERNEL_FACTOR in settings
            else settings
            for level, settings in factor.settings.items()
        }
        return factor.model_copy(update={"settings": settings})
    baseline = factor.baseline
    return factor.model_copy(
        update={
            "levels": tuple(names.get(level, level) for level in factor.levels),
            "baseline": names.get(baseline, baseline) if baseline else None,
            "prove": {names.get(level, level): claims for level, claims in factor.prove.items()},
        }
    )


def _named(when: Mapping[str, tuple[str, ...]], names: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    return {**when, KERNEL_FACTOR: tuple(names.get(level, level) for level in when[KERNEL_FACTOR])}


# The same study elsewhere: one for a guest on this machine, or one for this machine in a guest.


Where = Literal["vm", "host"]


def relocated(study: Study, where: Where, disk: str = "") -> Study:
    """Return ``study`` with a target of that kind. Raises RequestError where it cannot be carried out there.

    On this machine the kernel, clock and size of the guest mean nothing, and neither do the guest's own devices: a file
    system is made on a loop device instead, and fixed settings of the device are left out. The workload has its
    parameters for this machine, and a study of a disk has ``disk``, by the kernel's name for it. What only a modelled
    machine says is left out.
    """
    if study.target.kind == where:
        return study
    if where == "vm":
        return study.model_copy(update={"target": TargetTable(kind="vm", clock="wall")})
    if study.disk is not None and not disk:
        raise _impossible(study, f"it uses the guest's disk {study.disk.name}")
    return _on_host(_on_disk(study, study.disk, disk) if study.disk is not None else study)


def _on_disk(study: Study, disk: DiskTable, name: str) -> Study:
    # Return `study` of the disk `name` instead of its own `disk`.

    def renamed(text: str) -> str:
        return text.replace(f"[{disk.name}]", f"[{name}]")

    def moved(values: Mapping[str, str]) -> dict[str, str]:
        return {key: f"/dev/{name}" if value == disk.device else value for key, value in values.items()}

    factors = tuple(
        factor.model_copy(
            update={
                "name": renamed(factor.name),
                "settings": {
                    level: {renamed(key): value for key, value in table.items()}
                    for level, table in factor.settings.items()
                },
            }
        )
        for factor in study.factors
    )

    def figure(key: str) -> str:
        return f"{name}.{key.removeprefix(f'{disk.name}.')}" if key.startswith(f"{disk.name}.") else key

    job = study.workload
    samplers = (sampler.model_copy(update={"keys": tuple(map(figure, sampler.keys))}) for sampler in job.samplers)
    timelines = (timeline.model_copy(update={"key": figure(timeline.key)}) for timeline in job.timelines)
    workload = job.model_copy(
        update={
            "parameters": moved(job.parameters),
            "host_parameters": moved(job.host_parameters),
            "samplers": tuple(samplers),
            "timelines": tuple(timelines),
        }
    )
    replaced = disk.model_copy(update={"device": f"/dev/{name}"})
    scratch = study.scratch
    if scratch is not None and scratch.device == disk.device:
        scratch = scratch.model_copy(update={"device": replaced.device})
    return study.model_copy(update={"factors": factors, "workload": workload, "disk": replaced, "scratch": scratch})


def _on_host(study: Study) -> Study:
    scratch = study.scratch
    if scratch is not None and study.disk is not None and scratch.device == study.disk.device:
        device = ""  # A disk of this machine by now.
    else:
        device = PurePosixPath(scratch.device).name if scratch and scratch.device else ""
        scratch = scratch.model_copy(update={"device": None}) if scratch else None
    # Without those that have one level only, for something of that device.
    factors = tuple(
        factor for factor in study.factors if not (device and len(factor.levels) == 1 and f"[{device}]" in factor.name)
    )
    for factor in factors:
        if {KERNEL_FACTOR, KERNEL_ARGUMENTS} & set(names_set(factor)):
            raise _impossible(study, f"it varies the {factor.name} by booting guests")
        if device and any(f"[{device}]" in name for name in names_set(factor)):
            raise _impossible(study, f"it varies a setting of the guest's disk {device}")
    if device and any(key.startswith(f"{device}.") for sampler in study.workload.samplers for key in sampler.keys):
        raise _impossible(study, f"it reads figures of the guest's disk {device}")
    target = TargetTable(kind="host", clock="wall")
    parameters = {**study.workload.parameters, **study.workload.host_parameters}
    workload = study.workload.model_copy(update={"parameters": parameters})
    return study.model_copy(
        update={
            "factors": factors,
            "scratch": scratch,
            "target": target,
            "workload": workload,
            "analysis": _measured(study.analysis),
        }
    )


def _measured(analysis: AnalysisTable) -> AnalysisTable:
    # Without what only a model has; hardware has `branch-misses`, too.

    def without_modelled(names: tuple[str, ...]) -> tuple[str, ...]:
        modelled = set(MODELLED_METRICS) - {"branch-misses"}
        return tuple(name for name in names if split_percentile(name)[0] not in modelled)

    described = None if analysis.describe is None else without_modelled(analysis.describe)
    return analysis.model_copy(update={"metrics": without_modelled(analysis.metrics), "describe": described})


def _impossible(study: Study, why: str) -> RequestError:
    return RequestError(
        f"--target host is not supported by {study.name}: {why}", hint="remove --target to run it in a guest"
    )
