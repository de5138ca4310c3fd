"""Factors: what their levels set, and whether that makes sense: known, set by one factor alone, in range."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, get_args

from ajuste.catalogue.level import check_parameter
from ajuste.catalogue.loader import Catalogue
from ajuste.model.boot import BOOT_PREFIX, check_boot_level, is_boot_name
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelVersion
from ajuste.model.plan import REAL_TIME, Attributes, Location, location_words
from ajuste.model.topology import parse_cpus
from ajuste.model.trial import COMMAND_FACTOR, KERNEL_FACTOR
from ajuste.model.tunable import SERVICE_PREFIX, AttributeName, Marker, Tunable, marker_words
from ajuste.model.workload import ServiceKind, WorkloadKind
from ajuste.study.job import AttributesTable, ServiceTable, WorkloadTable
from ajuste.study.problem import KeyPath, Problem, nearest
from ajuste.study.schema import FactorTable, Study

# What the levels of a factor set: the one thing that the factor is named after, or several at once.


WORKLOAD_PREFIX = "workload."

# Key in a factor's settings: words for the kernel's command line, separated by blanks.
KERNEL_ARGUMENTS = "kernel_arguments"

# The tunable that names a scheduler written in BPF, which only a guest can have.
SCHED_EXT = "sched_ext"

# Level of that tunable for the kernel's own scheduler.
NO_SCHEDULER = "none"


def set_by(factor: FactorTable, level: str) -> dict[str, str]:
    """Return what ``level`` of ``factor`` sets, by name, with the level of each as it was given."""
    return factor.settings[level] if factor.settings else {factor.name: level}


def names_set(factor: FactorTable) -> tuple[str, ...]:
    """Return the names that the levels of ``factor`` set, each once."""
    return tuple(dict.fromkeys(name for level in factor.levels for name in set_by(factor, level)))


def workload_parameter(name: str) -> str | None:
    """Return the workload's parameter that ``name`` means, if it does."""
    return name.removeprefix(WORKLOAD_PREFIX) if name.startswith(WORKLOAD_PREFIX) else None


@dataclass(frozen=True)
class ServicePart:
    """An attribute of a service's process, or one of the server's own settings, that a factor varies. ``service`` is
    empty for the only one.
    """

    service: str
    name: str

    @property
    def is_attribute(self) -> bool:
        return self.name in get_args(AttributeName)


def service_part(name: str, workload: WorkloadTable) -> ServicePart | None:
    """Return what ``service.SERVICE.NAME`` means, or ``service.NAME`` of the only service; else ``None``. The name of a
    setting may have dots.
    """
    if not name.startswith(SERVICE_PREFIX):
        return None
    words = name.removeprefix(SERVICE_PREFIX)
    service, _, rest = words.partition(".")
    if rest and service in workload.service_names:
        return ServicePart(service, rest)
    service, _, last = words.rpartition(".")
    return ServicePart(service, last) if last in get_args(AttributeName) else ServicePart("", words)


def service_called(part: ServicePart, workload: WorkloadTable) -> ServiceTable:
    """Return the service that a checked factor varies."""
    return next(table for table in workload.services if not part.service or table.called == part.service)


def service_kind(table: ServiceTable, catalogue: Catalogue) -> ServiceKind | None:
    """Return how a service takes settings: as its table says, or as the catalogue knows of its program."""
    if table.setting is None:
        return catalogue.service_of(table.command[0])
    return ServiceKind(name="custom", title=table.called, programs=(table.command[0],), setting=table.setting)


# In the command or the environment of a service, what a factor replaces.
SETTING_PLACEHOLDER: Final = re.compile(r"\{(?!(?:port|data)\})([A-Za-z_][A-Za-z0-9_.-]*)\}")


def service_placeholders(table: ServiceTable) -> tuple[str, ...]:
    """Return the names in braces in what a factor can replace, each once: text of a shell's may have some too."""
    words = (*table.command, *table.environment.values())
    return tuple(dict.fromkeys(name for word in words for name in SETTING_PLACEHOLDER.findall(word)))


def is_tunable(name: str) -> bool:
    """Return whether ``name`` must be a tunable of the catalogue, as nothing else is called so."""
    others = (KERNEL_FACTOR, COMMAND_FACTOR, KERNEL_ARGUMENTS)
    return name not in others and not name.startswith((WORKLOAD_PREFIX, SERVICE_PREFIX, BOOT_PREFIX))


