"""The one console: nothing that is printed on it, or on standard output and error beside it, is hidden."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

import rich.console
from rich.segment import Segment
from rich.text import Text

from ajuste.model.wording import visible, visible_json, visible_line


class Console(rich.console.Console):
    """A console on which text is text: no markup or pictures in it, and nothing hidden. Styles are given apart."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"markup": False, "emoji": False, "highlight": False, **options})

    @contextmanager
    def telling(self) -> Iterator[Callable[[str], None]]:
        """Shows what happens now, beside something that turns; nothing remains of it."""
        with self.status("") as status:
            yield lambda text: status.update(Text(visible_line(text)))

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible(text), **options)

    def render(
        self, renderable: rich.console.RenderableType, options: rich.console.ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))


class _Visible:
    """A text stream in which nothing is hidden. A ``Console`` writes to ``rich_proxied_file``, beside it."""

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        self.rich_proxied_file.write(visible_json(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


@contextmanager
def made_visible() -> Iterator[None]:
    """Meanwhile nothing is hidden in what is written to standard output and error, and nothing in it fails for what
    their encoding does not have.
    """
    before = sys.stdout, sys.stderr
    for stream in before:
        # Not where the descriptor became another file meanwhile, in which the old place cannot be found.
        if hasattr(stream, "reconfigure"):
            with suppress(OSError):
                stream.reconfigure(errors="backslashreplace")
    sys.stdout, sys.stderr = _Visible(before[0]), _Visible(before[1])
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
