"""What the levels of a factor set: the one thing that the factor is named after, or several at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ajuste.catalogue.loader import Catalogue
from ajuste.design.combinations import of_block, subsets
from ajuste.model.boot import BOOT_PREFIX
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelVersion
from ajuste.model.plan import REAL_TIME, Attributes, Location, location_words
from ajuste.model.topology import parse_cpus
from ajuste.model.trial import COMMAND_FACTOR, KERNEL_FACTOR
from ajuste.model.tunable import SERVICE_PREFIX, Marker, Tunable, marker_words
from ajuste.study.job import AttributesTable
from ajuste.study.resolved import ResolvedStudy
from ajuste.study.schema import FactorTable, Study

WORKLOAD_PREFIX = "workload."

KERNEL_ARGUMENTS = "kernel_arguments"
"""In a factor's settings: words for the kernel's command line, separated by blanks."""

SCHED_EXT = "sched_ext"
"""The tunable that names a scheduler written in BPF, which only a guest can have."""

NO_SCHEDULER = "none"
"""Its level for the kernel's own."""


def set_by(factor: FactorTable, level: str) -> dict[str, str]:
    """Return what ``level`` of ``factor`` sets, by name, with the level of each as it was given."""
    return factor.settings[level] if factor.settings else {factor.name: level}


def names_set(factor: FactorTable) -> tuple[str, ...]:
    """Return the names that the levels of ``factor`` set, each once."""
    return tuple(dict.fromkeys(name for level in factor.levels for name in set_by(factor, level)))


def workload_parameter(name: str) -> str | None:
    """Return the workload's parameter that ``name`` means, if it does."""
    return name.removeprefix(WORKLOAD_PREFIX) if name.startswith(WORKLOAD_PREFIX) else None


def service_attribute(name: str) -> tuple[str, str] | None:
    """Return the service and its attribute that ``name`` means, if it does.

    ``service.NAME.nice``, or ``service.nice`` of the only one, whose name is empty here.
    """
    if not name.startswith(SERVICE_PREFIX):
        return None
    service, _, attribute = name.removeprefix(SERVICE_PREFIX).rpartition(".")
    return service, attribute


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
    """``tunable`` at ``location`` of a kernel of ``version``. ``replaced`` is what was asked for, if another."""

    tunable: Tunable
    location: Location | Marker
    version: KernelVersion
    replaced: Tunable | None = None

    @property
    def where(self) -> str:
        """Return the place in words."""
        if isinstance(self.location, Marker):
            return marker_words(self.location)
        return location_words(self.location)


def knob(asked: Tunable, version: KernelVersion, catalogue: Catalogue, *, successor: bool) -> Knob:
    """Return the knob for ``asked`` on a kernel of ``version``.

    Raises RequestError that says which kernels have it and what this one has instead; with ``successor`` the nearest
    successor that this kernel has is taken instead.
    """
    heir = _heir(asked, version, catalogue)
    if heir is None or asked.place_in(version) is not None:
        return Knob(asked, catalogue.locate(asked, version), version)
    if successor:
        return Knob(heir, catalogue.locate(heir, version), version, asked)
    try:
        catalogue.locate(asked, version)
    except RequestError as failure:
        raise RequestError(
            failure.message,
            hint=f"vary its successor {heir.name}, a related but different tunable, or set successor = true",
        ) from None
    raise AssertionError(f"{asked.name} is in no place of Linux {version}, and yet it was located")


def _heir(asked: Tunable, version: KernelVersion, catalogue: Catalogue) -> Tunable | None:
    # The first tunable down the line of successors that a kernel of `version` has.
    seen, name = {asked.name}, asked.successor
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


def ablation_names(resolved: ResolvedStudy, block: int) -> tuple[str, ...]:
    """Return the names of the configurations that a block holds: ``resolved`` has them in the order of ``subsets``."""
    lines = len(profile_lines(resolved.study))
    names = dict(zip(subsets(lines), resolved.names, strict=True))
    return tuple(names[subset] for subset in of_block(lines, block))


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
