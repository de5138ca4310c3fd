"""How long after it was written to a file something reaches the disk, by the rule of the flusher thread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ajuste.analysis.prediction.forecast import Forecast
from ajuste.study.resolved import ResolvedConfiguration, ResolvedStudy

EXPIRE: Final = "vm.dirty_expire_centisecs"
INTERVAL: Final = "vm.dirty_writeback_centisecs"
DEFAULTS: Final = {EXPIRE: 3000, INTERVAL: 500}
"""Of mm/page-writeback.c, in hundredths of a second."""


def writeback_delay(study: ResolvedStudy) -> Iterator[Forecast]:
    """A forecast for each metric that is a delay taken from a timeline, in seconds.

    None where the flusher does not wake by itself (an interval of 0).
    """
    delays = [timeline.name for timeline in study.timelines if timeline.take == "delay"]
    for configuration in study.configurations:
        expire, interval = _setting(configuration, EXPIRE), _setting(configuration, INTERVAL)
        if interval == 0:
            continue
        why = f"expired after {expire:g} s, the flusher wakes every {interval:g} s"
        for metric in delays:
            yield Forecast(configuration.configuration.name, metric, expire, expire + interval, why)


def _setting(configuration: ResolvedConfiguration, name: str) -> float:
    """The value that the configuration writes, or the kernel's default; in seconds."""
    written = {write.tunable: write.value for write in configuration.writes}
    return int(written.get(name, DEFAULTS[name])) / 100