def canonical(name: str, catalogue: Catalogue) -> str:
    """Return one name for what has several; ``name`` itself for what is unknown."""
    try:
        return catalogue.find_tunable(name).name if is_tunable(name) else name
    except RequestError:
        return name


def varies(study: Study, name: str) -> bool:
    """Return whether a factor of ``study`` sets ``name``."""
    return any(name in names_set(factor) for factor in study.factors)


# Which tunable a factor really is on a given kernel: itself, or the successor that stands in for it.


@dataclass(frozen=True)
class Knob:
    """A ``tunable`` at ``location`` of a kernel of ``version``. ``replaced`` is the requested one, if another.

    ``values`` are the levels as this kernel has them, by how the study gives them.
    """

    tunable: Tunable
    location: Location | Marker
    version: KernelVersion
    replaced: Tunable | None = None
    values: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def where(self) -> str:
        """Return the place in words."""
        if isinstance(self.location, Marker):
            return marker_words(self.location)
        return location_words(self.location)


def knob(tunable: Tunable, version: KernelVersion, catalogue: Catalogue, *, successor: bool) -> Knob:
    """Return the knob for ``tunable`` on a kernel of ``version``.

    Raises RequestError that says which kernels have it and what this one has instead; with ``successor`` the nearest
    successor that this kernel has is taken instead.
    """
    heir = _heir(tunable, version, catalogue)
    if heir is None or tunable.place_in(version) is not None:
        return Knob(tunable, catalogue.locate(tunable, version), version)
    if successor:
        return Knob(heir, catalogue.locate(heir, version), version, tunable)
    try:
        catalogue.locate(tunable, version)
    except RequestError as failure:
        raise RequestError(
            failure.message,
            hint=f"vary its successor {heir.name}, a related but different tunable, or set successor = true",
        ) from None
    raise AssertionError(f"{tunable.name} is in no place of Linux {version}, and yet it was located")


def _heir(tunable: Tunable, version: KernelVersion, catalogue: Catalogue) -> Tunable | None:
    # The first tunable down the line of successors that a kernel of `version` has.
    seen, name = {tunable.name}, tunable.successor
    while name and name not in seen:
        heir = catalogue.tunables[name]
        if heir.place_in(version) is not None:
            return heir
        seen.add(name)
        name = heir.successor
    return None


# An ablation as a study: each factor with two levels is a line of the profile, off or on.


def profile_lines(study: Study) -> tuple[FactorTable, ...]:
    """Return the factors that are lines."""
    return tuple(factor for factor in study.factors if len(factor.levels) > 1)


def line_sets(study: Study) -> dict[str, dict[str, str]]:
    """Return what each line sets, by its name."""
    return {
        line.name: set_by(line, next(level for level in line.levels if level != line.baseline_level))
        for line in profile_lines(study)
    }


# How a process is run.


def process_attributes(table: AttributesTable, varied: Mapping[str, str]) -> Attributes:
    """Return how a process is run: the study's table, but for what a configuration varies.

    A priority belongs to the policies fifo and rr, and is left out under the others.
    """
    values = {name: value for name, value in table.model_dump().items() if value is not None} | dict(varied)
    policy = values.get("policy")
    if policy not in REAL_TIME:
        values.pop("priority", None)
    elif "priority" not in values:
        values["priority"] = 1
    if "affinity" in values:
        values["affinity"] = parse_cpus(str(values["affinity"]))
    return Attributes.model_validate(values)


# Parser of a kernel spec. Raises RequestError for what is none.
ParseKernel = Callable[[str], object]

# Parser of a level: from how it was given to how it is written. Raises RequestError.
Accept = Callable[[str], str]


def check_factors(study: Study, catalogue: Catalogue, parse_kernel: ParseKernel) -> Iterator[Problem]:
    """Yield the problems of the factors, each by itself and all together."""
    factors: set[str] = set()
    setter: dict[str, str] = {}
    for index, factor in enumerate(study.factors):
        path: KeyPath = ("factor", index)
        if factor.name in factors:
            yield Problem((*path, "name"), f'the factor "{factor.name}" is given twice; expected different factors')
            continue
        factors.add(factor.name)
        for name in names_set(factor):
            known = canonical(name, catalogue)
            if known in setter:
                where = (*path, "settings") if factor.settings else (*path, "name")
                yield Problem(
                    where, f'"{known}" is also set by the factor "{setter[known]}"; only one factor can set it'
                )
            setter[known] = factor.name
        yield from _factor_problems(path, factor, study, catalogue, parse_kernel)


