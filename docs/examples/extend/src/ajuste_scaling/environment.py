"""A file of NAME=VALUE lines, for a script that reads it."""

from __future__ import annotations

from typing import Final

from ajuste_profiles.export import Export, ExportFile, Rendered, beside_settings

NAME: Final = "environment"


def render(export: Export) -> Rendered:
    """``NAME.env``."""
    text = "".join(f"{setting.tunable}={setting.became}\n" for setting in export.settings)
    files = (ExportFile(f"{export.name}.env", text),) if text else ()
    return Rendered(files, tuple(beside_settings(export)))
