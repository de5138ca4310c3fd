"""The value that a kernel gives a tunable at boot."""

from __future__ import annotations

from ajuste.model.kernel import KernelVersion
from ajuste.model.tunable import Tunable

_COUNTED_CPUS = 8


def initial_value(tunable: Tunable, version: KernelVersion, cpus: int) -> str | None:
    """The value after boot of a kernel of ``version`` on a machine with ``cpus`` CPUs, where the catalogue can say it.

    Scaled ones grow with 1 + ⌊log2(CPUs)⌋, CPUs counted up to 8.
    Source: kernel/sched/fair.c, get_update_sysctl_factor.
    """
    where = tunable.place_in(version)
    if where is None or not where.initial:
        return None
    if not tunable.scaled:
        return where.initial
    return str(int(where.initial) * min(cpus, _COUNTED_CPUS).bit_length())
