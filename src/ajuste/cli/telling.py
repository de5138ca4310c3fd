"""What happens now, for whoever watches a command."""

from __future__ import annotations

from ajuste.report.visible import Console
from ajuste.target.target import Say


def telling(*, quiet: bool = False) -> Say:
    """Tells on stderr what happens now, a line each; nothing if ``quiet``."""
    if quiet:
        return lambda _: None
    console = Console(stderr=True)
    return lambda text: console.print(text, style="dim", soft_wrap=True)
