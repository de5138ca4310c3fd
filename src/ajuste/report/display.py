"""A display on standard error: on a terminal a few lines that stay in place, elsewhere nothing."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

import rich.console
from rich.live import Live

from ajuste.report.visible import Console, visible_line


class Display:
    """Shown from entering to leaving. Safe to call from several threads: what is shown is read and changed under the
    ``_lock``. On anything but a terminal, and with ``quiet``, nothing is shown.
    """

    def __init__(self, console: rich.console.Console | None, *, quiet: bool) -> None:
        self._console: rich.console.Console = console or Console(stderr=True)
        self._shown = self._console.is_terminal and not quiet
        self._lock = threading.RLock()
        self._live: Live | None = None
        self._said = ""

    def __enter__(self) -> Self:
        if self._shown:
            self._live = Live(
                get_renderable=self.renderable, console=self._console, refresh_per_second=4, transient=True
            )
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def say(self, text: str) -> None:
        """What happens outside trials, in a few words: ``booting debian:5.10``."""
        with self._lock:
            self._said = text

    def renderable(self) -> rich.console.RenderableType:
        """The lines as they are now."""
        raise NotImplementedError

    def _now(self, running: str) -> str:
        """What runs, or else what was said last."""
        return f"Running {running}" if running else visible_line(self._said) or "Working"
