"""What the levels of a factor set: the one thing that the factor is named after, or several at once."""

from __future__ import annotations

from ajuste.catalogue.loader import Catalogue
from ajuste.model.configuration import COMMAND_FACTOR, KERNEL_FACTOR
from ajuste.model.error import RequestError
from ajuste.study.schema import FactorTable, Study

WORKLOAD_PREFIX = "workload."

KERNEL_ARGUMENTS = "kernel_arguments"
"""In a factor's settings: words for the kernel's command line, separated by blanks."""

SCHED_EXT = "sched_ext"
"""The tunable that names a scheduler written in BPF, which only a guest can have."""

NO_SCHEDULER = "none"
"""Its level for the kernel's own."""


def set_by(factor: FactorTable, level: str) -> dict[str, str]:
    """What ``level`` of ``factor`` sets, by name, with the level of each as it was given."""
    return factor.settings[level] if factor.settings else {factor.name: level}


def names_set(factor: FactorTable) -> tuple[str, ...]:
    """All that the levels of ``factor`` set, each once."""
    return tuple(dict.fromkeys(name for level in factor.levels for name in set_by(factor, level)))


def parameter_of(name: str) -> str | None:
    """The workload's parameter that ``name`` means, if it does."""
    return name.removeprefix(WORKLOAD_PREFIX) if name.startswith(WORKLOAD_PREFIX) else None


def is_tunable(name: str) -> bool:
    """Whether ``name`` must be a tunable of the catalogue, as nothing else is called so."""
    return name not in (KERNEL_FACTOR, COMMAND_FACTOR, KERNEL_ARGUMENTS) and parameter_of(name) is None


def canonical(name: str, catalogue: Catalogue) -> str:
    """One name for what has several; ``name`` itself for what is unknown."""
    try:
        return catalogue.find_tunable(name).name if is_tunable(name) else name
    except RequestError:
        return name


def varies(study: Study, name: str) -> bool:
    """Whether a factor of ``study`` sets ``name``."""
    return any(name in names_set(factor) for factor in study.factors)
