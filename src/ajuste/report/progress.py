"""What happens while a study runs: on a terminal a few lines that stay in place, elsewhere nothing."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from ajuste.design.allocation import Allocation
from ajuste.design.remaining import Remaining, remaining
from ajuste.model.metric import Metric
from ajuste.model.trial import Status
from ajuste.model.verdict import Finding
from ajuste.report.display import Display
from ajuste.report.effect import effect_style
from ajuste.report.format import count_of, duration
from ajuste.report.verdict_words import LOOKS
from ajuste.report.visible import visible_line

_MOST_LINES: Final = 12  # configurations whose estimates are shown at once


class Progress(Display):
    """A display on standard error, from entering to leaving. Safe to call from several threads.

    ``metric`` is the first deciding one: its estimates are shown. ``max_seconds`` is the budget of time, ``allocation``
    what later blocks hold; ``clock`` gives seconds that only grow. On anything but a terminal, and with ``quiet``,
    nothing is shown.
    """

    def __init__(
        self,
        *,
        min_blocks: int,
        max_blocks: int,
        metric: Metric | None = None,
        max_seconds: float | None = None,
        allocation: Allocation = "all",
        quiet: bool = False,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(console, quiet=quiet)
        self._min_blocks = min_blocks
        self._max_blocks = max_blocks
        self._metric = metric
        self._max_seconds = max_seconds
        self._allocation: Allocation = allocation
        self._done = 0
        self._blocks: set[int] = set()
        self._pace: float | None = None  # seconds for each second of trials: less than 1 where several run at once
        self._spent: dict[str, float] = {}
        self._trials: Counter[str] = Counter()
        self._clock = clock
        self._started = clock()
        self._first_trial: float | None = None
        self._last_block: float | None = None
        self._running: Counter[tuple[str, int]] = Counter()
        self._statuses: Counter[str] = Counter()
        self._findings: tuple[Finding, ...] = ()

    def trial_started(self, configuration: str, block: int) -> None:
        with self._lock:
            self._said = ""
            if self._first_trial is None:
                self._first_trial = self._clock()
            self._running[configuration, block] += 1

    def trial_done(self, configuration: str, block: int, status: Status, seconds: float) -> None:
        """A trial has ended that took ``seconds``."""
        with self._lock:
            self._spent[configuration] = self._spent.get(configuration, 0.0) + seconds
            self._trials[configuration] += 1
            self._running[configuration, block] -= 1
            self._running += Counter()  # forgets what has ended
            self._statuses[status] += 1

    def block_done(self, block: int, findings: Sequence[Finding]) -> None:
        """A block that counts (no warm-up) is complete, and this is known after it."""
        with self._lock:
            self._blocks.add(block)
            self._done = len(self._blocks)
            self._last_block = self._clock()
            spent = sum(self._spent.values())
            if self._first_trial is not None and spent > 0:
                self._pace = (self._last_block - self._first_trial) / spent
            self._findings = tuple(findings)

    def seconds_left(self) -> float | None:
        """From what the open verdicts still need, and the mean time of a trial of each configuration; never more than
        the budget. ``None`` before the first block that was measured since entering.
        """
        with self._lock:
            if self._pace is None or self._last_block is None:
                return None
            since = self._clock() - self._last_block
            left = self._pace * self._remaining.seconds(self._mean_seconds) - since
            return max(0.0, min(left, self._budget_left))

    @property
    def _remaining(self) -> Remaining:
        return remaining(
            self._done,
            self._findings,
            min_blocks=self._min_blocks,
            max_blocks=self._max_blocks,
            allocation=self._allocation,
        )

    @property
    def _mean_seconds(self) -> dict[str, float]:
        return {name: spent / self._trials[name] for name, spent in self._spent.items()}

    @property
    def _budget_left(self) -> float:
        """Seconds of the budget of time."""
        spent = self._clock() - self._started
        return math.inf if self._max_seconds is None else self._max_seconds - spent

    def renderable(self) -> RenderableType:
        """The lines as they are now."""
        with self._lock:
            lines: list[RenderableType] = [Text(self._now_text()), Text(self._blocks_text())]
            estimates = self._estimates()
        return Group(*lines, estimates) if estimates is not None else Group(*lines)

    def _now_text(self) -> str:
        return self._now(", ".join(f"{visible_line(name)} (block {block})" for name, block in sorted(self._running)))

    def _blocks_text(self) -> str:
        parts = [f"{count_of(self._done, 'block')} done of at most {self._max_blocks:,}"]
        parts += [
            f"{count_of(self._statuses[status], 'trial')} {status}"
            for status in ("flagged", "failed")
            if self._statuses[status]
        ]
        left = self.seconds_left()
        if left is not None:
            most = self._remaining.at_most or left >= self._budget_left
            parts.append(f"{'at most' if most else 'about'} {duration(left)} left")
        return " · ".join(parts)

    def _estimates(self) -> Table | None:
        """The effects on the first deciding metric; the undecided ones first where there is no room for all."""
        if self._metric is None:
            return None
        mine = [verdict for verdict in self._findings if verdict.metric == self._metric.name]
        if not mine:
            return None
        styles = effect_style(mine, self._metric.unit)
        shown = mine
        if len(mine) > _MOST_LINES:
            shown = sorted(mine, key=lambda verdict: verdict.verdict != "undecided")[:_MOST_LINES]
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False, title_justify="left")
        table.title = Text(f"{visible_line(self._metric.title)} so far", style="dim")
        for justify in ("left", "right", "right", "left"):
            table.add_column(justify=justify, overflow="fold")
        for verdict in shown:
            style = styles[verdict.scale]
            word = Text(verdict.verdict, style=LOOKS[verdict.verdict].style)
            name = Text(visible_line(verdict.subject))
            table.add_row(name, Text(style.estimate(verdict)), Text(style.interval(verdict)), word)
        if len(mine) > len(shown):
            table.add_row(Text(f"and {len(mine) - len(shown)} more", style="dim"))
        return table
