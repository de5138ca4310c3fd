"""Results that were measured elsewhere: configurations, metrics, and for each pair of them what was measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ajuste.model.metric import Metric


@dataclass(frozen=True)
class Values:
    """Single values in the order of the file. ``blocks`` names the block of each, or is empty if they have none."""

    values: tuple[float, ...]
    blocks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Summarised:
    """Only a summary is known: the mean of ``n`` values and the standard error of that mean."""

    n: int
    mean: float
    sem: float


Sample = Values | Summarised


@dataclass(frozen=True)
class Table:
    """``samples`` by configuration and metric name. ``format`` is what kind of file it was read from; ``notes`` are
    sentences on what of the file is in no sample.
    """

    format: str
    configurations: tuple[str, ...]
    metrics: tuple[Metric, ...]
    samples: Mapping[tuple[str, str], Sample] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
