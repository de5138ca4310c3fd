"""The speed-up on more CPUs, and the share of the work that runs on one only."""

from __future__ import annotations

from ajuste.model.base import BaseModel
from ajuste.model.topology import parse_cpus
from ajuste.run.facets import MeasuredRun


class Scaling(BaseModel):
    """``speedups`` by number of CPUs, against the fewest. ``serial`` is the share of the work that is not divided, by
    least squares (G. M. Amdahl, AFIPS 1967); None for a single number of CPUs.
    """

    metric: str
    speedups: dict[int, float]
    serial: float | None


def find(measured: MeasuredRun) -> Scaling | None:
    """Return the scaling of a run of ``ajuste scaling``; None of others, and before there are trials."""
    if not measured.run.named.startswith("ajuste scaling "):
        return None
    metric = measured.resolved.deciding[0].name
    means = {
        len(parse_cpus(configuration.levels["affinity"])): configuration.metrics[metric].mean
        for configuration in measured.results.configurations
        if metric in configuration.metrics
    }
    if not means:
        return None
    fewest = min(means)
    speedups = {number: means[fewest] / mean for number, mean in sorted(means.items())}
    pairs = [(1 - fewest / number, 1 / speedup - fewest / number) for number, speedup in speedups.items()]
    squares = sum(divided**2 for divided, _ in pairs)
    serial = sum(divided * left for divided, left in pairs) / squares if squares else None
    return Scaling(metric=metric, speedups=speedups, serial=serial)
