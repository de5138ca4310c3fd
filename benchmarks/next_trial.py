"""Cost of one more trial: from the snapshot, under either clock, with a workload that does nothing."""

from __future__ import annotations

from statistics import median

from benchmarks.comparison import Comparison, by_turns
from benchmarks.guest import do_nothing, target

SPEC = "debian:5.10"
ROUNDS = 15
MOST_SECONDS = 0.5


def measure() -> tuple[Comparison, ...]:
    """The host's time of whole trials: QEMU's start, restore, plan, ``true``, power-off."""
    with target(SPEC, "virtual") as virtual, target(SPEC, "wall") as wall:
        figures = by_turns(
            {
                "virtual clock": lambda: do_nothing(virtual, "virtual"),
                "wall clock": lambda: do_nothing(wall, "wall"),
            },
            ROUNDS,
        )
    comparison = Comparison(
        name="next-trial",
        what=f"a further trial with {SPEC} from the snapshot, workload: true",
        unit="s",
        figures=figures,
        goal=f"overhead under {MOST_SECONDS} s",
        reached=max(median(values) for values in figures.values()) < MOST_SECONDS,
    )
    return (comparison,)
