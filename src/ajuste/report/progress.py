"""Progress of a study that runs, or of a kernel that is built."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ajuste.design.blocks import Allocation
from ajuste.design.stopping import Remaining, remaining
from ajuste.model.metric import Metric
from ajuste.model.trial import Status
from ajuste.model.verdict import Finding
from ajuste.model.wording import block_name, count_of, visible_line
from ajuste.report.console import INDENT, SEPARATOR, WORD_STYLES, Console, Display
from ajuste.report.format import duration, study_labels, study_settings
from ajuste.report.verdicts import effect_style

if TYPE_CHECKING:
    from ajuste.study.resolved import ResolvedStudy

_MOST_LINES: Final = 12  # configurations whose estimates are shown at once


class TrialDisplay(Display):
    """A display of trials that says configurations and blocks as people do."""

    _names: Mapping[str, str] = {}
    _short: Mapping[str, str] = {}
    _heading = ""
    _warm_up = 0

    def study_begins(self, study: ResolvedStudy) -> None:
        # Use the names of `study` from now on; a search repeats it when it has grown.
        labels = study_labels(study)
        with self._lock:
            self._names = study_settings(study)
            self._short = {
                resolved.configuration.name: labels.short(resolved.configuration) for resolved in study.configurations
            }
            self._heading = labels.heading
            self._warm_up = study.study.design.warm_up

    def name(self, configuration: str) -> str:
        """Return a configuration in a person's words."""
        return self._names.get(configuration) or visible_line(configuration)


