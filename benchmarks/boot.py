"""Time that the first trial waits for: the initramfs, the boot up to the gate, the snapshot."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from benchmarks.comparison import Comparison, by_turns, seconds
from benchmarks.guest import target
from benchmarks.place import own_home

SPECS = ("debian:5.10", "debian:6.12")
ROUNDS = 3
MOST_SECONDS = 30


def measure() -> tuple[Comparison, ...]:
    """Getting a target ready, under the virtual clock."""

    def ready(spec: str) -> Callable[[], float]:
        return lambda: seconds(lambda: _enter(spec))

    figures = by_turns({spec: ready(spec) for spec in SPECS}, ROUNDS)
    return (
        Comparison(
            name="boot",
            what="from nothing to a snapshot, virtual clock",
            unit="s",
            figures=figures,
            goal=f"under {MOST_SECONDS} s",
            reached=max(median(values) for values in figures.values()) < MOST_SECONDS,
        ),
    )


def _enter(spec: str) -> None:
    with own_home() as place, target(spec, "virtual", place=place):
        pass
