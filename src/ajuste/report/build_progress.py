"""What happens while a kernel is built: on a terminal one line that stays in place, elsewhere nothing."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console, RenderableType
from rich.text import Text

from ajuste.report.display import Display
from ajuste.report.format import count_of, duration

_SECONDS_BEFORE_GUESSING = 5.0


class BuildProgress(Display):
    """Objects that were compiled, of about how many, and how long the rest takes. ``clock`` gives seconds."""

    def __init__(
        self, *, quiet: bool = False, console: Console | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(console, quiet=quiet)
        self._clock = clock
        self._began: float | None = None
        self._expected: int | None = None
        self._count = 0

    def say(self, text: str) -> None:
        with self._lock:
            self._began = None
            super().say(text)

    def compiling(self, expected: int | None) -> None:
        """Make begins to compile about ``expected`` objects, if that is known."""
        with self._lock:
            self._began, self._expected, self._count = self._clock(), expected, 0

    def compiled(self, count: int) -> None:
        """So many objects have been compiled since then."""
        with self._lock:
            self._count = count

    def renderable(self) -> RenderableType:
        with self._lock:
            if self._began is None:
                return Text(self._now(""), no_wrap=True, overflow="ellipsis")
            return Text(self._counted(self._clock() - self._began), no_wrap=True, overflow="ellipsis")

    def _counted(self, seconds: float) -> str:
        compiled = count_of(self._count, "object")
        if self._expected is None or self._count >= self._expected:
            return f"Compiling: {compiled}, {duration(seconds)}"
        text = f"Compiling: {compiled} of about {self._expected:,}"
        if self._count and seconds >= _SECONDS_BEFORE_GUESSING:
            text += f", about {duration(seconds / self._count * (self._expected - self._count))} left"
        return text
