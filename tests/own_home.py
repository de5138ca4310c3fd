"""Homes of the tests' own, with the cache of the ordinary one: a kernel is downloaded once."""

from __future__ import annotations

from pathlib import Path

from ajuste.machine.home import home


def own_home(path: Path) -> Path:
    """A new AJUSTE_HOME at ``path``."""
    path.mkdir(parents=True)
    cache = home().cache
    cache.mkdir(parents=True, exist_ok=True)
    (path / "cache").symlink_to(cache)
    return path
