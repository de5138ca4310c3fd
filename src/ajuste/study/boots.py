"""Studies that reboot this machine: what they cannot have, and how many boots they take."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from ajuste.model.boot import BOOT_KERNEL
from ajuste.study.location import KeyPath
from ajuste.study.problem import Problem
from ajuste.study.schema import Study
from ajuste.study.settings import is_tunable, names_set

FEWEST_ROUNDS: Final = 3
"""Rounds of boots by default: fewer give no interval."""
MOST_ROUNDS: Final = 12

BOOT_SECONDS: Final = 60
"""About how long a reboot takes."""


def check_boots(study: Study) -> Iterator[Problem]:
    """What cannot be measured across reboots."""
    if not study.across_boots:
        return
    where: KeyPath = ("design", "blocks_per_boot") if study.design.blocks_per_boot else ("factor",)
    if not study.target.on_host:
        yield Problem(where, "applies only to this machine, which reboots", 'use target kind = "host"')
    if study.design.combine not in ("all", "one-at-a-time"):
        yield Problem(("design", "combine"), 'not supported across reboots; expected "all" or "one-at-a-time"')
    if study.design.allocation in ("refine", "best"):
        yield Problem(("design", "allocation"), 'not supported across reboots; expected "all"')
    if study.analysis.explain:
        yield Problem(("analysis", "explain"), "not supported across reboots")
    setting = [name for factor in study.factors for name in names_set(factor) if is_tunable(name)]
    if setting and any(BOOT_KERNEL in names_set(factor) for factor in study.factors):
        yield Problem(
            ("factor",), f"{setting[0]} and {BOOT_KERNEL} cannot be varied together: kernels differ in tunables"
        )


def block_count_of_boot(study: Study) -> int:
    """The blocks of a boot, warm-up included."""
    return study.design.warm_up + study.blocks_per_boot


def boot_range(study: Study, states: int) -> tuple[int, int]:
    """How many reboots at least and at most, with the one that brings the machine back; ``states`` are booted in
    turn.
    """
    budget, each = study.budget, study.blocks_per_boot
    least, most = math.ceil(budget.min_blocks / each), math.ceil(budget.max_blocks / each)
    return least * states + 1, most * states + 1
