"""Tables of several files as one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from ajuste.model.error import Place, RequestError
from ajuste.model.measurements import MeasuredTable, Sample, Values
from ajuste.model.metric import Metric
from ajuste.outputs.format import require_so_many

FILE: Final = "file"
"""The level of values of one configuration in several files."""


def apart(groups: Sequence[tuple[str, MeasuredTable]]) -> list[MeasuredTable]:
    """Return the tables of named groups, with the group's name before each configuration that several groups have."""
    counted = Counter(name for _, table in groups for name in table.configurations)

    def called(group: str, name: str) -> str:
        return name if counted[name] == 1 else f"{group}: {name}"

    return [
        replace(
            table,
            configurations=tuple(called(group, name) for name in table.configurations),
            samples={(called(group, name), metric): sample for (name, metric), sample in table.samples.items()},
        )
        for group, table in groups
    ]


def joined(tables: Iterable[tuple[Path, MeasuredTable]]) -> MeasuredTable:
    """Join the tables of all files.

    Values of a configuration in several files are one sample, in the files' order, whose units of replication are the
    files; no two files share a block. Raises RequestError where a summary meets another sample of the same
    configuration and metric, or where a metric has different units.
    """
    samples: dict[tuple[str, str], Sample] = {}
    configurations: dict[str, None] = {}
    metrics: dict[str, Metric] = {}
    formats: dict[str, None] = {}
    notes: list[str] = []
    main: set[str] = set()
    for number, (file, table) in enumerate(tables, 1):
        formats.setdefault(table.format)
        configurations |= dict.fromkeys(table.configurations)
        notes += table.notes
        main |= table.deciding
        require_so_many(len(configurations), len(metrics | {other.name: other for other in table.metrics}), Place(file))
        for metric in table.metrics:
            _require_same_unit(metrics.setdefault(metric.name, metric), metric, file)
        for cell, cell_sample in table.samples.items():
            sample = cell_sample
            if number > 1 and isinstance(cell_sample, Values):
                blocks = tuple(f"{block} of file {number}" for block in cell_sample.blocks)
                sample = replace(cell_sample, blocks=blocks)
            samples[cell] = _both(samples[cell], sample, cell, file, number) if cell in samples else sample
    return MeasuredTable(
        " and ".join(formats),
        tuple(configurations),
        tuple(metrics.values()),
        samples,
        tuple(notes),
        frozenset(main),
    )


def _require_same_unit(first: Metric, other: Metric, file: Path) -> None:
    if first.unit != other.unit:
        raise RequestError(
            f"{first.name} is in {other.unit or 'no unit'} here and in {first.unit or 'no unit'} in another file",
            place=Place(file),
            hint="use one unit, or two metric names",
        )


def _both(first: Sample, other: Sample, cell: tuple[str, str], file: Path, number: int) -> Sample:
    if not isinstance(first, Values) or not isinstance(other, Values):
        raise RequestError(
            f"{cell[1]} of {cell[0]} is in several files, and one has only a summary",
            place=Place(file),
            hint="give each file its own name with --name",
        )
    if bool(first.blocks) != bool(other.blocks):
        raise RequestError(
            f"{cell[1]} of {cell[0]} is in several files, and only one has blocks; expected blocks in all or none",
            place=Place(file),
        )
    before = first.units if first.level == FILE else ("1",) * len(first.values)
    return Values(
        first.values + other.values, first.blocks + other.blocks, before + (str(number),) * len(other.values), FILE
    )
