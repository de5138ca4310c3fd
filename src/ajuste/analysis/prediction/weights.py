"""The weights by which the kernel's fair scheduler divides a CPU.

``WEIGHTS`` is ``sched_prio_to_weight`` of kernel/sched/core.c, the same in CFS and in EEVDF.
"""

from __future__ import annotations

from typing import Final

from ajuste.model.plan import Attributes

LOWEST_NICE: Final = -20

WEIGHTS: Final = (
    *(88761, 71755, 56483, 46273, 36291),
    *(29154, 23254, 18705, 14949, 11916),
    *(9548, 7620, 6100, 4904, 3906),
    *(3121, 2501, 1991, 1586, 1277),
    *(1024, 820, 655, 526, 423),
    *(335, 272, 215, 172, 137),
    *(110, 87, 70, 56, 45),
    *(36, 29, 23, 18, 15),
)
"""From nice −20 to 19."""

WEIGHT_OF_IDLE: Final = 3
"""``WEIGHT_IDLEPRIO`` of kernel/sched/sched.h, whatever the nice value."""

_DEFAULT_CPU_WEIGHT: Final = 100
_WEIGHT_OF_DEFAULT: Final = 1024


def weight_of_nice(nice: int) -> int:
    """The weight of an ordinary task, ``nice`` from −20 to 19."""
    return WEIGHTS[nice - LOWEST_NICE]


def weight_of_group(cpu_weight: int) -> int:
    """The weight of a control group with that ``cpu.weight``: ``sched_weight_from_cgroup``, rounded as there."""
    return (2 * cpu_weight * _WEIGHT_OF_DEFAULT + _DEFAULT_CPU_WEIGHT) // (2 * _DEFAULT_CPU_WEIGHT)


def weight_of(attributes: Attributes) -> int:
    """The weight of a process of these attributes, alone in its control group if it has one; not for real-time ones."""
    if attributes.cgroup_weight is not None:
        return weight_of_group(attributes.cgroup_weight)
    if attributes.policy == "idle":
        return WEIGHT_OF_IDLE
    return weight_of_nice(attributes.nice or 0)
