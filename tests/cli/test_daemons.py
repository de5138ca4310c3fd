"""Daemons as levels: what a service of root changes of this machine is found, said, and undone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.meddler import THP, Daemon, Meddled, daemons_study, meddled
from benchmarks.victims import holder_named, workloads

from labs import needs_root
from shell import Shell

pytestmark = [needs_root, pytest.mark.machine, pytest.mark.usefixtures("machine_lock")]

RETRIES = Path("/proc/sys/net/ipv4/tcp_retries2")
EXPIRE = Path("/proc/sys/vm/dirty_expire_centisecs")
TIDY = """\
was=$(cat EXPIRED)
trap 'echo $was > EXPIRED; exit' TERM
echo TIDIED > EXPIRED
while :; do sleep 0.05; done
"""


def other_than(path: Path) -> str:
    """A value that the machine does not have, whatever others left there."""
    return str(int(path.read_text()) - 1)


def study(ajuste: Shell, command: str, blocks: int = 2) -> str:
    careless, tidied = other_than(RETRIES), other_than(EXPIRE)
    script = ajuste.directory / "tidy.sh"
    script.write_text(TIDY.replace("EXPIRED", str(EXPIRE)).replace("TIDIED", tidied))
    daemons = [
        Daemon(
            "careless",
            f'["sh", "-c", "echo {careless} > {RETRIES}; exec sleep 1000"]',
            f'["grep", "-qx", "{careless}", "{RETRIES}"]',
        ),
        Daemon("tidy", f'["sh", "{script}"]', f'["grep", "-qx", "{tidied}", "{EXPIRE}"]'),
    ]
    (ajuste.directory / "daemons.toml").write_text(daemons_study(daemons, command, blocks))
    return "daemons.toml"


def printed(ajuste: Shell, run: str) -> dict[str, set[str]]:
    """Return what the workload printed, by configuration."""
    seen: dict[str, set[str]] = {}
    for trial in ajuste.json("report", run, "--trials"):
        for event in map(json.loads, trial["events"].splitlines()):
            if (event["event"], event.get("role"), event.get("stream")) == ("output", "workload", "stdout"):
                seen.setdefault(trial["slot"]["configuration"], set()).add(event["text"])
    return seen


def test_what_a_daemon_changes_is_there_in_its_trials_only_and_said(ajuste: Shell) -> None:
    before = RETRIES.read_text(), EXPIRE.read_text()
    careless, tidy = other_than(RETRIES), other_than(EXPIRE)
    results = ajuste.json("run", study(ajuste, f'["cat", "{RETRIES}", "{EXPIRE}"]'))
    assert (RETRIES.read_text(), EXPIRE.read_text()) == before
    retries, expire = (text.strip() for text in before)
    seen = printed(ajuste, results["run"])
    assert seen == {
        "daemon=none": {f"{retries}\n{expire}\n"},
        "daemon=careless": {f"{careless}\n{expire}\n"},
        "daemon=tidy": {f"{retries}\n{tidy}\n"},
    }
    notes = " ".join(results["notes"])
    assert f"careless changed net.ipv4.tcp_retries2 from {retries} to {careless};" in notes
    assert f"tidy changed vm.dirty_expire_centisecs from {expire} to {tidy};" in notes  # though it undoes that itself


@pytest.fixture
def settings() -> Iterator[Meddled]:
    with meddled() as settings:
        yield settings


def test_settings_of_every_kind_are_back_after_each_trial_and_said(ajuste: Shell, settings: Meddled) -> None:
    before = settings.values()
    study = settings.study(ajuste.directory, f"cat {THP} {settings.queue}/scheduler")
    results = ajuste.json("run", str(study))
    assert settings.values() == before
    seen = printed(ajuste, results["run"])
    assert seen["daemon=none"] == {before[str(THP)] + before[f"{settings.queue}/scheduler"]}
    assert "[none]" in next(iter(seen["daemon=meddler"]))
    notes = " ".join(results["notes"])
    assert f"block.scheduler[{settings.disk}] from mq-deadline to none" in notes
    assert "thp.enabled from" in notes


def test_what_a_daemon_has_changed_is_restored_when_ajuste_is_killed(ajuste: Shell, settings: Meddled) -> None:
    before = settings.values()
    process = running(ajuste, settings)
    process.kill()
    process.communicate()
    ajuste("restore")  # There is nothing left to do if the agent was quicker.
    assert settings.values() == before
    assert ajuste.json("restore")["done"] is True


def test_what_is_left_when_all_are_killed_stands_in_the_way_of_every_home(
    ajuste: Shell, settings: Meddled, tmp_path: Path
) -> None:
    before = settings.values()
    process = running(ajuste, settings)
    victims = [process.pid, holder_named("ajuste-guardian"), holder_named("ajuste-agent")]
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for victim in filter(None, victims):
            os.kill(victim, number)
    process.communicate()
    assert settings.values() != before
    other = Shell(ajuste.directory, tmp_path / "another-home")
    _, refused = other("compare", "--set", "vm.swappiness=10,60", "--", "true", expect=2)
    assert "ajuste restore" in refused
    other("restore")
    assert settings.values() == before
    assert not workloads()


def running(ajuste: Shell, settings: Meddled) -> subprocess.Popen[str]:
    """Return `ajuste run` in the middle of a trial with the daemon."""
    before, sign = settings.values(), ajuste.directory / "sign"
    asleep = f"grep -q '.none.' {settings.queue}/scheduler && touch {sign} && exec sleep 600; true"
    process = ajuste.start("run", str(settings.study(ajuste.directory, asleep)))
    deadline = time.monotonic() + 60
    while not sign.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert settings.values() != before
    return process


@pytest.mark.slow
def test_it_is_back_after_each_of_a_hundred_trials(ajuste: Shell) -> None:
    before = RETRIES.read_text(), EXPIRE.read_text()
    results = ajuste.json("run", study(ajuste, f'["cat", "{RETRIES}", "{EXPIRE}"]', blocks=34))
    assert (RETRIES.read_text(), EXPIRE.read_text()) == before
    assert printed(ajuste, results["run"])["daemon=none"] == {"".join(before)}
    assert not list((ajuste.home / "state" / "journals").iterdir())


def test_a_level_that_is_not_there_is_refused_with_its_line(ajuste: Shell) -> None:
    name = study(ajuste, '["true"]')
    text = (ajuste.directory / name).read_text()
    (ajuste.directory / name).write_text(text.replace('daemon = "tidy"', 'daemon = "tiddy"'))
    _, complained = ajuste("plan", name, expect=2)
    line = text[: text.index('daemon = "tidy"')].count("\n") + 1
    assert f"{name}:{line}" in complained
    assert '"tiddy" is not a level of daemon; expected one of none, careless, tidy' in complained
