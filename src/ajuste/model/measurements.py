"""Measurements: what was measured in a run, column by column, so that a million trials are a few arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from operator import itemgetter
from typing import Any, Final, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ajuste.model.event import Written
from ajuste.model.metric import Metric
from ajuste.model.trial import Trial

T = TypeVar("T")
Whole = NDArray[np.int64]
Order: TypeAlias = NDArray[np.intp] | slice
# Measurements of one trial, as a digest covers them: the fields of `Trial` without time and text of the host.
TrialMeasurements: TypeAlias = Mapping[str, Any]


def different(values: Whole) -> Whole:
    """Return each of ``values`` once, in their order. Without the counts NumPy would load its masked arrays first."""
    return np.unique(values, return_counts=True)[0]


@dataclass(frozen=True)
class Categorical(Generic[T]):
    """A column of few different ``values``; ``codes`` has the place of each row's."""

    values: tuple[T, ...]
    codes: NDArray[np.int32]

    def __getitem__(self, row: int) -> T:
        return self.values[int(self.codes[row])]

    def among(self, rows: NDArray[Any]) -> list[T]:
        """Return the different values of ``rows``, in the order in which they appear there."""
        codes, first = np.unique(self.codes[rows], return_index=True)
        return [self.values[code] for code in codes[np.argsort(first)]]

    def code(self, value: T) -> int:
        """Return the code of ``value``, which can be hashed; -1 if no row has it."""
        return self._places.get(value, -1)

    @cached_property
    def _places(self) -> dict[T, int]:
        return {value: code for code, value in enumerate(self.values)}


@dataclass(frozen=True)
class Measurements:
    """Row for row a trial, in the order of the design: block, position, attempt.

    ``metrics`` has an array a metric, in its unit, NaN where a trial does not have it. ``written`` is without its time.
    """

    block: Whole
    position: Whole
    attempt: Whole
    seed: NDArray[np.uint64]
    warm_up: NDArray[np.bool_]
    configuration: Categorical[str]
    status: Categorical[str]
    reason: Categorical[str]
    metrics: Mapping[str, NDArray[np.float64]]
    not_supported: Categorical[Mapping[str, str]]
    written: Categorical[tuple[Written, ...]]

    def __len__(self) -> int:
        return len(self.block)

    def has_status(self, status: str) -> NDArray[np.bool_]:
        """Return a mask of the rows with that status."""
        return np.equal(self.status.codes, self.status.code(status))

    def of(self, configuration: str) -> NDArray[np.intp]:
        """Return the rows of a configuration, in order."""
        code = self.configuration.code(configuration)
        return self._by_configuration[code] if code >= 0 else np.array([], np.intp)

    @cached_property
    def _by_configuration(self) -> list[NDArray[np.intp]]:
        codes = self.configuration.codes
        order = np.argsort(codes, kind="stable")
        return np.split(order, np.searchsorted(codes[order], np.arange(1, len(self.configuration.values))))

    def figures(self, row: int) -> dict[str, float]:
        """Return the metrics that a trial has."""
        figures = {name: float(column[row]) for name, column in self.metrics.items()}
        return {name: value for name, value in figures.items() if not math.isnan(value)}


class _Codes(dict[Hashable, int]):
    # Numbers new keys from 0 on.
    def __missing__(self, key: Hashable) -> int:
        code = self[key] = len(self)
        return code


class _Coding(Generic[T]):
    def __init__(self, decode: Callable[[Any], T]) -> None:
        self._decode = decode
        self._codes = _Codes()
        self._rows: list[NDArray[np.int32]] = []

    def extend(self, keys: Sequence[Hashable]) -> None:
        self._rows.append(np.fromiter(map(self._codes.__getitem__, keys), np.int32, len(keys)))

    def column(self, order: Order) -> Categorical[T]:
        return Categorical(tuple(self._decode(key) for key in self._codes), _joined(self._rows, np.int32)[order])


def _text(key: str) -> str:
    return key


_WHOLE: Final = ("block", "position", "attempt")


