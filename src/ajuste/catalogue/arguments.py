"""How the parameters of a workload become the arguments of its program."""

from __future__ import annotations

from collections.abc import Mapping

from rapidfuzz import process

from ajuste.catalogue.level import check_parameter
from ajuste.model.error import RequestError
from ajuste.model.workload import PLACEHOLDER, WorkloadKind


def check_parameters(kind: WorkloadKind, given: Mapping[str, str]) -> dict[str, str]:
    """All parameters of ``kind``: those ``given``, checked, and the defaults of the others.

    Raises RequestError for an unknown parameter (with the nearest name) or a value that it cannot have.
    """
    for name in given:
        if name not in kind.parameters:
            near = process.extractOne(name, list(kind.parameters), score_cutoff=50)
            known = ", ".join(kind.parameters) or "none"
            raise RequestError(
                f"the workload {kind.name} has no parameter {name!r}; it has {known}",
                hint=f"did you mean {near[0]}?" if near else None,
            )
    return {
        name: check_parameter(f"{kind.name}'s {name}", parameter, given.get(name, parameter.default))
        for name, parameter in kind.parameters.items()
    }


def arguments(kind: WorkloadKind, given: Mapping[str, str]) -> tuple[str, ...]:
    """The program's arguments (without the program) with the parameters ``given``; no shell ever reads them."""
    values = check_parameters(kind, given)
    words: list[str] = []
    for argument in kind.arguments:
        whole = PLACEHOLDER.fullmatch(argument)
        if whole and kind.parameters[whole[1]].choices:
            words += kind.parameters[whole[1]].choices[values[whole[1]]]
        else:
            words.append(PLACEHOLDER.sub(lambda match: values[match[1]], argument))
    return tuple(words)


def modules(kind: WorkloadKind, given: Mapping[str, str]) -> tuple[str, ...]:
    """The kernel modules of Ajuste's own that the workload needs with the parameters ``given``, each once."""
    values = check_parameters(kind, given)
    needed = (kind.parameters[name].modules.get(value) for name, value in values.items())
    return tuple(dict.fromkeys(name for name in needed if name))
