"""Requests that the winner of ``ajuste live`` stays; nothing is measured or changed."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

import warm

GUARD = ("--guard", "dirty < 1TB")


def live_dry_run(directory: Path, *words: str, asker: str = "") -> subprocess.CompletedProcess[str]:
    known = (
        "--set",
        "vm.dirty_background_ratio=10,2",
        "--slice",
        "60s",
        "--metric",
        "dirty,B,lower=proc:meminfo.Dirty",
    )
    environment = {**os.environ, "AJUSTE_HOME": str(directory), **({"AJUSTE_ASKED_BY": asker} if asker else {})}
    return warm.run(["live", *known, *words, "--dry-run"], directory, environment)


def test_a_dry_run_says_how_long_the_probation_is_and_which_file_sets_it_at_boot(tmp_path: Path) -> None:
    plan = live_dry_run(tmp_path, *GUARD, "--adopt", "--probation", "20m", "--json")
    boot = ["/etc/sysctl.d/99-zz-ajuste-DATE-live.conf"]
    assert json.loads(plan.stdout)["adopt"] == {"probation_s": 1200, "boot": boot}
    assert "adopt" not in json.loads(live_dry_run(tmp_path, "--json").stdout)
    output = live_dry_run(tmp_path, *GUARD, "--adopt", "--keep-winner", ".").stdout
    assert f"{tmp_path}/99-zz-ajuste-DATE-live.conf" in output
    assert "for 10 min more" in output


@pytest.mark.parametrize(
    ("words", "asker", "why"),
    [
        (("--adopt",), "", "requires a guard"),
        ((*GUARD, "--adopt", "--order", "latin"), "", "conflicts with --order latin"),
        ((*GUARD, "--probation", "5m"), "", "requires --adopt"),
        (("--name", ""), "", '--name : found ""'),
        ((*GUARD, "--adopt"), "agent:vm.dirty_background_ratio", "may not name"),
        ((*GUARD, "--adopt"), "page", "may not name"),
        ((*GUARD, "--adopt"), "bundle", "may not name"),
    ],
)
def test_what_could_not_be_proved_and_who_may_not_adopt_is_refused(
    tmp_path: Path, words: tuple[str, ...], asker: str, why: str
) -> None:
    refused = live_dry_run(tmp_path, *words, asker=asker)
    assert refused.returncode == 2
    assert why in refused.stderr