@dataclass
class Gathering:
    """A builder of ``Measurements`` from rows that come in parts, column by column.

    ``written`` and ``not_supported`` come as keys, equal for equal values, that the functions given read.
    """

    read_written: Callable[[Any], tuple[Written, ...]]
    read_not_supported: Callable[[Any], Mapping[str, str]]
    _rows: int = 0
    _whole: dict[str, list[Whole]] = field(default_factory=lambda: {name: [] for name in _WHOLE})
    _seeds: list[NDArray[np.uint64]] = field(default_factory=list)
    _warm_up: list[NDArray[np.bool_]] = field(default_factory=list)
    _metrics: dict[str, list[NDArray[np.float64]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._coded: dict[str, _Coding[Any]] = {
            "configuration": _Coding(_text),
            "status": _Coding(_text),
            "reason": _Coding(_text),
            "written": _Coding(self.read_written),
            "not_supported": _Coding(self.read_not_supported),
        }

    def extend(
        self,
        *,
        block: Sequence[int],
        position: Sequence[int],
        attempt: Sequence[int],
        seed: Sequence[int],
        warm_up: Sequence[bool],
        metrics: Sequence[Mapping[str, float]],
        **coded: Sequence[Hashable],
    ) -> None:
        """Add rows; ``coded`` has the columns ``configuration``, ``status``, ``reason``, ``written`` and
        ``not_supported``.
        """
        for name, numbers in zip(_WHOLE, (block, position, attempt), strict=True):
            self._whole[name].append(np.array(numbers, np.int64))
        self._seeds.append(np.array(seed, np.uint64))
        self._warm_up.append(np.array(warm_up, np.bool_))
        for name, coding in self._coded.items():
            coding.extend(coded[name])
        for metric in dict.fromkeys(chain.from_iterable(metrics)):
            if metric not in self._metrics:
                self._metrics[metric] = [np.full(self._rows, np.nan)]
            try:
                column = np.fromiter(map(itemgetter(metric), metrics), np.float64, len(metrics))
            except KeyError:
                column = np.fromiter((figures.get(metric, np.nan) for figures in metrics), np.float64, len(metrics))
            self._metrics[metric].append(column)
        self._rows += len(metrics)
        for parts in self._metrics.values():
            missing = self._rows - sum(map(len, parts))
            if missing:
                parts.append(np.full(missing, np.nan))

    def measurements(self) -> Measurements:
        """Return all rows, in the order of the design."""
        whole = {name: _joined(parts, np.int64) for name, parts in self._whole.items()}
        blocks, positions, attempts = (np.diff(whole[name]) for name in ("block", "position", "attempt"))
        follows = (blocks > 0) | ((blocks == 0) & ((positions > 0) | ((positions == 0) & (attempts > 0))))
        # What comes in the order of the design need not be sorted.
        order: Order = slice(None)
        if not np.all(follows):
            order = np.lexsort((whole["attempt"], whole["position"], whole["block"]))
        columns: dict[str, Any] = {name: column[order] for name, column in whole.items()}
        columns |= {name: coding.column(order) for name, coding in self._coded.items()}
        return Measurements(
            seed=_joined(self._seeds, np.uint64)[order],
            warm_up=_joined(self._warm_up, np.bool_)[order],
            metrics={name: _joined(parts, np.float64)[order] for name, parts in self._metrics.items()},
            **columns,
        )


def measurements(trials: Iterable[Trial]) -> Measurements:
    """Return ``trials`` column by column."""
    rows = list(trials)
    gathering = Gathering(read_written=tuple, read_not_supported=dict)
    gathering.extend(
        block=[trial.slot.block for trial in rows],
        position=[trial.slot.position for trial in rows],
        attempt=[trial.attempt for trial in rows],
        seed=[trial.slot.seed for trial in rows],
        warm_up=[trial.slot.warm_up for trial in rows],
        metrics=[trial.metrics for trial in rows],
        configuration=[trial.slot.configuration for trial in rows],
        status=[trial.status for trial in rows],
        reason=[trial.reason for trial in rows],
        written=[tuple(write.model_copy(update={"at_ns": 0}) for write in trial.written) for trial in rows],
        not_supported=[tuple(trial.not_supported.items()) for trial in rows],
    )
    return gathering.measurements()


def _joined(parts: Sequence[NDArray[Any]], kind: Any) -> NDArray[Any]:
    return np.concatenate(parts) if parts else np.array([], kind)


# Results that were measured elsewhere: configurations, metrics, and for each pair of them what was measured.


@dataclass(frozen=True)
class Values:
    """Single values in the order of the file. ``blocks`` names the block of each, or is empty if they have none.

    ``units`` names the outermost unit of replication of each value, of the kind ``level`` (``fork``, ``process``,
    ``file``): values of one unit share what changes from unit to unit. Empty where each value is its own.
    """

    values: tuple[float, ...]
    blocks: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    level: str = ""


@dataclass(frozen=True)
class Summarised:
    """A summary of values that are not known: the mean of ``n`` values and the standard error of that mean."""

    n: int
    mean: float
    sem: float


Sample = Values | Summarised


@dataclass(frozen=True)
class MeasuredTable:
    """A table of measurements: ``samples`` by configuration and metric name. ``format`` is what kind of file it was
    read from; ``notes`` are sentences on what of the file is in no sample. ``main`` are the metrics that decide where a
    person names none.
    """

    format: str
    configurations: tuple[str, ...]
    metrics: tuple[Metric, ...]
    samples: Mapping[tuple[str, str], Sample] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    main: frozenset[str] = frozenset()

    @property
    def deciding(self) -> frozenset[str]:
        """Return the main metrics, or all if it has none."""
        return self.main or frozenset(metric.name for metric in self.metrics)
