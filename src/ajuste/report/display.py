"""A display on standard error: on a terminal a few lines that stay in place, elsewhere a line now and then."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from typing import Final, Self

from rich.cells import cell_len
from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, Group, RenderableType, RenderResult
from rich.constrain import Constrain
from rich.live import Live
from rich.text import Text

from ajuste.model.wording import Ongoing, visible_line
from ajuste.report.console import Console, errors_above, joined
from ajuste.report.format import duration

_LOG: Final = logging.getLogger(__name__)

BEAT_SECONDS: Final = 30.0
"""On anything but a terminal a line is printed so often: who reads a log, or waits in CI, sees that it goes on."""


SEPARATOR: Final = " · "
# What takes longer is shown with its time.
_NOTICED_SECONDS: Final = 3.0
_UNKNOWN: Final = "Working"
# Stay free at the end of each line: a terminal writes ^C there, which must not begin another line.
_ECHO_COLUMNS: Final = 2


class _Facts:
    # Facts with a separator between them. A line breaks there if it can, and else between words.
    def __init__(self, text: str) -> None:
        self._text = text

    def __rich_console__(self, console: RichConsole, options: ConsoleOptions) -> RenderResult:
        line = ""
        for fact in self._text.split(SEPARATOR):
            longer = f"{line}{SEPARATOR}{fact}" if line else fact
            if line and cell_len(longer) > options.max_width:
                yield joined(Text(line))
                longer = fact
            line = longer
        yield joined(Text(line))


class Display:
    """Shown from entering to leaving. Safe to call from several threads: what is shown is read and changed under the
    ``_lock``. On anything but a terminal a plain line is printed every ``beat_s``; with ``quiet`` nothing is shown.
    """

    beat_s: float | None = BEAT_SECONDS

    def __init__(self, console: Console | None, *, quiet: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console or Console(stderr=True)
        self._quiet = quiet
        self._clock = clock
        self._stack = ExitStack()
        self._left = threading.Event()
        self._lock = threading.RLock()
        self._message = ""
        self._message_s = 0.0

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            if self._console.is_interactive and not self._quiet:
                stack.enter_context(errors_above(self._console))
                live = Live(
                    get_renderable=self._frame,
                    console=self._console,
                    transient=True,
                    redirect_stdout=False,
                    redirect_stderr=False,
                )
                stack.callback(live.stop)
                live.start()
            elif not self._quiet and self.beat_s is not None:
                beating = threading.Thread(target=self._beat, args=(self.beat_s,), name="progress", daemon=True)
                beating.start()
                stack.callback(beating.join)
            stack.callback(self._left.set)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _frame(self) -> RenderableType:
        # No lines in the end: those beyond the upper edge of the terminal could not be removed.
        if self._left.is_set():
            return ""
        return Constrain(self.renderable(), max(1, self._console.width - _ECHO_COLUMNS))

    def _beat(self, every_s: float) -> None:
        while not self._left.wait(every_s):
            with self._lock:
                line = SEPARATOR.join(self.lines())
            if line:
                self._print(Text(line))

    def _print(self, text: Text) -> None:
        # Break lines between words on a terminal, nowhere else.
        with suppress(OSError, ValueError):  # Nobody reads it any more.
            self._console.print(joined(text), soft_wrap=not self._console.is_interactive)

    def lines(self) -> Sequence[str]:
        """Return what is shown now, a text for each line, without tables."""
        raise NotImplementedError

    def say(self, text: str) -> None:
        """Show what happens outside trials, in a few words: ``booting debian:5.10``."""
        if not isinstance(text, Ongoing):
            _LOG.info("progress", extra={"text": text})
        with self._lock:
            self._message, self._message_s = text, self._clock()

    def warn(self, text: str) -> None:
        """Print a line that stays: what a person should know before the end."""
        _LOG.warning("progress", extra={"text": text})
        if not self._quiet:
            self._print(Text(visible_line(text)))

    def renderable(self) -> RenderableType:
        """Return the lines as they are now."""
        with self._lock:
            return Group(*map(_Facts, self.lines()))

    def _now(self, running: str = "") -> str:
        if running:
            return f"Running {running}"
        seconds = self._clock() - self._message_s
        untimed = isinstance(self._message, Ongoing) or seconds < _NOTICED_SECONDS
        took = "" if untimed else f"{SEPARATOR}{duration(seconds)}"
        return f"{visible_line(self._message)}{took}" if self._message else _UNKNOWN


class Activity(Display):
    """What a command does now, on one line. With ``log`` all that is said stays, a line each, also before entering and
    after leaving; below them is how far the last has come.
    """

    def __init__(self, *, log: bool = False, quiet: bool = False, console: Console | None = None) -> None:
        super().__init__(console, quiet=quiet)
        self._log = log

    def say(self, text: str) -> None:
        super().say(text)
        if self._log and not self._quiet and not isinstance(text, Ongoing):
            self._print(Text(visible_line(text), style="dim"))

    def lines(self) -> Sequence[str]:
        now = self._now()
        is_logged = now in (visible_line(self._message), _UNKNOWN) and not isinstance(self._message, Ongoing)
        return [] if self._log and is_logged else [now]
