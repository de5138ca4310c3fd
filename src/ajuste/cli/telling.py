"""What happens now, for whoever watches a command."""

from __future__ import annotations

from rich.console import Console

from ajuste.target.target import Say


def telling(*, quiet: bool = False) -> Say:
    """Tells on stderr what happens now, a line each; nothing if ``quiet``."""
    if quiet:
        return lambda _: None
    console = Console(stderr=True)
    return lambda text: console.print(text, markup=False, highlight=False, style="dim", soft_wrap=True)
