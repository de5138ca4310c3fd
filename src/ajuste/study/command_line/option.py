"""Options of a command line as fields of a dataclass. ``ajuste.cli`` makes Typer's of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

# The panels of the help, in its order.

SETTINGS: Final = "Settings"
COMMAND: Final = "Command"
WHERE: Final = "Kernel and machine"
VERDICT: Final = "Verdict"
OUTPUT: Final = "Output"
GUEST: Final = "Guest"
REBOOTS: Final = "Across reboots"
BUILD: Final = "Kernels to build"
MACHINES: Final = "Other machines"
RARE: Final = "Rarely needed"
RARE_PANELS: Final = frozenset({GUEST, REBOOTS, BUILD, MACHINES, RARE})
_PANELS: Final = (SETTINGS, COMMAND, WHERE, VERDICT, OUTPUT, GUEST, REBOOTS, BUILD, MACHINES, RARE)

OPTION: Final = "option"
"""The key of an ``Option`` in the metadata of a field."""


def panel_order(panel: str) -> int:
    """Return the place of ``panel`` in the help."""
    return _PANELS.index(panel) if panel in _PANELS else 0


@dataclass(frozen=True)
class Option:
    """What the help says of an option. ``least`` is the smallest number; ``name`` is the field's if none is given."""

    help: str
    metavar: str | None = None
    panel: str | None = None
    least: int | None = None
    name: str = ""


def option(
    what: str,
    metavar: str | None = None,
    panel: str | None = None,
    *,
    default: object = None,
    least: int | None = None,
    name: str = "",
) -> Any:
    """A field that is an option."""
    return field(default=default, metadata={OPTION: Option(what, metavar, panel, least, name)})


def texts(what: str, metavar: str | None = None, panel: str | None = None, *, name: str = "") -> Any:
    """A field that is a repeatable option."""
    return option(what, metavar, panel, default=(), name=name)


def flag(what: str, panel: str | None = None) -> Any:
    """A field that is an option without a value."""
    return option(what, None, panel, default=False)
