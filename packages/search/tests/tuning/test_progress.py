"""The display of a search."""

from __future__ import annotations

import io
import time

from ajuste.report.console import Console
from ajuste_search.tuning.progress import SearchProgress


def test_what_it_waits_for_is_a_line_in_a_file_too() -> None:
    out = io.StringIO()
    progress = SearchProgress(allowed=9, console=Console(file=out))
    progress.beat_s = 0.01
    progress.say("booting debian:5.10")
    end = time.monotonic() + 60
    with progress:
        while "\n" not in out.getvalue() and time.monotonic() < end:
            time.sleep(0.01)
    assert out.getvalue().startswith("booting debian:5.10")
