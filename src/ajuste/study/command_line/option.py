"""Options of a command line as fields of a dataclass. ``ajuste.cli`` makes Typer's of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
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

_KEY: Final = "option"


def panel_order(panel: str) -> int:
    """Return the place of ``panel`` in the help."""
    return _PANELS.index(panel) if panel in _PANELS else 0


@dataclass(frozen=True)
class Option:
    """An option as the help shows it. ``least`` is the smallest number; ``name`` is the field's if none is given."""

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
    """Return a dataclass field that is an option."""
    return field(default=default, metadata={_KEY: Option(what, metavar, panel, least, name)})


def texts(what: str, metavar: str | None = None, panel: str | None = None, *, name: str = "") -> Any:
    """Return a field that is a repeatable option."""
    return option(what, metavar, panel, default=(), name=name)


def flag(what: str, panel: str | None = None) -> Any:
    """Return a field that is an option without a value."""
    return option(what, None, panel, default=False)


def options_of(bundle: Any) -> dict[str, Option]:
    """Return the options of a dataclass, by field."""
    declared = {member.name: member.metadata[_KEY] for member in fields(bundle) if _KEY in member.metadata}
    return {
        name: replace(entry, name=entry.name or f"--{name.strip('_').replace('_', '-')}")
        for name, entry in declared.items()
    }


def valued_options(bundle: Any) -> Iterator[tuple[str, Option, Any]]:
    """Yield field, option and value of each option that has one."""
    for name, entry in options_of(bundle).items():
        value = getattr(bundle, name)
        if value is not None and value is not False and value != ():
            yield name, entry, value


def words_of(bundle: Any) -> list[str]:
    """Return the options that have a value as words of a command line."""
    return [word for _, entry, value in valued_options(bundle) for word in option_words(entry.name, value)]


def option_words(name: str, value: Any) -> list[str]:
    """Return the words that give the option ``name`` this value: a flag's is True, a repeatable one's are several."""
    if value is True:
        return [name]
    values = value if isinstance(value, (tuple, list)) else (value,)
    return [word for each in values for word in (name, str(each))]
