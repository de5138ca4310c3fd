"""A host made ready for a study: rehearsal, set-up, clean-up."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ajuste.executor.host.host import PreparedHost
from ajuste.machine.home import Home
from ajuste.model.error import RequestError, RunError
from ajuste.model.plan import Command, FileLocation, Plan, Write

SECOND_NS = 10**9


def note(file: Path, word: str, more: str = "") -> Command:
    code = f"open({str(file)!r}, 'a').write({word!r}); {more}"
    return Command(argv=(sys.executable, "-c", code))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    file = tmp_path / "log"
    file.touch()
    return file


def test_set_up_comes_first_and_clean_up_last(log: Path) -> None:
    ready = PreparedHost(setup=(note(log, "s"),), cleanup=(note(log, "c"),), timeout_ns=60 * SECOND_NS)
    with ready as host:
        for number in range(2):
            host.run(Plan(id=str(number), workload=note(log, str(number))))
    assert log.read_text() == "s01c"


def test_a_failure_is_cleaned_up_after(log: Path) -> None:
    ready = PreparedHost(cleanup=(note(log, "c"),), timeout_ns=60 * SECOND_NS)
    with pytest.raises(RuntimeError, match="of the study's own"), ready:
        raise RuntimeError("of the study's own")
    assert log.read_text() == "c"


def test_an_agent_that_is_lost_is_cleaned_up_after(log: Path) -> None:
    kill = note(log, "w", "import os, time; os.kill(os.getppid(), 9); time.sleep(60)")
    ready = PreparedHost(cleanup=(note(log, "c"),), timeout_ns=60 * SECOND_NS)
    with pytest.raises(RunError, match="the agent was lost"), ready as host:
        host.run(Plan(id="p", workload=kill))
    assert log.read_text() == "wc"


def test_a_set_up_that_fails_ends_the_study_and_is_cleaned_up_after(log: Path) -> None:
    ready = PreparedHost(
        setup=(note(log, "s", "raise SystemExit('no room')"),),
        cleanup=(note(log, "c"),),
        timeout_ns=60 * SECOND_NS,
    )
    with pytest.raises(RunError, match=r"the setup command failed: .*no room"), ready:
        pass
    assert log.read_text() == "sc"


@pytest.mark.skipif(os.geteuid() != 0, reason="changing settings needs root")
@pytest.mark.usefixtures("machine_lock")
@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("/proc/sys/vm/dirty_expire_centisecs", "-1", "Invalid argument"),
        ("/proc/sys/kernel/ostype", "x", "Permission denied|Read-only"),
        ("/proc/sys/vm/no_such_thing", "1", "No such file"),
    ],
)
def test_a_change_that_is_not_possible_is_refused_before_anything_runs(
    tmp_path: Path, log: Path, path: str, value: str, words: str
) -> None:
    fine = Path("/proc/sys/vm/dirty_writeback_centisecs")
    before = fine.read_text()
    writes = (
        Write(tunable="fine", location=FileLocation(path=str(fine)), value="432"),
        Write(tunable="refused", location=FileLocation(path=path), value=value),
    )
    place = Home(tmp_path, tmp_path, tmp_path / "state")
    ready = PreparedHost(place, changes=(writes,), setup=(note(log, "s"),), timeout_ns=SECOND_NS)
    with pytest.raises(RequestError, match=f"refused cannot be set on this machine: .*({words})") as caught, ready:
        pass
    assert caught.value.exit_code == 2
    assert fine.read_text() == before
    assert log.read_text() == ""
    assert list(place.journals.iterdir()) == []
