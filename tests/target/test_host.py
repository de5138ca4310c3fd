from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ajuste.model.error import RequestError, RunError
from ajuste.model.event import Exited, Output, ReadBack
from ajuste.model.plan import Command, File, Plan, Read, Write
from ajuste.target.host import HostTarget

OSTYPE = File(path="/proc/sys/kernel/ostype")


def test_it_says_what_this_machine_is() -> None:
    with HostTarget() as host:
        assert host.hello.kernel == os.uname().release
        assert host.hello.guest is False
        assert host.environment["kernel build"] == os.uname().version
        assert host.parallel == 1


def test_it_reads_and_runs() -> None:
    plan = Plan(
        id="p",
        reads=(Read(tunable="ostype", location=OSTYPE),),
        workload=Command(argv=(sys.executable, "-c", "print(6 * 7); raise SystemExit(3)")),
    )
    with HostTarget() as host:
        observation = host.run(plan)
    assert observation.problem == ""
    assert [event.value for event in observation.events if isinstance(event, ReadBack)] == ["Linux"]
    assert "42\n" in [event.text for event in observation.events if isinstance(event, Output)]
    assert [event.exit_code for event in observation.events if isinstance(event, Exited)] == [3]


def test_a_workload_that_does_not_exist_is_no_problem_of_the_targets() -> None:
    with HostTarget() as host:
        observation = host.run(Plan(id="p", workload=Command(argv=("/no/such/program",))))
    assert observation.problem == ""
    assert "failed" in [event.event for event in observation.events]


def test_nothing_is_written() -> None:
    before = Path(OSTYPE.path).read_text()
    with HostTarget() as host, pytest.raises(RequestError, match="changing this machine") as caught:
        host.run(Plan(id="p", writes=(Write(tunable="ostype", location=OSTYPE, value="x"),)))
    assert "vm" in (caught.value.hint or "")
    assert Path(OSTYPE.path).read_text() == before


def test_an_agent_that_talks_nonsense_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = tmp_path / "ajuste-agent"
    agent.write_text("#!/bin/sh\necho nonsense\n")
    agent.chmod(0o755)
    monkeypatch.setenv("AJUSTE_NATIVE", str(tmp_path))
    with pytest.raises(RunError, match="does not work on this machine"), HostTarget():
        pass
