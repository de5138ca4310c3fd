"""Whoever is killed: nothing is left changed, and the study goes on to its end. ``AJUSTE_KILLS`` is how many die."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

KILLS = int(os.environ.get("AJUSTE_KILLS", "14"))
ROOT = Path(__file__).parents[3]


@pytest.mark.skipif(os.geteuid() != 0, reason="changing settings needs root")
@pytest.mark.timeout(120 + 30 * KILLS)
@pytest.mark.slow
def test_kills_leave_no_value_journal_or_process_and_lose_no_trial() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.kills", "--kills", str(KILLS), "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    outcome = json.loads(done.stdout)
    assert sum(tally["kills"] for tally in outcome["tallies"].values()) == KILLS
    assert outcome["notes"] == []
    for tally in outcome["tallies"].values():
        faults = {name: tally[name] for name in tally if name.endswith(("_left", "_lost", "_ends"))}
        assert not any(faults.values()), faults
    assert (outcome["trials_lost"], outcome["trials_doubled"]) == (0, 0)
    assert outcome["studies"] > 0
    assert outcome["clean"]
