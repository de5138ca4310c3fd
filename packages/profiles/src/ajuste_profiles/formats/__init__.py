"""The formats of an export, one module each: its ``NAME``, and ``render(export)``, which makes its files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType

from ajuste.model.plugins import modules
from ajuste_profiles.export import Export, Rendered


@cache
def renderers() -> Mapping[str, Callable[[Export], Rendered]]:
    """Return all formats by name."""
    return MappingProxyType(
        {module.NAME: module.render for module in modules(sys.modules[__name__], "exports").values()}
    )


def default_format(export: Export) -> str:
    """Return the format if none is chosen: ``shell``, or ``systemd`` where all that is set belongs to a process."""
    return "shell" if renderers()["shell"](export).files else "systemd"
