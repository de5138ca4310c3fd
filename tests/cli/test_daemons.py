"""Daemons as levels: what a service of root changes of this machine is found, said, and undone."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from labs import needs_root
from shell import Shell

pytestmark = [needs_root, pytest.mark.machine, pytest.mark.usefixtures("machine_lock")]

RETRIES = Path("/proc/sys/net/ipv4/tcp_retries2")
EXPIRE = Path("/proc/sys/vm/dirty_expire_centisecs")
STUDY = """\
schema = 1
name = "daemons"

[[factor]]
name = "daemon"

[factor.settings]
none = {}
careless = {}
tidy = {}

[[workload.service]]
name = "careless"
command = ["sh", "-c", "echo CARELESS > PLACE; exec sleep 1000"]
user = "root"
ready = ["grep", "-qx", "CARELESS", "PLACE"]
when = { daemon = "careless" }

[[workload.service]]
name = "tidy"
command = ["sh", "tidy.sh"]
user = "root"
ready = ["grep", "-qx", "TIDIED", "EXPIRED"]
when = { daemon = "tidy" }

[workload]
command = COMMAND

[target]
kind = "host"

[analysis]
metrics = ["elapsed"]

[budget]
min_blocks = BLOCKS
max_blocks = BLOCKS
"""
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
    values = {
        "PLACE": str(RETRIES),
        "CARELESS": other_than(RETRIES),
        "EXPIRED": str(EXPIRE),
        "TIDIED": other_than(EXPIRE),
        "COMMAND": command,
        "BLOCKS": str(blocks),
        "tidy.sh": str(ajuste.directory / "tidy.sh"),
    }
    for name, text in (("daemons.toml", STUDY), ("tidy.sh", TIDY)):
        filled = re.sub("|".join(values), lambda match: values[match[0]], text)
        (ajuste.directory / name).write_text(filled)
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


def test_what_a_daemon_has_changed_when_ajuste_is_killed_is_restored_by_the_next(ajuste: Shell) -> None:
    before = RETRIES.read_text()
    process = ajuste.start("run", study(ajuste, '["sh", "-c", "touch started; exec sleep 600"]'))
    deadline = time.monotonic() + 60
    while not (ajuste.directory / "started").exists():  # not yet while it looks at the settings
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert RETRIES.read_text() != before
    process.kill()
    process.communicate()
    _, refused = ajuste("run", "daemons.toml", expect=2)
    assert "ajuste restore" in refused
    ajuste("restore")
    assert RETRIES.read_text() == before
    assert ajuste.json("restore")["done"] is True


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
