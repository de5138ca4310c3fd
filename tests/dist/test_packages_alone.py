"""Tests of each package pass with the core alone, without the other packages."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from installed import ROOT, install

PACKAGES = sorted(path.name for path in (ROOT / "packages").iterdir())


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("package", PACKAGES)
def test_its_tests_pass_alone(package: str, wheel: Path, tmp_path: Path) -> None:
    alone = tmp_path / "wheels"
    alone.mkdir()
    for each in (wheel, *wheel.parent.glob(f"ajuste_{package}-*.whl")):
        (alone / each.name).symlink_to(each)
    installed = install(alone / wheel.name, tmp_path / "environment")
    others = [name for name in PACKAGES if name != package and (installed.packages / f"ajuste_{name}").exists()]
    assert others == []
    quick = "not slow and not vm and not browser and not machine and not network"
    done = subprocess.run(
        [
            installed.prefix / "bin" / "python",
            "-m",
            "pytest",
            "-q",
            "-n",
            "0",
            "-m",
            quick,
            ROOT / "packages" / package,
        ],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
