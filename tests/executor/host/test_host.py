"""The target ``host`` with the real agent, and with agents that are played."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from ajuste.executor.host.host import HostExecutor
from ajuste.machine.home import Home
from ajuste.model.error import RequestError, RunError
from ajuste.model.event import Exited, Failed, Output, ReadBack, Restored, Written
from ajuste.model.plan import Command, FileLocation, Plan, Read, User, Write

OSTYPE = FileLocation(path="/proc/sys/kernel/ostype")
EXPIRE = Path("/proc/sys/vm/dirty_expire_centisecs")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="changing settings needs root")


def command(*argv: str, **more: object) -> Command:
    return Command.model_validate({"argv": argv, **more})


def python(code: str, **more: object) -> Command:
    return command(sys.executable, "-c", code, **more)


def outputs(host: HostExecutor, plan: Plan) -> list[str]:
    observation = host.run(plan)
    assert observation.problem == ""
    return [event.text for event in observation.events if isinstance(event, Output) and event.text]


def change(value: str) -> Write:
    return Write(tunable="vm.dirty_expire_centisecs", location=FileLocation(path=str(EXPIRE)), value=value)


@pytest.fixture
def place(tmp_path: Path) -> Home:
    return Home(tmp_path / "data", tmp_path / "cache", tmp_path / "state")


class TestReadingAndRunning:
    def test_it_says_what_this_machine_is(self) -> None:
        with HostExecutor() as host:
            assert host.hello.kernel == os.uname().release
            assert host.hello.guest is False
            assert host.environment["kernel build"] == os.uname().version
            assert host.parallel == 1

    def test_one_agent_carries_out_one_plan_after_the_other(self) -> None:
        with HostExecutor() as host:
            for number in range(3):
                plan = Plan(
                    id=f"p{number}",
                    reads=(Read(tunable="ostype", location=OSTYPE),),
                    workload=python(f"print({number} * 7); raise SystemExit({number})"),
                )
                observation = host.run(plan)
                assert observation.problem == ""
                events = observation.events
                assert [event.value for event in events if isinstance(event, ReadBack)] == ["Linux"]
                assert [event.exit_code for event in events if isinstance(event, Exited)] == [number]
                assert f"{number * 7}\n" in [event.text for event in events if isinstance(event, Output)]

    def test_plans_in_turn_are_answered_one_by_one(self) -> None:
        plans = [Plan(id=f"p{n}", workload=command("/bin/sh", "-c", f"echo {n}; exit {n}")) for n in range(20)]
        with HostExecutor() as host:
            done = host.run_in_turn(plans)
        assert [o.problem for _, o in done] == [""] * 20
        codes = [[e.exit_code for e in o.events if isinstance(e, Exited)] for _, o in done]
        assert codes == [[n] for n in range(20)]
        assert [started for started, _ in done] == sorted(started for started, _ in done)

    def test_plans_in_turn_may_be_and_say_more_than_a_pipe_holds(self) -> None:
        long = {"LONG": "x" * 100_000}
        print_much = command("/bin/sh", "-c", "printf '%s' \"$LONG\"", environment=long)
        with HostExecutor() as host:
            done = host.run_in_turn([Plan(id=f"p{n}", workload=print_much) for n in range(25)])
        texts = [[e.text for e in o.events if isinstance(e, Output) and e.stream == "stdout"] for _, o in done]
        assert texts == [["x" * 100_000]] * 25

    def test_an_agent_that_is_killed_among_plans_in_turn_is_a_failed_run(self) -> None:
        killer = python("import os; os.kill(os.getppid(), 9); import time; time.sleep(60)")
        plans = [Plan(id="p0", workload=command("/bin/true")), Plan(id="p1", workload=killer)]
        with HostExecutor() as host, pytest.raises(RunError, match="the agent was lost"):
            host.run_in_turn([*plans, Plan(id="p2", workload=command("/bin/true"))])

    def test_a_workload_that_does_not_exist_is_no_problem_of_the_targets(self) -> None:
        with HostExecutor() as host:
            observation = host.run(Plan(id="p", workload=command("/no/such/program")))
            assert observation.problem == ""
            assert "failed" in [event.event for event in observation.events]
            assert outputs(host, Plan(id="q", workload=command("/bin/echo", "still there"))) == ["still there\n"]

    def test_commands_have_the_environment_of_the_call_and_nothing_that_was_set_since(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        called_with = dict(os.environ)
        monkeypatch.setenv("SET_SINCE", "a b")
        with HostExecutor() as host:
            plan = Plan(id="p", workload=command("/usr/bin/env", environment={"OWN": "c"}))
            words = outputs(host, plan)[0].splitlines()
        assert {"OWN=c", f"PATH={called_with['PATH']}"} <= set(words)
        assert not [word for word in words if word.startswith("SET_SINCE")]
        assert not [word for word in words if word.startswith("AJUSTE_")]

    def test_without_a_home_nothing_is_written(self) -> None:
        before = EXPIRE.read_text()
        with HostExecutor() as host, pytest.raises(RequestError, match="without a journal"):
            host.run(Plan(id="p", writes=(change("1234"),)))
        assert EXPIRE.read_text() == before

    def test_an_agent_that_is_killed_is_a_failed_run(self) -> None:
        with HostExecutor() as host:
            killer = Plan(id="p", workload=python("import os; os.kill(os.getppid(), 9); import time; time.sleep(60)"))
            with pytest.raises(RunError, match="the agent was lost: it has ended; it had changed nothing"):
                host.run(killer)

    @pytest.mark.parametrize(
        ("script", "words"),
        [
            ("echo nonsense", "does not work on this machine"),
            ("echo out of order >&2; exit 3", "does not work on this machine: out of order"),
            ("""echo '{"event":"gate","at_ns":1}'; sleep 60""", "gate instead of hello"),
        ],
    )
    def test_an_agent_that_does_not_work_is_noticed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, words: str
    ) -> None:
        agent = tmp_path / "ajuste-agent"
        agent.write_text(f"#!/bin/sh\n{script}\n")
        agent.chmod(0o755)
        monkeypatch.setenv("AJUSTE_NATIVE", str(tmp_path))
        with pytest.raises(RunError, match=words), HostExecutor():
            pass


@needs_root
@pytest.mark.usefixtures("machine_lock")
class TestChanging:
    def test_what_a_plan_writes_is_there_for_its_workload_and_gone_afterwards(self, place: Home) -> None:
        before = EXPIRE.read_text().strip()
        with HostExecutor(place) as host:
            for value in ("1111", "2222"):
                observation = host.run(Plan(id="p", writes=(change(value),), workload=command("/bin/cat", str(EXPIRE))))
                events = observation.events
                assert [(e.before, e.after) for e in events if isinstance(e, Written)] == [(before, value)]
                assert f"{value}\n" in [e.text for e in events if isinstance(e, Output)]
                assert [(e.found, e.value) for e in events if isinstance(e, Restored)] == [(value, before)]
                assert EXPIRE.read_text().strip() == before
        assert list(place.journals.iterdir()) == []

    def test_no_guardian_stays_as_a_zombie_where_the_first_process_waits_for_nobody(self, tmp_path: Path) -> None:
        """Run as in a container: here the first process starts one run and looks at what remains of it."""
        value = EXPIRE.read_text().strip()
        script = f"""