def _factor_problems(
    path: KeyPath, factor: FactorTable, study: Study, catalogue: Catalogue, parse_kernel: ParseKernel
) -> Iterator[Problem]:
    if factor.settings:
        yield from _settings(path, factor, study, catalogue, parse_kernel)
        yield from _levels(path, factor, str)
        return
    accept = _level_check((*path, "name"), factor.name, study, catalogue, parse_kernel)
    if isinstance(accept, Problem):
        yield accept
    else:
        yield from _levels(path, factor, accept)


def _settings(
    path: KeyPath, factor: FactorTable, study: Study, catalogue: Catalogue, parse_kernel: ParseKernel
) -> Iterator[Problem]:
    # Check what each level of a factor with settings sets.
    if factor.name in (KERNEL_FACTOR, COMMAND_FACTOR) or factor.name.startswith((WORKLOAD_PREFIX, SERVICE_PREFIX)):
        yield Problem((*path, "name"), f'"{factor.name}" is reserved; expected another name for a factor with settings')
    for level, table in factor.settings.items():
        for name, text in table.items():
            where = (*path, "settings", level, name)
            accept = _setting_check(where, name, study, catalogue, parse_kernel)
            if isinstance(accept, Problem):
                yield accept
                continue
            try:
                accept(text)
            except RequestError as failure:
                yield Problem(where, failure.message, failure.hint)


def _setting_check(
    where: KeyPath, name: str, study: Study, catalogue: Catalogue, parse_kernel: ParseKernel
) -> Accept | Problem:
    if name == COMMAND_FACTOR:
        return Problem(where, f"settings cannot contain {name}; make it a separate factor")
    if name == KERNEL_FACTOR and study.target.on_host:
        return Problem(where, 'not supported on the host, which runs the running kernel; use target kind = "vm"')
    if name == KERNEL_ARGUMENTS:
        if study.target.on_host:
            return Problem(where, 'not supported on the host, whose kernel is booted; use target kind = "vm"')
        return _kernel_arguments
    return _level_check(where, name, study, catalogue, parse_kernel)


def _kernel_arguments(text: str) -> str:
    if not text.isprintable() or len(text) > 1000:
        raise RequestError("expected words for the kernel's command line, separated by blanks")
    return text


def _level_check(
    where: KeyPath, name: str, study: Study, catalogue: Catalogue, parse_kernel: ParseKernel
) -> Accept | Problem:
    # Return what accepts or refuses a level of `name`, or why it cannot be varied.
    if name == KERNEL_FACTOR:
        return lambda text: (parse_kernel(text), text)[1]
    if name == COMMAND_FACTOR:
        return _variant_check(where, study)
    if parameter := workload_parameter(name):
        kind = catalogue.workloads.get(study.workload.kind or "")
        if kind is None:
            return Problem(where, "only workloads of the catalogue have parameters; set workload.kind")
        if parameter not in kind.parameters:
            return Problem(where, no_parameter(kind, parameter))
        return lambda text: check_parameter(f"{kind.name}'s {parameter}", kind.parameters[parameter], text)
    if is_boot_name(name):
        if not study.target.on_host:
            return Problem(
                where, "applies only to this machine", 'use target kind = "host", or kernel_arguments of a guest'
            )
        return lambda text: check_boot_level(name, text)
    if part := service_part(name, study.workload):
        return _service_check(where, part, study, catalogue)
    try:
        tunable = catalogue.find_tunable(name)
    except RequestError as failure:
        return Problem(where, failure.message, failure.hint)
    return lambda text: _check_level(tunable, text, study, catalogue)


def _variant_check(where: KeyPath, study: Study) -> Accept | Problem:
    names = [variant.name for variant in study.workload.variants]
    if not names:
        return Problem(
            where,
            'the factor "command" requires variants of the workload',
            "add a [[workload.variant]] for each command",
        )

    def accept(text: str) -> str:
        if text not in names:
            raise RequestError(f'variant "{text}" not found; expected one of {", ".join(names)}')
        return text

    return accept


