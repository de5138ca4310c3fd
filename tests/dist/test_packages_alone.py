"""Tests of each package pass with the core alone; those of the statistics pass without it, too."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from installed import ROOT, Installed, install

STATISTICS = "stats"
"""The package that the core needs; all others need the core."""
PACKAGES = sorted(path.name for path in (ROOT / "packages").iterdir())
QUICK = "not slow and not vm and not browser and not machine and not network"


def needs(package: str) -> list[str]:
    """The packages that a package needs, by its metadata, with itself and the statistics."""
    project = tomllib.loads((ROOT / "packages" / package / "pyproject.toml").read_text())["project"]
    words = (re.match(r"ajuste-(\w+)", dependency) for dependency in project["dependencies"])
    return sorted({package, STATISTICS, *(word[1] for word in words if word)})


def quick_tests(installed: Installed, package: str, *words: str) -> subprocess.CompletedProcess[str]:
    """The quick tests of a package, run by an environment that has it."""
    return subprocess.run(
        [installed.prefix / "bin" / "python", "-m", "pytest", "-q", "-n", "0", *words, ROOT / "packages" / package],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("package", [name for name in PACKAGES if name != STATISTICS])
def test_its_tests_pass_alone(package: str, wheel: Path, tmp_path: Path) -> None:
    alone = tmp_path / "wheels"
    alone.mkdir()
    needed = (f"ajuste_{name}-*.whl" for name in needs(package))
    for each in (wheel, *(path for pattern in needed for path in wheel.parent.glob(pattern))):
        (alone / each.name).symlink_to(each)
    installed = install(alone / wheel.name, tmp_path / "environment")
    others = [name for name in PACKAGES if (installed.packages / f"ajuste_{name}").exists()]
    assert others == needs(package)
    done = quick_tests(installed, package, "-m", QUICK)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_statistics_pass_their_tests_without_the_core(wheel: Path, tmp_path: Path) -> None:
    (statistics,) = wheel.parent.glob(f"ajuste_{STATISTICS}-*.whl")
    installed = install(statistics, tmp_path / "environment", alone=True)
    assert [path.name for path in installed.packages.glob("ajuste*") if path.suffix != ".dist-info"] == ["ajuste_stats"]
    done = quick_tests(installed, STATISTICS, "-m", "not slow")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