import os, sys
from pathlib import Path
child = os.fork()
if not child:
    from ajuste.machine.home import Home
    from ajuste.model.plan import Command, FileLocation, Plan, Write
    from ajuste.executor.host.host import HostExecutor
    change = Write(tunable="t", location=FileLocation(path={str(EXPIRE)!r}), value={value!r})
    with HostExecutor(Home(*(Path({str(tmp_path)!r}) / name for name in ("d", "c", "s")))) as host:
        assert host.run(Plan(id="p", writes=(change,), workload=Command(argv=("/bin/true",)))).problem == ""
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print([name.read_text().strip() for name in Path("/proc").glob("[0-9]*/comm") if name.parent.name != "1"])
"""
        apart = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", sys.executable, "-c", script]
        done = subprocess.run(apart, capture_output=True, text=True, timeout=60, check=False)
        assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr

    def test_a_second_one_is_refused(self, place: Home, tmp_path: Path) -> None:
        other = Home(tmp_path / "d", tmp_path / "c", tmp_path / "s")
        with (
            HostExecutor(place),
            pytest.raises(RequestError, match=f"another experiment is running on this machine: process {os.getpid()}"),
            HostExecutor(other),
        ):
            pass

    def test_a_value_that_the_kernel_refuses_changes_nothing(self, place: Home) -> None:
        before = EXPIRE.read_text()
        with HostExecutor(place) as host:
            observation = host.run(Plan(id="p", writes=(change("-1"),), workload=command("/bin/true")))
        failed = [event for event in observation.events if isinstance(event, Failed)]
        assert [(event.stage, event.tunable) for event in failed] == [("write", "vm.dirty_expire_centisecs")]
        assert "Invalid argument" in failed[0].message
        assert EXPIRE.read_text() == before

    def test_what_a_killed_agent_had_changed_is_put_back(self, place: Home) -> None:
        before = EXPIRE.read_text()
        kill = "import os, time; os.kill(os.getppid(), 9); time.sleep(60)"
        with HostExecutor(place) as host:
            plan = Plan(id="p", writes=(change("3210"),), workload=python(kill))
            with pytest.raises(RunError, match="what it had changed was put back"):
                host.run(plan)
            assert EXPIRE.read_text() == before
        assert list(place.journals.iterdir()) == []

    @pytest.mark.parametrize(
        "stopped",
        [{"ajuste-guardian"}, {"ajuste-agent"}, {"ajuste-agent", "ajuste-guardian"}],
        ids=lambda names: " and ".join(sorted(names)),
    )
    def test_who_is_stopped_does_not_keep_the_machine(self, place: Home, stopped: set[str]) -> None:
        before = EXPIRE.read_text()
        with HostExecutor(place) as host:
            host.run(Plan(id="p", writes=(change("3210"),), workload=command("/bin/true")))
            children = {child for child in psutil.Process().children() if child.name() in stopped}
            assert {child.name() for child in children} == stopped
            for child in children:
                child.suspend()
        assert not any(child.is_running() for child in children)
        with HostExecutor(place):
            pass
        assert EXPIRE.read_text() == before
        assert list(place.journals.iterdir()) == []

    def test_a_journal_that_cannot_be_written_changes_nothing(self, place: Home) -> None:
        before = EXPIRE.read_text()
        place.journals.mkdir(parents=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k,mode=700", "tmpfs", place.journals], check=True)
        try:
            with HostExecutor(place) as host:
                (place.journals / "full").write_bytes(bytes(4096))
                with pytest.raises(RunError, match="cannot write the journal, so nothing was changed"):
                    host.run(Plan(id="p", writes=(change("3210"),), workload=command("/bin/true")))
                assert EXPIRE.read_text() == before
        finally:
            subprocess.run(["umount", place.journals], check=True)
        assert EXPIRE.read_text() == before


@needs_root
def test_a_command_is_its_users_and_not_roots() -> None:
    with HostExecutor() as host:
        plan = Plan(id="p", workload=command("/usr/bin/id", "-u", user=User(uid=65534, gid=65534)))
        assert outputs(host, plan) == ["65534\n"]