def _service_check(where: KeyPath, part: ServicePart, study: Study, catalogue: Catalogue) -> Accept | Problem:
    names, first = study.workload.service_names, part.name.partition(".")[0]
    if not names:
        return Problem(where, "this study has no service", "add a [[workload.service]], or --service COMMAND")
    if part.service and part.service not in names:
        near = nearest(part.service, names) or f"; expected one of {', '.join(names)}"
        return Problem(where, f'service "{part.service}" not found{near}')
    if not part.service and first != part.name and (near := nearest(first, names)):
        return Problem(where, f'service "{first}" not found{near}')
    if not part.service and len(names) > 1:
        some = ", ".join(f"{SERVICE_PREFIX}{service}.{part.name}" for service in names)
        return Problem(where, f"this study has several services; expected one of {some}")
    if part.is_attribute:
        tunable = catalogue.find_tunable(part.name)
        return lambda text: _check_level(tunable, text, study, catalogue)
    return _service_setting(where, part.name, service_called(part, study.workload), catalogue)


def _service_setting(where: KeyPath, name: str, table: ServiceTable, catalogue: Catalogue) -> Accept | Problem:
    kind, placeholders = service_kind(table, catalogue), service_placeholders(table)
    if name in placeholders:
        return lambda text: _setting_level(name, text, "(?s).*")
    if kind is not None and re.fullmatch(kind.names, name):
        return lambda text: _setting_level(name, text, kind.values)
    if near := nearest(name, (*placeholders, *get_args(AttributeName))):
        return Problem(where, f'"{table.called}" has no setting or attribute "{name}"{near}')
    if kind is not None:
        return Problem(
            where, f'"{name}" is not the name of a setting of {kind.title}; expected one such as {kind.example}'
        )
    return Problem(
        where,
        f'"{table.called}" has no {{{name}}} in its command, and the catalogue does not know its settings',
        f'write the argument in the command, such as "{table.command[0]} --{name} {{{name}}}"',
    )


def _setting_level(name: str, text: str, values: str) -> str:
    if not text.isprintable() or len(text) > 1000:
        raise RequestError(f"{SERVICE_PREFIX}{name} = {text!r}: expected up to 1,000 printable characters")
    if not re.fullmatch(values, text):
        raise RequestError(
            f"{SERVICE_PREFIX}{name} = {text!r}: expected one value, without what begins another setting"
        )
    return text


def no_parameter(kind: WorkloadKind, name: str) -> str:
    """Return the message that a workload has no such parameter, with the nearest that it has."""
    known = list(kind.parameters)
    near = nearest(name, known) or (f"; expected one of {', '.join(known)}" if known else "; it has none")
    return f'"{kind.name}" has no parameter "{name}"{near}'


def _check_level(tunable: Tunable, text: str, study: Study, catalogue: Catalogue) -> str:
    level = catalogue.check_level(tunable, text)
    if tunable.name == "affinity":
        check_cpus(level, study)
    return level


def check_cpus(text: str, study: Study) -> None:
    """Raise RequestError unless the target has these CPUs.

    Which CPUs a host has is only known there; ``study.resolve`` looks.
    """
    if study.target.on_host:
        return
    beyond = [cpu for cpu in parse_cpus(text) if cpu >= study.target.cpus]
    if beyond:
        last = study.target.cpus - 1
        raise RequestError(f'found CPU {beyond[0]} in "{text}"; expected CPUs between 0 and {last}')


def check_attributes(path: KeyPath, attributes: AttributesTable, study: Study, prefix: str = "") -> Iterator[Problem]:
    """Yield the problems of a process's attributes. Factors that vary it are called so, with ``prefix`` before it."""
    if attributes.affinity is not None:
        try:
            check_cpus(attributes.affinity, study)
        except RequestError as failure:
            yield Problem((*path, "affinity"), failure.message)
    varied = varies(study, f"{prefix}policy")
    if attributes.priority is not None and attributes.policy not in REAL_TIME and not varied:
        yield Problem((*path, "priority"), 'priority requires policy = "fifo" or "rr"')


def _levels(path: KeyPath, factor: FactorTable, accept: Accept) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, text in enumerate(factor.levels):
        try:
            level = accept(text)
        except RequestError as failure:
            yield Problem((*path, "levels", index), failure.message, failure.hint)
            continue
        if level in seen:
            yield Problem((*path, "levels", index), f'the level "{text}" is given twice; expected different levels')
        seen.add(level)
    if factor.baseline is None or factor.baseline in factor.levels:
        return
    try:
        known = accept(factor.baseline) in seen
    except RequestError:
        known = False
    if not known:
        levels = ", ".join(factor.levels)
        yield Problem((*path, "baseline"), f'found "{factor.baseline}", which is not a level; expected one of {levels}')
