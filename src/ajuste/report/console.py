"""The one console: nothing that is printed on it, or on standard output and error beside it, is hidden."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr
from typing import IO, TYPE_CHECKING, Any, Final, cast

import rich.console
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from ajuste.model.wording import unbroken, visible

if TYPE_CHECKING:
    from ajuste.model.verdict import Word


# Stands for a blank where no line breaks: rich breaks at every kind of blank. It is of no script, and not printed.
_JOINT: Final = "\ue000"


def joined(text: Text) -> Text:
    """Return ``text`` with its numbers kept on one line with their units."""
    text.plain = unbroken(text.plain, _JOINT)
    return text


class Console(rich.console.Console):
    """A console on which text is text: no markup or pictures in it, and nothing hidden. Styles are given apart."""

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
        """Leave the cursor as it is: a program that is killed could not bring back a hidden one."""
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
    """Print what others write to standard error above what ``console`` displays meanwhile."""
    above = _Above(console, sys.stderr)
    with redirect_stderr(cast("IO[str]", above)):
        try:
            yield
        finally:
            above.finish()


# What is printed at once: nothing cut off, no trailing blanks, ASCII where nothing else can be shown.


INDENT: Final = 2
WORD_STYLES: Final[dict[Word, str]] = {
    "improves": "bold green",
    "worsens": "bold red",
    "differs": "bold blue",
    "equivalent": "cyan",
    "undecided": "yellow",
}
"""How the words of verdicts look."""

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


class Sheet:
    """What is printed at once on a console, text by text and table by table."""

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
