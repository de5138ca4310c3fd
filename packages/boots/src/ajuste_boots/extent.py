"""The number of reboots of this machine for a study, and their time."""

from __future__ import annotations

import math
from typing import Final

from ajuste.report.plan import PlannedReboots
from ajuste.study.resolved import ResolvedStudy
from ajuste.study.schema import Study

BOOT_SECONDS: Final = 60
"""Typical time of a reboot."""


def boot_range(study: Study, states: int) -> tuple[int, int]:
    """Return the least and greatest number of reboots, with the one that brings the machine back; ``states`` are booted
    in turn.
    """
    budget, each = study.budget, study.blocks_per_boot
    least, most = math.ceil(budget.min_blocks / each), math.ceil(budget.max_blocks / each)
    return least * states + 1, most * states + 1


def planned_reboots(resolved: ResolvedStudy) -> PlannedReboots:
    """Return the reboots of a study as its plan shows them."""
    least, most = boot_range(resolved.study, len(resolved.boots))
    states = tuple(state.name for state in resolved.boots)
    each = resolved.study.blocks_per_boot
    return PlannedReboots(least=least, most=most, states=states, each=each, seconds=BOOT_SECONDS)
