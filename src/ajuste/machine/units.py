"""Units of systemd: where those of this machine are, and how texts are written in them."""

from __future__ import annotations

from typing import Final

DIRECTORY: Final = "etc/systemd/system"
"""The directory of the units that this machine's administrator adds."""


def unit_assignment(name: str, value: str) -> str:
    """Return one word of ``Environment=`` (systemd.exec(5)), in which a dollar sign is only itself."""
    return f'"{_inside(f"{name}={value}")}"'


def unit_word(text: str) -> str:
    """Return one word of a unit's command (systemd.service(5), systemd.syntax(7)) without variables and specifiers."""
    inside = _inside(text).replace("$", "$$")
    return f'"{inside}"' if inside != text or not text or any(c.isspace() or c in "'\";" for c in text) else text


def unit_path(text: str) -> str:
    """Return a path that is no word of a list."""
    return text.replace("%", "%%")


def _inside(text: str) -> str:
    return unit_path(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
