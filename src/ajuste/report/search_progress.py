"""What happens while a search runs: on a terminal a few lines that stay in place, elsewhere nothing."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.text import Text

from ajuste.analysis.wording import change
from ajuste.model.trial import Status
from ajuste.model.verdict import Finding
from ajuste.report.display import Display
from ajuste.report.format import count_of, duration
from ajuste.report.visible import visible_line
from ajuste.tuning.standing import Standing

_DOING: Final = {
    "warm-up": "Warming up",
    "explore": "Exploring",
    "replicate": "Replicating the most promising",
    "check": "Checking the choice in fresh blocks",
}


class SearchProgress(Display):
    """A display on standard error, from entering to leaving: what is tried, the best so far, how many trials are left.

    Safe to call from several threads. On anything but a terminal, and with ``quiet``, nothing is shown. ``clock`` gives
    seconds that only grow.
    """

    def __init__(
        self,
        *,
        allowed: int,
        quiet: bool = False,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(console, quiet=quiet)
        self._allowed = allowed
        self._clock = clock
        self._running: Counter[str] = Counter()
        self._standing: Standing | None = None
        self._first: float | None = None
        self._done = 0

    def trial_started(self, configuration: str, block: int) -> None:
        with self._lock:
            self._said = ""
            self._first = self._clock() if self._first is None else self._first
            self._running[configuration] += 1

    def trial_done(self, configuration: str, block: int, status: Status, seconds: float) -> None:
        with self._lock:
            self._running[configuration] -= 1
            self._running += Counter()  # forgets what has ended
            self._done += 1

    def block_done(self, block: int, findings: Sequence[Finding]) -> None: ...

    def search_stands(self, standing: Standing) -> None:
        """What is known after a block."""
        with self._lock:
            self._standing = standing

    def renderable(self) -> RenderableType:
        """The lines as they are now."""
        with self._lock:
            running = ", ".join(visible_line(name) for name in sorted(self._running))
            lines = [self._now(running), self._trials()]
            if self._standing is not None:
                lines.append(self._best(self._standing))
        return Group(*map(Text, lines))

    def _trials(self) -> str:
        stands = self._standing
        phase = _DOING[stands.phase] if stands else _DOING["explore"]
        done = stands.trials if stands else 0
        parts = [f"{phase}: {count_of(done, 'trial')} done of at most {self._allowed:,}"]
        if self._done and self._first is not None and stands:
            left = (self._clock() - self._first) / self._done * max(0, self._allowed - done)
            parts.append(f"at most {duration(left)} left")
        return " · ".join(parts)

    @staticmethod
    def _best(stands: Standing) -> str:
        tried = f"{count_of(stands.tried, 'configuration')} tried"
        if stands.best is None or stands.change is None:
            return f"{tried} · none keeps the constraints yet" if stands.tried else tried
        value = -stands.change if stands.metric.direction == "higher" else stands.change
        said = (
            change(math.exp(value), "ratio", "") if stands.as_ratio else change(value, "difference", stands.metric.unit)
        )
        title = visible_line(stands.metric.title.lower())
        return f"{tried} · best so far {visible_line(stands.best)}: {title} {said}, not checked yet"
