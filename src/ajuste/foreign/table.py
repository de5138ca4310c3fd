"""What every format comes to: configurations, metrics, and for each pair of them what was measured."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ajuste.model.error import Place, RequestError
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
    """``samples`` by configuration and metric name. ``format`` is what kind of file it was read from."""

    format: str
    configurations: tuple[str, ...]
    metrics: tuple[Metric, ...]
    samples: Mapping[tuple[str, str], Sample] = field(default_factory=dict)


@dataclass
class Collector:
    """Gathers values as a parser finds them; ``table`` is what they come to.

    A value that is no finite number is refused with its place: nothing is dropped without a word.
    """

    format: str
    file: Path
    _values: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    _blocks: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    _summaries: dict[tuple[str, str], Summarised] = field(default_factory=dict)
    _configurations: dict[str, None] = field(default_factory=dict)
    _metrics: dict[str, Metric] = field(default_factory=dict)

    def add(
        self, configuration: str, metric: Metric, value: float, *, block: str | None = None, line: int | None = None
    ) -> None:
        if not math.isfinite(value):
            raise RequestError(
                f"{metric.name} is {value}; expected a finite number",
                place=Place(self.file, line=line, field=None),
                hint="take the row out, or write what was measured; nothing is left out silently",
            )
        self._know(configuration, metric)
        self._values.setdefault((configuration, metric.name), []).append(value)
        if block is not None:
            self._blocks.setdefault((configuration, metric.name), []).append(block)

    def add_summary(self, configuration: str, metric: Metric, summary: Summarised, line: int | None = None) -> None:
        if (configuration, metric.name) in self._summaries:
            raise RequestError(f"{metric.name} of {configuration} is there twice", place=Place(self.file, line=line))
        self._know(configuration, metric)
        self._summaries[configuration, metric.name] = summary

    def _know(self, configuration: str, metric: Metric) -> None:
        self._configurations.setdefault(configuration)
        self._metrics.setdefault(metric.name, metric)

    def table(self) -> Table:
        """Raises RequestError if nothing was found."""
        if not self._configurations:
            raise RequestError(f"there is no result in it ({self.format})", place=Place(self.file))
        samples: dict[tuple[str, str], Sample] = {
            cell: Values(tuple(values), tuple(self._blocks.get(cell, ()))) for cell, values in self._values.items()
        }
        return Table(self.format, tuple(self._configurations), tuple(self._metrics.values()), samples | self._summaries)


def joined(tables: Iterable[Table]) -> Table:
    """All tables as one. Values of one configuration in several files are one sample, in the order of the files.

    Raises RequestError where a summary meets another sample of the same configuration and metric.
    """
    samples: dict[tuple[str, str], Sample] = {}
    configurations: dict[str, None] = {}
    metrics: dict[str, Metric] = {}
    formats: dict[str, None] = {}
    for table in tables:
        formats.setdefault(table.format)
        configurations |= dict.fromkeys(table.configurations)
        metrics = {metric.name: metric for metric in table.metrics} | metrics
        for cell, sample in table.samples.items():
            samples[cell] = _both(samples[cell], sample, cell) if cell in samples else sample
    return Table(" and ".join(formats), tuple(configurations), tuple(metrics.values()), samples)


def _both(one: Sample, other: Sample, cell: tuple[str, str]) -> Sample:
    if not isinstance(one, Values) or not isinstance(other, Values):
        raise RequestError(
            f"{cell[1]} of {cell[0]} is in several files, of which one has only a summary",
            hint="give each file a name of its own with --name",
        )
    if bool(one.blocks) != bool(other.blocks):
        raise RequestError(f"{cell[1]} of {cell[0]} is in several files, of which only one names blocks")
    return Values(one.values + other.values, one.blocks + other.blocks)
