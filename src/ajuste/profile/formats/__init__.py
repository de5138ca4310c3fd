"""The formats of an export, one file each: ``render(export)`` makes its files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from ajuste.profile.formats import ansible, shell, sysctl, systemd, tuned
from ajuste.profile.formats.document import Export, Rendered

Format = Literal["tuned", "sysctl.d", "systemd", "ansible", "shell"]

RENDER: Final[dict[Format, Callable[[Export], Rendered]]] = {
    "tuned": tuned.render,
    "sysctl.d": sysctl.render,
    "systemd": systemd.render,
    "ansible": ansible.render,
    "shell": shell.render,
}
