"""Ajuste: an experiment lab for Linux configuration."""

import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ajuste.lab.notebook import MeasuredRun, compare, load, measure

__all__ = ["MeasuredRun", "compare", "load", "measure"]

logging.getLogger(__name__).addHandler(logging.NullHandler())  # what happens is no output (see ajuste.cli.log)


def __getattr__(name: str) -> Any:
    """What notebooks use is loaded when it is first used: every command imports this package and must start at once."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ajuste.lab import notebook

    return getattr(notebook, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
