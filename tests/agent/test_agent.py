"""The agent on this machine: what it says of a process is compared with what the process itself, the kernel or
another program says.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from ajuste.model.event import (
    Accepted,
    Counter,
    End,
    Event,
    Exited,
    Failed,
    Hello,
    Output,
    ReadBack,
    Started,
    parse_event,
)

T = TypeVar("T")

is_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: lower nice values and real-time policies")


@dataclass(frozen=True)
class Told:
    """What the agent said of one plan."""

    exit_code: int
    complaint: str
    events: tuple[Event, ...]

    def of(self, kind: type[T]) -> list[T]:
        return [event for event in self.events if isinstance(event, kind)]

    def exited(self, role: str = "workload", index: int = 0) -> Exited:
        (exited,) = [one for one in self.of(Exited) if (one.role, one.index) == (role, index)]
        return exited

    def output(self, stream: str = "stdout", role: str = "workload") -> Output:
        (output,) = [one for one in self.of(Output) if (one.stream, one.role) == (stream, role)]
        return output

    @property
    def failed(self) -> Failed:
        (failed,) = self.of(Failed)
        return failed


class Runner:
    """Runs plans, given as the fields that matter."""

    def __init__(self, agent: str) -> None:
        self.agent = agent

    def __call__(self, **plan: Any) -> Told:
        return self.document(json.dumps({"id": "t"} | plan))

    def shell(self, script: str, *, attributes: dict[str, Any] | None = None, **plan: Any) -> Told:
        """A plan whose workload is a shell script."""
        return self(workload=shell(script, attributes or {}), **plan)

    def document(self, document: str) -> Told:
        done = subprocess.run([self.agent, "run"], input=document, capture_output=True, text=True, timeout=60)
        return Told(done.returncode, done.stderr, tuple(parse_event(line) for line in done.stdout.splitlines()))


def shell(script: str, attributes: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"argv": ["/bin/sh", "-c", script], "attributes": attributes or {}}


def is_gone(pid: int) -> bool:
    """Whether the process is no more, or a zombie that somebody else has yet to reap."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.fixture
def run(agent: str) -> Runner:
    return Runner(agent)


def test_it_introduces_itself_and_counts_its_events(run: Runner) -> None:
    told = run.shell("echo hi")
    hello, accepted, end = told.events[0], told.events[1], told.events[-1]
    assert isinstance(hello, Hello)
    assert isinstance(accepted, Accepted)
    assert isinstance(end, End)
    assert (hello.kernel, hello.guest, hello.cpus) == (os.uname().release, False, os.cpu_count())
    assert hello.memory_bytes == int(Path("/proc/meminfo").read_text().split()[1]) * 1024
    assert (end.ok, end.events, told.exit_code) == (True, len(told.events) - 2, 0)
    assert [event.at_ns for event in told.events] == sorted(event.at_ns for event in told.events)


def test_streams_are_kept_apart_and_the_environment_is_exactly_the_given_one(run: Runner) -> None:
    workload = {"argv": ["env"], "environment": {"A": "1", "PATH": "/usr/bin:/bin"}, "directory": "/usr"}
    assert run(workload=workload).output().text.splitlines() == ["A=1", "PATH=/usr/bin:/bin"]
    told = run(workload=shell("pwd; cat; echo err >&2; exit 3") | {"directory": "/usr"})
    assert told.output().text == "/usr\n"
    assert told.output("stderr").text == "err\n"
    assert (told.exited().exit_code, told.exited().signal, told.exit_code) == (3, None, 0)


@pytest.mark.parametrize("padding", [16, 512, 65536])
def test_padding_lengthens_the_environment_by_as_many_bytes(run: Runner, padding: int) -> None:
    environ = "cat /proc/self/environ | wc -c"
    lengths = [int(run.shell(environ, perturbation={"environment_bytes": size}).output().text) for size in (0, padding)]
    assert lengths[1] - lengths[0] == padding


