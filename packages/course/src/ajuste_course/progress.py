"""Progress of marking: which hand-in, how many are done, and how long it goes on."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from ajuste.report.console import Display
from ajuste.report.format import duration
from ajuste_course.marking import Marked


class MarkingDisplay(Display):
    """A watcher of trials that are measured again, which counts hand-ins."""

    def __init__(self, files: int, *, quiet: bool) -> None:
        super().__init__(None, quiet=quiet)
        self._files = files
        self._marked = 0
        self._refused = 0
        self._trials = 0
        self._begin = time.monotonic()

    def marked(self, marked: Marked) -> None:
        """Count a hand-in."""
        with self._lock:
            self._marked += 1
            self._refused += marked.decision == "not accepted"

    def study_begins(self, study: Any) -> None: ...

    def trial_started(self, configuration: str, block: int) -> None: ...

    def trial_done(self, configuration: str, block: int, status: Any, seconds: float) -> None:
        with self._lock:
            self._trials += 1

    def block_done(self, block: int, findings: Any) -> None: ...

    def lines(self) -> Sequence[str]:
        spent = time.monotonic() - self._begin
        left = f"about {duration(spent / self._marked * (self._files - self._marked))} left" if self._marked else ""
        facts = [
            f"Marked {self._marked} of {self._files}",
            f"{self._refused} not accepted" if self._refused else "",
            f"{self._trials} trials measured again",
            left,
        ]
        return [" · ".join(fact for fact in facts if fact)]
