"""A small Kconfig tree, on disk and read."""

from __future__ import annotations

from pathlib import Path

import pytest

from ajuste_kernels.kconfig_reader import KconfigTree
from small_kconfig import write_source


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_source(tmp_path / "linux")


@pytest.fixture
def tree(source: Path, monkeypatch: pytest.MonkeyPatch) -> KconfigTree:
    """The tree, read in this process: reading it by a process of its own is slow."""
    for name, value in {"srctree": str(source), "KERNELVERSION": "6.1.9-rc1"}.items():
        monkeypatch.setenv(name, value)
    return KconfigTree()