def test_what_wait4_says_is_what_is_reported(run: Runner, workloads: str) -> None:
    """The same work under Python's own wait4(2)."""
    argv = [workloads, "matrix", "--size", "256", "--repetitions", "20"]
    told = run(workload={"argv": argv}, counters=["task-clock", "context-switches", "page-faults"])
    pid = os.posix_spawn(argv[0], argv, {}, file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
    usage = os.wait4(pid, 0)[2]
    exited = told.exited()
    ours = (exited.user_ns + exited.system_ns) / 1e9
    assert ours == pytest.approx(usage.ru_utime + usage.ru_stime, rel=0.5)
    assert exited.minor_faults == pytest.approx(usage.ru_minflt, abs=60)
    assert exited.wall_ns >= exited.user_ns
    counters = {counter.name: counter for counter in told.of(Counter)}
    if counters["task-clock"].not_supported is None:
        assert counters["task-clock"].value == pytest.approx(exited.user_ns + exited.system_ns, rel=0.1)
        switches = exited.voluntary_switches + exited.involuntary_switches
        assert counters["context-switches"].value == pytest.approx(switches, abs=2)
        assert counters["page-faults"].value == pytest.approx(exited.minor_faults + exited.major_faults, abs=5)


def test_children_that_were_waited_for_are_counted(run: Runner, workloads: str) -> None:
    told = run.shell(f"{workloads} spin --milliseconds 200; :", counters=["task-clock"])
    assert told.exited().user_ns >= 190_000_000
    (counter,) = told.of(Counter)
    assert counter.not_supported or (counter.value or 0) >= 190_000_000


def test_a_counter_that_the_machine_does_not_have_is_never_0(run: Runner) -> None:
    names = ["cycles", "instructions", "cache-references", "cache-misses", "branches", "branch-misses"]
    for counter in run.shell("exit 0", counters=names).of(Counter):
        if counter.value is None:
            assert counter.not_supported
        else:
            assert counter.running_ns > 0
            assert counter.not_supported is None


def test_the_end_of_the_time_is_the_end_of_the_whole_group(run: Runner) -> None:
    told = run.shell("sleep 1000 & sh -c 'sleep 1000 & echo $! $$; wait' & echo $!; wait", timeout_ns=300_000_000)
    exited = told.exited()
    assert (exited.timed_out, exited.signal, told.exit_code) == (True, signal.SIGTERM, 0)
    assert exited.wall_ns >= 300_000_000
    pids = [int(word) for word in told.output().text.split()]
    assert len(pids) >= 2
    assert all(is_gone(pid) for pid in pids)


def test_a_process_that_ignores_the_gentle_signal_is_killed(run: Runner) -> None:
    told = run.shell("trap '' TERM; echo on; while :; do sleep 0.01; done", timeout_ns=300_000_000)
    assert (told.exited().timed_out, told.exited().signal) == (True, signal.SIGKILL)
    assert told.exited().wall_ns >= 400_000_000, "the grace of 100 ms was given"
    assert told.output().text == "on\n"


def test_nothing_is_left_of_a_process_that_ends_before_its_children(run: Runner) -> None:
    told = run.shell("sleep 1000 & echo $!; setsid sleep 1000 & echo $!; exit 0")
    assert not told.exited().timed_out
    assert all(is_gone(int(pid)) for pid in told.output().text.split())


def test_a_signal_is_an_end_of_its_own(run: Runner) -> None:
    exited = run.shell("kill -SEGV $$").exited()
    assert (exited.signal, exited.exit_code, exited.timed_out) == (signal.SIGSEGV, None, False)


def test_what_is_beyond_the_limit_is_counted_and_not_kept(run: Runner) -> None:
    told = run.shell("head -c 3000000 /dev/zero | tr '\\0' x; printf é >&2", output_limit_bytes=1000)
    assert told.output().text == "x" * 1000
    assert told.output().dropped_bytes == 2_999_000
    assert (told.output("stderr").text, told.output("stderr").dropped_bytes) == ("é", 0)


def test_a_load_that_prints_without_end_disturbs_nobody(run: Runner) -> None:
    told = run.shell("sleep 0.5", background=[{"argv": ["yes"]}], output_limit_bytes=4)
    load = told.exited("background")
    assert (load.signal, told.output(role="background").text) == (signal.SIGKILL, "y\ny\n")
    assert told.output(role="background").dropped_bytes > 1 << 20


def test_the_background_runs_from_before_the_start_to_the_end(run: Runner, workloads: str) -> None:
    loads = [{"argv": [workloads, "spin"]}, shell("exit 7")]
    told = run.shell("sleep 0.2", background=loads, settle_ns=100_000_000)
    assert [(one.role, one.index) for one in told.of(Started)] == [
        ("background", 0),
        ("background", 1),
        ("workload", 0),
    ]
    order = [(one.role, one.index) for one in told.of(Exited)]
    assert order == [("workload", 0), ("background", 0), ("background", 1)]
    first, second = told.exited("background", 0), told.exited("background", 1)
    assert (first.signal, second.exit_code) == (signal.SIGKILL, 7)
    assert first.wall_ns >= told.exited().wall_ns + 100_000_000
    assert second.wall_ns < first.wall_ns


@pytest.mark.parametrize(
    ("workload", "words"),
    [
        ({"argv": ["/none"]}, "/none: No such file or directory"),
        ({"argv": ["no-such-program"]}, "no-such-program: no such program in "),
        ({"argv": ["/etc/passwd"]}, "/etc/passwd: Permission denied"),
        ({"argv": ["/tmp"]}, "/tmp: Permission denied"),
        ({"argv": ["/bin/true"], "directory": "/none"}, "/bin/true: directory: No such file or directory"),
        ({"argv": ["/bin/true"], "attributes": {"affinity": [100000]}}, "/bin/true: affinity: Invalid argument"),
    ],
)
@pytest.mark.parametrize("role", ["workload", "background"])
def test_a_program_that_cannot_be_started_says_why(
    run: Runner, role: str, workload: dict[str, Any], words: str
) -> None:
    told = run(workload=workload) if role == "workload" else run.shell("exit 0", background=[workload])
    assert words in told.failed.message
    assert (told.failed.stage, told.exit_code) == (role, 1)
    assert not told.of(Exited)


def test_a_file_that_is_no_program_fails_at_its_exec(run: Runner, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF no")
    program.chmod(0o755)
    told = run(workload={"argv": [str(program)]})
    assert told.failed.message == f"{program}: Exec format error"


def test_priority_policy_and_cpus_are_those_asked_for(run: Runner) -> None:
    cpu = max(os.sched_getaffinity(0))
    look = (
        "import os; print(os.nice(0), os.sched_getscheduler(0), os.sched_getaffinity(0), os.getpgid(0) == os.getpid())"
    )
    for policy, number in (("batch", os.SCHED_BATCH), ("idle", os.SCHED_IDLE), ("other", os.SCHED_OTHER)):
        attributes = {"nice": 7, "policy": policy, "affinity": [cpu]}
        told = run(workload={"argv": [sys.executable, "-c", look], "attributes": attributes})
        assert told.output().text == f"7 {number} {{{cpu}}} True\n"


@is_root
def test_a_real_time_workload_is_measured_and_ended_like_any_other(run: Runner) -> None:
    look = "import os; print(os.sched_getscheduler(0), os.sched_getparam(0).sched_priority)"
    for attributes, answer in (
        ({"policy": "fifo", "priority": 3}, f"{os.SCHED_FIFO} 3\n"),
        ({"policy": "rr"}, f"{os.SCHED_RR} 1\n"),
        ({"nice": -5}, "0 0\n"),
    ):
        assert run(workload={"argv": [sys.executable, "-c", look], "attributes": attributes}).output().text == answer


def test_tunables_are_read_and_what_is_none_says_why(run: Runner) -> None:
    place = "/proc/sys/kernel/ostype"
    reads = [
        {"tunable": "a", "location": {"kind": "file", "path": place}},
        {"tunable": "b", "location": {"kind": "file", "path": "/etc/passwd"}},
        {"tunable": "c", "location": {"kind": "choice", "path": place}},
    ]
    told = run(reads=reads)
    a, b, c = told.of(ReadBack)
    assert (a.value, a.error) == ("Linux", None)
    assert (b.value, c.value) == (None, None)
    assert "not a plain path below /proc/sys or /sys" in (b.error or "")
    assert c.error == f"no current choice is marked in {place}"
    assert told.exit_code == 0


def test_nothing_is_written_on_a_host(run: Runner, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    write = {"tunable": "w", "location": {"kind": "file", "path": "/proc/sys/kernel/ostype"}, "value": "x"}
    told = run.shell(f"touch {mark}", writes=[write])
    assert (told.failed.stage, told.failed.tunable, told.exit_code) == ("write", "w", 1)
    assert "needs the journal" in told.failed.message
    assert not mark.exists()


def test_a_malformed_plan_is_refused_with_the_reason(run: Runner) -> None:
    told = run.document('{"id":"x","counters":["cycels"]}')
    assert (told.exit_code, told.failed.stage) == (2, "plan")
    assert 'unknown counter "cycels"' in told.failed.message
    assert told.failed.message in told.complaint
    assert not told.of(End)


def test_a_request_to_stop_ends_everything(agent: str, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"id": "s", "workload": shell("sleep 1000"), "background": [shell("sleep 1000")]}))
    with subprocess.Popen([agent, "run", "--plan", str(plan)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        events: list[Event] = []
        while len([event for event in events if isinstance(event, Started)]) < 2:
            events.append(parse_event(process.stdout.readline()))
        process.send_signal(signal.SIGTERM)
        rest, _ = process.communicate(timeout=30)
    told = Told(process.returncode, "", (*events, *(parse_event(line) for line in rest.splitlines())))
    assert told.failed.message == "a signal asked the agent to stop"
    assert (told.exit_code, told.of(End)[0].ok) == (1, False)
    assert all(is_gone(started.pid) for started in told.of(Started))


def test_its_processes_do_not_outlive_a_killed_agent(agent: str) -> None:
    document = json.dumps({"id": "k", "workload": {"argv": ["sleep", "1000"]}})
    with subprocess.Popen([agent, "run"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(document)
        process.stdin.close()
        started = None
        while not isinstance(started, Started):
            started = parse_event(process.stdout.readline())
        process.kill()
        process.wait(timeout=30)
    deadline = time.monotonic() + 30
    while not is_gone(started.pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert is_gone(started.pid)


def test_the_peak_of_memory_is_what_the_process_sees_itself(run: Runner) -> None:
    look = "a = b'x' * 50_000_000; del a; print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"
    told = run(workload={"argv": [sys.executable, "-c", look]})
    assert told.exited().peak_rss_bytes == pytest.approx(int(told.output().text) * 1024, rel=0.02)


def test_it_takes_less_than_8_mb_of_memory(run: Runner, agent: str, tmp_path: Path) -> None:
    """Measured by itself, with a full megabyte of output that has to be escaped."""
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"id": "m", "workload": shell("head -c 4000000 /dev/zero"), "counters": ["cycles"]}))
    told = run(workload={"argv": [agent, "run", "--plan", str(plan)]})
    assert told.exited().exit_code == 0
    assert told.exited().peak_rss_bytes < 8 << 20


@pytest.mark.parametrize("arguments", [[], ["fly"], ["run", "--plan"], ["run", "x"], ["sweep"], ["--version", "x"]])
def test_a_wrong_request_is_refused(agent: str, arguments: list[str]) -> None:
    done = subprocess.run([agent, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("ajuste-agent: ")
    assert len(done.stderr.splitlines()) == 1
