"""What the wheel of ajuste-guest carries besides Python: the sources of kernel modules.

Hatchling calls it (packages/guest/pyproject.toml).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Carried(BuildHookInterface[Any]):
    """The build hook of the wheel. An editable installation finds the sources in the tree."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Say which files the wheel has besides the package."""
        if version != "editable":
            build_data["force_include"][str(Path(self.root).parents[1] / "native" / "module")] = "ajuste_guest/module"
