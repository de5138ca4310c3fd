"""Contents of the repository."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]

LARGEST_BYTES: Final = 300_000
"""A clone is quick as long as nobody keeps what a program left behind."""

LOCK: Final = ROOT / "uv.lock"


def large(paths: list[Path]) -> list[Path]:
    return [path for path in paths if path != LOCK and path.is_file() and path.stat().st_size > LARGEST_BYTES]


def test_no_file_is_large() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    assert LOCK in paths
    assert large(paths) == []


def test_what_a_disk_benchmark_leaves_is_large(tmp_path: Path) -> None:
    left = tmp_path / "test_file.0"
    left.write_bytes(bytes(16 * 2**20))
    assert large([left]) == [left]


def test_scripts_that_root_calls_import_nothing_of_the_present_directory() -> None:
    """The quick twin of the one of tests/dist/test_install.py."""
    scripts = [*ROOT.glob("setup/*"), *ROOT.glob("ci/*"), *ROOT.glob(".ci/*"), ROOT / "action.yml"]
    lines = [line for path in scripts if path.is_file() for line in path.read_text().splitlines()]
    called = [line for line in lines if re.search(r'python3?"?( -\w+)* -[mc] ', line)]
    assert len(called) >= 6
    assert [line for line in called if not re.search(r'python3?"? -[IP] ', line)] == []
