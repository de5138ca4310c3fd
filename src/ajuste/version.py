"""The version of Ajuste that is running."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def ajuste_version() -> str:
    """As installed; ``unknown`` where the package runs from a bare tree."""
    try:
        return version("ajuste")
    except PackageNotFoundError:
        return "unknown"
