"""The speed-up on more CPUs, and the share of the work that runs on one only."""

from __future__ import annotations

from ajuste.model.base import BaseModel
from ajuste.model.topology import parse_cpus
from ajuste.run.facets import MeasuredRun


class Scaling(BaseModel):
    """``speedups`` by number of CPUs, against the fewest. ``serial`` is the share of the work that is not divided, by
    least squares (G. M. Amdahl, AFIPS 1967); None where one CPU was not among them, or the speed-up is no such share.
    """

    metric: str
    speedups: dict[int, float]
    serial: float | None


def find(measured: MeasuredRun) -> Scaling | None:
    """Return the scaling of a run of ``ajuste scaling`` that compares numbers of CPUs alone; None of others."""
    metric, configurations = measured.resolved.deciding[0], measured.results.configurations
    levels = [configuration.levels for configuration in configurations]
    if not measured.run.named.startswith("ajuste scaling ") or any(set(level) != {"affinity"} for level in levels):
        return None
    means = {
        len(parse_cpus(configuration.levels["affinity"])): configuration.metrics[metric.name].mean
        for configuration in configurations
        if metric.name in configuration.metrics
    }
    if not means or min(means.values()) <= 0:
        return None
    fewest = min(means)
    ratios = {number: means[fewest] / mean for number, mean in sorted(means.items())}
    speedups = {number: 1 / ratio if metric.direction == "higher" else ratio for number, ratio in ratios.items()}
    pairs = [(1 - 1 / number, 1 / speedup - 1 / number) for number, speedup in speedups.items()]
    squares = sum(divided**2 for divided, _ in pairs)
    serial = sum(divided * left for divided, left in pairs) / squares if fewest == 1 and squares else -1.0
    return Scaling(metric=metric.name, speedups=speedups, serial=serial if 0 <= serial <= 1 else None)
