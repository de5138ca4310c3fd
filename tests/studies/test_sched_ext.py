"""Schedulers written in BPF on a real kernel that was built with them, where somebody has built it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ajuste.machine.home import Home
from ajuste_kernels.building.built import built_names
from shell import Shell

pytestmark = [pytest.mark.slow, pytest.mark.vm, pytest.mark.timeout(900)]

HOGS = ("--background", "spin", "--metric", "involuntary-switches", "--blocks", "1", "--quiet")


def test_schedulers_are_loaded_and_make_the_difference_that_they_are_for(tmp_path: Path, ajuste_home: Path) -> None:
    if "ext" not in built_names(Home(ajuste_home / "data", ajuste_home / "cache", ajuste_home / "state")):
        pytest.skip("mine:ext was not built")
    shell = Shell(tmp_path, ajuste_home)
    proof = json.loads(shell("kernel", "prove", "mine:ext", "sched_ext", "--json")[0])
    assert "name for it is simple" in json.dumps(proof)
    levels = "sched_ext=none,scx_simple,scx_central"
    compare = ("compare", "--kernel", "mine:ext", "--set", levels, *HOGS, "--json")
    results = json.loads(shell(*compare, "--", "hog", "milliseconds=500")[0])
    assert {trial["status"] for trial in results["trials"]} == {"ok"}
    none, simple, central = (
        configuration["metrics"]["involuntary-switches"]["mean"] for configuration in results["configurations"]
    )
    assert none > 3 * simple > 3 * central > 0
