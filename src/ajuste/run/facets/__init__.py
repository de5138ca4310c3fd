"""Facets of results, which only some runs have, one module each: ``find(run)`` returns it, or None.

Its name is its key in the results. One of another package may also have ``group_machines``, as
``ajuste.analysis.results.GroupMachines``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic_core import to_jsonable_python

from ajuste.model.plugins import isolated, modules
from ajuste.model.results import Results
from ajuste.model.verdict import AcrossMachines
from ajuste.study.resolved import ResolvedStudy

if TYPE_CHECKING:
    from ajuste.analysis.machines import Machines
    from ajuste.analysis.pairs import Clean
    from ajuste.store.record import KeptRecord
    from ajuste.store.store import Run, Store


@dataclass(frozen=True)
class MeasuredRun:
    """A run with the results that all runs have; its ``record`` are its trials in the ``store``."""

    run: Run
    store: Store
    record: KeptRecord
    resolved: ResolvedStudy
    results: Results


def with_facets(measured: MeasuredRun) -> Results:
    """Return the results with all that only some runs have."""
    values: dict[str, Any] = {}
    for name, module in modules(sys.modules[__name__], "facets").items():
        with isolated(module):
            if (value := module.find(measured)) is not None:
                values[name] = value
    return measured.results.model_copy(update=to_jsonable_python(values, by_alias=False))


def group_machines(
    resolved: ResolvedStudy,
    clean: Clean,
    machines: Machines,
    across: Sequence[AcrossMachines],
    environment: Mapping[str, Any],
) -> Sequence[AcrossMachines]:
    """Return the comparisons of machines with the groups that facets tell apart."""
    if across:
        for module in modules(sys.modules[__name__], "facets").values():
            if hasattr(module, "group_machines"):
                with isolated(module):
                    across = module.group_machines(resolved, clean, machines, across, environment)
    return across
