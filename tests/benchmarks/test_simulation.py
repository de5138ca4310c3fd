"""The simulation of crashes as a benchmark, on few seeds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.simulation import FOUND_WITHIN, PLANTED, Found, Simulation, comparison, table

ROOT = Path(__file__).parents[2]
SEEDS = 50


@pytest.mark.timeout(600)
@pytest.mark.slow
def test_nothing_is_found_as_it_is_and_everything_that_is_broken_on_purpose() -> None:
    command = [sys.executable, "-m", "benchmarks.simulation", "--seeds", str(SEEDS), "--first", "7", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    report = json.loads(done.stdout)
    assert (report["clean"], report["as_it_is"]["seeds"], report["as_it_is"]["reason"]) == (True, SEEDS, None)
    assert [fault["planted"] for fault in report["broken"]] == list(PLANTED)
    assert all(fault["seeds"] <= FOUND_WITHIN and fault["reason"] for fault in report["broken"])


def simulation(wrong_seed: int | None, found_seed: int | None) -> Simulation:
    reason = "a is 10"
    broken = Found("no-sync", 12, 1.0, found_seed, reason if found_seed is not None else None)
    return Simulation(Found("", 40, 2.0, wrong_seed, reason if wrong_seed is not None else None), (broken,))


@pytest.mark.parametrize(
    ("wrong_seed", "found_seed", "clean"), [(None, 11, True), (39, 11, False), (None, None, False), (39, None, False)]
)
def test_it_is_clean_only_if_the_planted_is_found_and_nothing_else(
    wrong_seed: int | None, found_seed: int | None, clean: bool
) -> None:
    result = simulation(wrong_seed, found_seed)
    assert (result.clean, comparison(result).reached) == (clean, clean)
    assert table(result).endswith("\nclean") is clean
    assert comparison(result).figures == {"as it is": [40.0], "no-sync": [12.0]}
