"""The monitor of a slice beside a watch that is played."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from ajuste.model.live import LiveDesign, LiveMetric
from ajuste.model.metric import Metric
from ajuste_live.guards import GuardWatch
from ajuste_live.monitor import Heart, LiveMonitor

METRIC = LiveMetric(metric=Metric(name="took", title="took", unit="s", direction="lower"), kind="x", where="y")
DESIGN = LiveDesign(metrics=(METRIC,), slice_s=60, for_s=600)


def test_a_slice_begins_when_its_watch_does_however_long_the_change_takes(tmp_path: Path) -> None:
    heard: list[float] = []
    with Heart(tmp_path / "beat") as heart:

        def start_late() -> None:
            time.sleep(0.7)
            watch = os.open(heart.path, os.O_RDONLY | os.O_NONBLOCK)
            heard.append(time.monotonic())
            os.read(watch, 512)
            time.sleep(1.5)
            heard.append(time.monotonic())
            os.close(watch)

        played = threading.Thread(target=start_late)
        monitor = LiveMonitor(
            {}, GuardWatch(DESIGN, {}, {}, {}, False), heart, slice_s=60, washout_s=1, now_s=time.monotonic
        )
        played.start()
        with monitor:
            played.join()
        watched = monitor.watched
    opened, closed = heard
    assert opened <= watched.begin_s < closed
    assert watched.counted_s - watched.begin_s == 1


def test_a_slice_whose_watch_never_starts_ends_with_it(tmp_path: Path) -> None:
    with Heart(tmp_path / "beat") as heart:
        monitor = LiveMonitor(
            {}, GuardWatch(DESIGN, {}, {}, {}, False), heart, slice_s=60, washout_s=0, now_s=time.monotonic
        )
        started_s = time.monotonic()
        with monitor:
            time.sleep(0.3)
    assert time.monotonic() - started_s < 5
    assert monitor.watched.end_s - monitor.watched.begin_s < 0.2
