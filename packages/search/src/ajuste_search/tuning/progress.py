"""Progress of a search: a few lines on what is tried, the best so far, and how many trials are left."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from ajuste.model.trial import Status
from ajuste.model.verdict import Finding
from ajuste.model.wording import change, count_of, in_sentence, visible_line
from ajuste.report.console import SEPARATOR, Console
from ajuste.report.format import duration
from ajuste.report.progress import TrialDisplay
from ajuste_search.tuning.model import Standing

_DOING: Final = {
    "warm-up": "Warming up",
    "explore": "Exploring",
    "replicate": "Replicating the most promising",
    "check": "Checking the choice in fresh blocks",
}


class SearchProgress(TrialDisplay):
    """A display on standard error, from entering to leaving: what is tried, the best so far, how many trials are left.

    Safe to call from several threads. ``clock`` gives seconds that only grow.
    """

    def __init__(
        self,
        *,
        allowed: int,
        quiet: bool = False,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(console, quiet=quiet, clock=clock)
        self._allowed = allowed
        self._running: Counter[str] = Counter()
        self._standing: Standing | None = None
        self._first: float | None = None
        self._done = 0

    def trial_started(self, configuration: str, block: int) -> None:
        with self._lock:
            self._message = ""
            self._first = self._clock() if self._first is None else self._first
            self._running[configuration] += 1

    def trial_done(self, configuration: str, block: int, status: Status, seconds: float) -> None:
        with self._lock:
            self._running[configuration] -= 1
            self._running += Counter()  # forgets what has ended
            self._done += 1

    def block_done(self, block: int, findings: Sequence[Finding] | None) -> None: ...

    def search_stands(self, standing: Standing) -> None:
        """Record what is known after a block."""
        with self._lock:
            self._standing = standing

    def lines(self) -> Sequence[str]:
        running = ", ".join(self.name(name) for name in sorted(self._running))
        trial_lines = [] if self._first is None else [self._trials()]
        best = [] if self._standing is None else [self._best(self._standing)]
        return [self._now(running), *trial_lines, *best]

    def _trials(self) -> str:
        stands = self._standing
        phase = _DOING[stands.phase] if stands else _DOING["explore"]
        done = max(self._done, stands.trials if stands else 0)
        parts = [f"{phase}: {count_of(done, 'trial')} done of at most {self._allowed:,}"]
        if self._done and self._first is not None and stands:
            left = (self._clock() - self._first) / self._done * max(0, self._allowed - done)
            parts.append(f"at most {duration(left)} left")
        return SEPARATOR.join(parts)

    def _best(self, stands: Standing) -> str:
        tried = f"{count_of(stands.tried, 'configuration')} tried"
        if stands.best is None or stands.change is None:
            return f"{tried}{SEPARATOR}none keeps the constraints yet" if stands.tried else tried
        value = -stands.change if stands.metric.direction == "higher" else stands.change
        effect = (
            change(math.exp(value), "ratio", "") if stands.as_ratio else change(value, "difference", stands.metric.unit)
        )
        title = visible_line(in_sentence(stands.metric.title))
        return f"{tried}{SEPARATOR}best so far {self.name(stands.best)}: {title} {effect}, not checked yet"
