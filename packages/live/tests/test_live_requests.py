"""Requests of ``ajuste live`` before and after a run; nothing is measured or changed."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

import warm
from ajuste.catalogue.loader import catalogue
from ajuste.machine.home import home
from ajuste.model.error import RequestError
from ajuste.store.store import Store
from ajuste.study.command_line.request import Request
from ajuste_live.experiment import LiveOptions, prepare_live
from ajuste_live.request import LiveRequest, live_design, live_study
from ajuste_live.state import keep_state, own_state
from ajuste_stats.switchback.design import STAY

GUARD = ("--guard", "dirty < 1TB")


def live_dry_run(
    directory: Path, *words: str, asker: str = "", levels: str = "10,2"
) -> subprocess.CompletedProcess[str]:
    known = (
        "--set",
        f"vm.dirty_background_ratio={levels}",
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
    assert json.loads(plan.stdout)["adopt"] == {"probation_s": 1200, "boot": boot, "stay_slices": STAY}
    assert "adopt" not in json.loads(live_dry_run(tmp_path, "--json").stdout)
    output = live_dry_run(tmp_path, *GUARD, "--adopt", "--keep-winner", ".").stdout
    assert f"{tmp_path}/99-zz-ajuste-DATE-live.conf" in output
    assert "for 10 min more" in output


def test_a_dry_run_says_how_much_longer_stays_take(tmp_path: Path) -> None:
    with_stays = json.loads(live_dry_run(tmp_path, *GUARD, "--adopt", "--json").stdout)
    assert with_stays["predicted"][0]["in_stays"] == 60
    assert "60 slices (1 h) more are stays of 6 slices" in live_dry_run(tmp_path, *GUARD, "--adopt").stdout
    assert "stays" not in live_dry_run(tmp_path).stdout


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


def test_one_level_is_refused_with_the_present_value(tmp_path: Path) -> None:
    now = Path("/proc/sys/vm/dirty_background_ratio").read_text().strip()
    refused = live_dry_run(tmp_path, levels="7")
    assert refused.returncode == 2
    assert "has one level; expected at least two" in refused.stderr
    assert f"vm.dirty_background_ratio={now},7" in refused.stderr


def test_without_root_no_options_of_other_commands_are_recommended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AJUSTE_HOME", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    design = live_design(LiveRequest(slice="60s", metric=("dirty,B,lower=proc:meminfo.Dirty",)))
    study = live_study(Request(set=("vm.dirty_background_ratio=10,2",)), design, catalogue(), "/bin/true")
    with pytest.raises(RequestError, match="requires root") as refused:
        prepare_live(study, design, catalogue(), LiveOptions(home()))
    assert "--dry-run" in str(refused.value.hint)
    assert not [word for word in ("--vm", "nice") if word in str(refused.value.hint)]


@pytest.mark.parametrize(
    ("stopped", "words"),
    [
        ("all verdicts decided after 14 slices", ("finished: all verdicts decided after 14 slices",)),
        ("", ("interrupted after 14 slices", "ajuste live --set 'vm.swappiness=10,60'")),
    ],
)
def test_the_status_tells_a_finished_run_from_an_interrupted_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stopped: str, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("AJUSTE_HOME", str(tmp_path))
    with Store(home().store_url) as store:
        run = store.new_run(
            study="live",
            fingerprint="f",
            seed=1,
            ajuste="1",
            named="ajuste live --set 'vm.swappiness=10,60'",
            resolved="{}",
            environment={},
            workload="live",
        )
        if stopped:
            store.stop_run(run, "decided", stopped)
    keep_state(home(), own_state(run.id, "live").model_copy(update={"boot": "earlier", "slices": 14}))
    environment = {**os.environ, "AJUSTE_HOME": str(tmp_path)}
    status = warm.run(["live", "status"], tmp_path, environment).stdout
    assert [word for word in words if word.replace("'", "") not in status.replace("'", "")] == []
    document = json.loads(warm.run(["live", "status", "--json"], tmp_path, environment).stdout)
    assert (document["going_on"], document["stopped"]) == (False, "decided" if stopped else "")


def test_a_dry_run_says_that_no_line_of_a_log_matches_yet(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("took long\n")
    words = ("--watch", f"took,s=regex:{log}#took ([0-9.]+) s")
    output = live_dry_run(tmp_path, *words).stdout
    assert "all of which can be read now" not in output
    assert f"no line at the end of {log} matches yet" in output
    assert list(json.loads(live_dry_run(tmp_path, *words, "--json").stdout)["warnings"]) == ["took"]
    log.write_text("took 2 s\n")
    assert "all of which can be read now" in live_dry_run(tmp_path, *words).stdout
