"""The one console, and the display of progress on it. The display hides no other output."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, suppress
from typing import IO, TYPE_CHECKING, Any, Final, Self, cast

import rich.console
from rich.cells import cell_len
from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, Group, RenderableType, RenderResult
from rich.constrain import Constrain
from rich.live import Live
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from ajuste.model.wording import Ongoing, unbroken, visible, visible_line
from ajuste.report.format import duration

if TYPE_CHECKING:
    from ajuste_stats.terms import Word


# A display on standard error: on a terminal a few lines that stay in place, elsewhere a line now and then.


_LOG: Final = logging.getLogger(__name__)

BEAT_SECONDS: Final = 30.0
"""Interval of the lines printed on anything but a terminal: readers of a log, or of CI, see that it goes on."""


SEPARATOR: Final = " · "
# What takes longer is shown with its time.
_NOTICED_SECONDS: Final = 3.0
_UNKNOWN: Final = "Working"
# Stay free at the end of each line: a terminal writes ^C there, which must not begin another line.
_ECHO_COLUMNS: Final = 2

# Stands for a blank where no line breaks: rich breaks at every kind of blank. It is of no script, and not printed.
_JOINT: Final = "\ue000"

INDENT: Final = 2

WORD_STYLES: Final[dict[Word, str]] = {
    "improves": "bold green",
    "worsens": "bold red",
    "differs": "bold blue",
    "equivalent": "cyan",
    "undecided": "yellow",
}
"""The styles of the words of verdicts."""

_ASCII: Final = str.maketrans(
    {
        "−": "-",
        "–": "-",
        "±": "+-",
        "×": "x",
        "…": "..",
        "µ": "u",
        "μ": "u",
        "∞": "inf",
        "≠": "!=",
        "≈": "~",
        "·": "|",
        "→": "->",
    }
)


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
    """The current activity of a command, on one line. With ``log`` every message stays, on its own line, also before
    entering and after leaving; below them is how far the last has come.
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


def joined(text: Text) -> Text:
    """Return ``text`` with its numbers kept on one line with their units."""
    text.plain = unbroken(text.plain, _JOINT)
    return text


class Console(rich.console.Console):
    """A console that prints text literally: no markup, no emoji codes, control characters visible. Styles are separate
    arguments.
    """

    def __init__(self, *, file: IO[str] | None = None, stderr: bool = False, **options: Any) -> None:
        stream = file or (sys.stderr if stderr else sys.stdout)
        # `render` makes text visible. Streams that do so too would spoil the console's own codes.
        while (inner := getattr(stream, "rich_proxied_file", None)) is not None:
            stream = inner
        if not (stream and stream.isatty()):
            # FORCE_COLOR asks for colours, also in a file, but not for lines that are written over.
            options.setdefault("force_interactive", options.get("force_terminal", False))
        super().__init__(file=stream, **{"markup": False, "emoji": False, "highlight": False, **options})

    def show_cursor(self, show: bool = True) -> bool:
        """Keep the cursor visible: a program that is killed could not restore a hidden one."""
        return False

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible(text), **options)

    def render(
        self, renderable: rich.console.RenderableType, options: rich.console.ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text.replace(_JOINT, " ")))


class _Above:
    # Takes text for `stream`, line by line, and prints it above what a console displays there.
    def __init__(self, console: Console, stream: IO[str]) -> None:
        self._console = console
        self._stream = stream
        self._line = ""

    def write(self, text: str) -> int:
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            self._console.print(Text(visible(line)))  # Text drops some controls silently.
        return len(text)

    def finish(self) -> None:
        if self._line:
            self.write("\n")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def errors_above(console: Console) -> Iterator[None]:
    """Print the standard error of others above the current display of ``console``."""
    above = _Above(console, sys.stderr)
    with redirect_stderr(cast("IO[str]", above)):
        try:
            yield
        finally:
            above.finish()


# What is printed at once: nothing cut off, no trailing blanks, ASCII where nothing else can be shown.


class Sheet:
    """A collection of texts and tables that is printed at once on a console."""

    def __init__(self, console: rich.console.Console) -> None:
        self.console = console
        self.width = console.width
        self._started = False

    def say(self, text: str | Text, style: str = "", indent: int = 0) -> None:
        """Print a paragraph, wrapped at words; a longer word is broken, never cut."""
        self._started = True
        paragraph = joined(Text(text, style=style) if isinstance(text, str) else text)
        for line in paragraph.wrap(self.console, max(1, self.width - indent), overflow="fold"):
            self.console.print(Text(" " * indent) + line, soft_wrap=True)

    def line(self, text: str) -> None:
        """Print one line of any length, for what people copy: paths and commands."""
        self._started = True
        self.console.print(Text(text), soft_wrap=True)

    def heading(self, text: str) -> None:
        self.blank()
        self.say(text, style="bold underline" if self.console.is_terminal else "")

    def blank(self) -> None:
        """Print an empty line, but not as the first one."""
        if self._started:
            self.console.print()

    def table(self, table: Table, indent: int = INDENT) -> None:
        self._started = True
        self.console.print(Padding(table, (0, 0, 0, indent), expand=False))

    def fits(self, table: Table, indent: int = INDENT) -> bool:
        """Return whether no cell would have to wrap."""
        unlimited = self.console.options.update(max_width=100_000)
        return table.__rich_measure__(self.console, unlimited).maximum + indent <= self.width


@contextmanager
def sheet(console: rich.console.Console) -> Iterator[Sheet]:
    """Yield a sheet that is written to ``console`` in one piece at the end."""
    with console.capture() as capture:
        yield Sheet(console)
    text = "".join(f"{line.rstrip()}\n" for line in capture.get().replace(_JOINT, " ").splitlines())
    encoding = console.encoding.lower().replace("_", "-")
    if not encoding.startswith("utf"):
        text = text.translate(_ASCII).encode(encoding, errors="backslashreplace").decode(encoding)
    console.file.write(text)
    console.file.flush()


def plain_table() -> Table:
    """Return a table without lines, which also reads well in a log."""
    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