class Progress(TrialDisplay):
    """A display on standard error, from entering to leaving. Safe to call from several threads.

    ``metric`` is the first deciding one: its estimates are shown. ``max_seconds`` is the budget of time, ``allocation``
    what later blocks hold; ``clock`` gives seconds that only grow.
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
        super().__init__(console, quiet=quiet, clock=clock)
        self._min_blocks = min_blocks
        self._max_blocks = max_blocks
        self._metric = metric
        self._max_seconds = max_seconds
        self._allocation: Allocation = allocation
        self._blocks: set[int] = set()
        self._looked = 0  # blocks at the last look
        self._pace: float | None = None  # seconds for each second of trials: less than 1 where several run at once
        self._spent: dict[str, float] = {}
        self._trials: Counter[str] = Counter()
        self._started = clock()
        self._first_trial: float | None = None
        self._last_look: float | None = None
        self._running: Counter[tuple[str, int]] = Counter()
        self._statuses: Counter[str] = Counter()
        self._findings: tuple[Finding, ...] = ()

    def trial_started(self, configuration: str, block: int) -> None:
        with self._lock:
            self._message = ""
            if self._first_trial is None:
                self._first_trial = self._clock()
            self._running[configuration, block] += 1

    def trial_done(self, configuration: str, block: int, status: Status, seconds: float) -> None:
        """Record a trial that took ``seconds``."""
        with self._lock:
            self._spent[configuration] = self._spent.get(configuration, 0.0) + seconds
            self._trials[configuration] += 1
            self._running[configuration, block] -= 1
            self._running += Counter()  # forgets what has ended
            self._statuses[status] += 1

    def block_done(self, block: int, findings: Sequence[Finding] | None) -> None:
        """Record a complete block (no warm-up), and what is known after it if that is new."""
        with self._lock:
            self._blocks.add(block)
            if findings is None and self._last_look is not None:
                return
            self._looked = len(self._blocks)
            self._last_look = self._clock()
            spent = sum(self._spent.values())
            if self._first_trial is not None and spent > 0:
                self._pace = (self._last_look - self._first_trial) / spent
            self._findings = tuple(findings or ())

    def seconds_left(self) -> float | None:
        """Return what the open verdicts still need, at most the budget; ``None`` before the first block.

        By the mean time of a trial of each configuration since entering.
        """
        with self._lock:
            if self._pace is None or self._last_look is None:
                return None
            since = self._clock() - self._last_look
            mean_seconds = {name: spent / self._trials[name] for name, spent in self._spent.items()}
            left = self._pace * self._remaining.seconds(mean_seconds) - since
            return max(0.0, min(left, self._budget_left))

    @property
    def _remaining(self) -> Remaining:
        return remaining(
            self._looked,
            self._findings,
            min_blocks=self._min_blocks,
            max_blocks=self._max_blocks,
            allocation=self._allocation,
        )

    @property
    def _budget_left(self) -> float:
        # Seconds of the budget of time.
        spent = self._clock() - self._started
        return math.inf if self._max_seconds is None else self._max_seconds - spent

    def renderable(self) -> RenderableType:
        with self._lock:
            return Group(super().renderable(), *self._estimates())

    def lines(self) -> Sequence[str]:
        running = ", ".join(
            f"{self.name(name)} ({block_name(block, self._warm_up)})" for name, block in sorted(self._running)
        )
        has_begun = self._blocks or self._first_trial is not None
        return [self._now(running), *([self._blocks_text()] if has_begun else [])]

    def _blocks_text(self) -> str:
        parts = [f"{count_of(len(self._blocks), 'block')} done of at most {self._max_blocks:,}"]
        parts += [
            f"{count_of(self._statuses[status], 'trial')} {status}"
            for status in ("flagged", "failed")
            if self._statuses[status]
        ]
        left = self.seconds_left()
        if not self._blocks and self._max_seconds is not None and self._budget_left < 0:
            parts.append(f"beyond the limit of {duration(self._max_seconds)}: the first block is completed in any case")
        if left is not None and not self._message:  # What goes on outside trials has its own time.
            most = self._remaining.at_most or left >= self._budget_left
            parts.append(f"{'at most' if most else 'about'} {duration(left)} left")
        return SEPARATOR.join(parts)

    def _estimates(self) -> Sequence[RenderableType]:
        # The open ones come first where there is no room for all.
        if self._metric is None:
            return ()
        mine = [verdict for verdict in self._findings if verdict.metric == self._metric.name]
        if not mine:
            return ()
        styles = effect_style(mine, self._metric.unit)
        listed = mine
        if len(mine) > _MOST_LINES:
            listed = sorted(mine, key=lambda verdict: not verdict.is_open)[:_MOST_LINES]
        rows = []
        for verdict in listed:
            style = styles[verdict.scale]
            more = ", not yet precise enough" if verdict.verdict != "undecided" and verdict.is_open else ""
            word = Text(f"{verdict.verdict}{more}", style=WORD_STYLES[verdict.verdict])
            name = Text(self._short.get(verdict.subject) or visible_line(verdict.subject))
            rows.append((name, Text(style.estimate(verdict)), Text(style.interval(verdict)), word))
        rest = len(mine) - len(listed)
        by = f", by {self._heading}" if self._heading else ""
        title = Text(f"{visible_line(self._metric.title)} so far{by}", style="dim")
        return title, _Estimates(rows), *([Text(f"and {rest} more", style="dim")] if rest else [])


class _Estimates:
    # A row for each configuration: name, estimate, interval, verdict. Where that is too wide, the name has a line of
    # its own.
    def __init__(self, rows: Sequence[tuple[Text, Text, Text, Text]]) -> None:
        self._rows = rows

    def __rich_console__(self, console: RichConsole, options: ConsoleOptions) -> RenderResult:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
        for justify in ("left", "right", "right", "left"):
            table.add_column(justify=justify)
        for row in self._rows:
            table.add_row(*row)
        unlimited = options.update(max_width=10 * options.max_width)
        if Measurement.get(console, unlimited, table).maximum <= options.max_width:
            yield table
            return
        for name, *figures in self._rows:
            yield name
            yield Padding(Text("  ").join(figures), (0, 0, 0, INDENT))


# What happens while a kernel is built: one line.


_SECONDS_BEFORE_GUESSING = 5.0


class BuildProgress(Display):
    """Objects that were compiled, of about how many, and how long the rest takes. ``clock`` gives seconds."""

    def __init__(
        self, *, quiet: bool = False, console: Console | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(console, quiet=quiet, clock=clock)
        self._began: float | None = None
        self._expected: int | None = None
        self._count = 0

    def say(self, text: str) -> None:
        with self._lock:
            self._began = None
            super().say(text)

    def compiling(self, expected: int | None) -> None:
        """Begin to count about ``expected`` objects, if that is known."""
        with self._lock:
            self._began, self._expected, self._count = self._clock(), expected, 0

    def compiled(self, count: int) -> None:
        """Record how many objects have been compiled since then."""
        with self._lock:
            self._count = count

    def lines(self) -> Sequence[str]:
        return [self._now() if self._began is None else self._counted(self._clock() - self._began)]

    def _counted(self, seconds: float) -> str:
        compiled = count_of(self._count, "object")
        if self._expected is None or self._count >= self._expected:
            return f"Compiling: {compiled}{SEPARATOR}{duration(seconds)}"
        text = f"Compiling: {compiled} of about {self._expected:,}"
        if self._count and seconds >= _SECONDS_BEFORE_GUESSING:
            text += f"{SEPARATOR}about {duration(seconds / self._count * (self._expected - self._count))} left"
        return text
