from __future__ import annotations

from pathlib import Path

import pytest

from installed import Installed, build, install


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def core(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The core without any other package."""
    return install(wheel, tmp_path_factory.mktemp("core") / "environment", alone=True)


@pytest.fixture
def installed(wheel: Path, tmp_path: Path) -> Installed:
    return install(wheel, tmp_path / "environment")
