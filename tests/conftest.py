"""What several test folders share."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

from ajuste.home import home

# A busy machine is slow for no fault of the code: no test of ours asserts a time.
settings.register_profile("ajuste", deadline=None)
settings.load_profile("ajuste")


@pytest.fixture
def ajuste_home(tmp_path: Path) -> Path:
    """A new AJUSTE_HOME whose cache is the ordinary one, so that kernels are downloaded only once."""
    root = tmp_path / "ajuste-home"
    root.mkdir()
    cache = home().cache
    cache.mkdir(parents=True, exist_ok=True)
    (root / "cache").symlink_to(cache)
    return root
