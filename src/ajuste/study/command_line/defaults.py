"""Defaults of a comparison on the command line, where no option was given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ajuste.model.workload import ELAPSED, WorkloadKind
from ajuste.outputs.base import MODELLED_TIME

DEFAULT_NAME: Final = "compare"
DEFAULT_KERNEL: Final = "debian:6.12"
DEFAULT_MIN_EFFECT: Final = 0.02
DEFAULT_MAX_SECONDS: Final = 300.0

# Fewest runs, and least time, where nothing is compared, as in hyperfine.
DETAILED: Final = 10
DETAILED_SECONDS: Final = 3.0


@dataclass(frozen=True)
class Defaults:
    """Defaults where no option was given: on this machine, and in a guest."""

    timeout_s: float
    warm_up: int
    max_blocks: int


ON_HOST: Final = Defaults(timeout_s=3600, warm_up=1, max_blocks=1000)
IN_GUEST: Final = Defaults(timeout_s=600, warm_up=0, max_blocks=100)


def default_metrics(kind: WorkloadKind | None, *, modelled: bool) -> list[str]:
    """Return the metrics that decide: the leading ones of a workload of this ``kind``, and beside them that of a
    modelled machine.
    """
    return [*(kind.leading_metrics if kind else (ELAPSED,)), *([MODELLED_TIME] if modelled else [])]
