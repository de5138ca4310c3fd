"""The agent on this machine: what it says of a process is compared with what the process itself, the kernel or
another program says. ``run`` is ``conftest.Runner``.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ajuste.model.event import Accepted, Counter, End, Hello, ReadBack


def test_it_introduces_itself_and_counts_its_events(run: Any) -> None:
    trial = run.shell("echo hi")
    hello, accepted, end = trial.events[0], trial.events[1], trial.events[-1]
    assert isinstance(hello, Hello)
    assert isinstance(accepted, Accepted)
    assert isinstance(end, End)
    assert (hello.kernel, hello.guest, hello.cpus) == (os.uname().release, False, os.cpu_count())
    assert hello.memory_bytes == int(Path("/proc/meminfo").read_text().split()[1]) * 1024
    assert (end.ok, end.events, trial.exit_code) == (True, len(trial.events) - 2, 0)
    assert [event.at_ns for event in trial.events] == sorted(event.at_ns for event in trial.events)


def test_what_wait4_says_is_what_is_reported(run: Any, workloads: str) -> None:
    """The same work under Python's own wait4(2)."""
    argv = [workloads, "matrix", "--size", "256", "--repetitions", "20"]
    plan = {"workload": {"argv": argv}, "counters": ["task-clock", "context-switches", "page-faults"]}
    actions = [(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)]
    ours, theirs, clocks = [], [], []
    for _ in range(5):  # The shortest of each was disturbed least.
        trial = run(**plan)
        exited = trial.exited()
        ours.append((exited.user_ns + exited.system_ns) / 1e9)
        usage = os.wait4(os.posix_spawn(argv[0], argv, {}, file_actions=actions), 0)[2]
        theirs.append(usage.ru_utime + usage.ru_stime)
        (clock,) = (counter for counter in trial.of(Counter) if counter.name == "task-clock")
        if clock.not_supported is None:
            clocks.append(clock.value / (exited.user_ns + exited.system_ns))
    assert min(ours) == pytest.approx(min(theirs), rel=0.5)
    assert exited.minor_faults == pytest.approx(usage.ru_minflt, abs=60)
    assert exited.wall_ns >= 0.8 * exited.user_ns, "the kernel rounds both"
    counters = {counter.name: counter for counter in trial.of(Counter)}
    if clocks:
        assert min(clocks, key=lambda ratio: abs(ratio - 1)) == pytest.approx(1, rel=0.1)
        switches = exited.voluntary_switches + exited.involuntary_switches
        # The counters begin with the program itself: on a busy machine its process is switched out before, too.
        assert switches / 2 - 3 <= counters["context-switches"].value <= switches + 2
        assert counters["page-faults"].value == pytest.approx(exited.minor_faults + exited.major_faults, abs=5)


def test_children_that_were_waited_for_are_counted(run: Any, workloads: str) -> None:
    trial = run.shell(f"{workloads} spin --milliseconds 200; :", counters=["task-clock"])
    assert trial.exited().user_ns + trial.exited().system_ns >= 190_000_000
    (counter,) = trial.of(Counter)
    assert counter.not_supported or (counter.value or 0) >= 190_000_000


def test_a_counter_that_the_machine_does_not_have_is_never_0(run: Any) -> None:
    names = ["cycles", "instructions", "cache-references", "cache-misses", "branches", "branch-misses"]
    for counter in run.shell("exit 0", counters=names).of(Counter):
        if counter.value is None:
            assert counter.not_supported
        else:
            assert counter.running_ns > 0
            assert counter.not_supported is None


def test_what_is_beyond_the_limit_is_counted_and_not_kept(run: Any) -> None:
    trial = run.shell("head -c 3000000 /dev/zero | tr '\\0' x; printf é >&2", output_limit_bytes=1000)
    assert trial.output().text == "x" * 1000
    assert trial.output().dropped_bytes == 2_999_000
    assert (trial.output("stderr").text, trial.output("stderr").dropped_bytes) == ("é", 0)


def test_a_load_that_prints_without_end_disturbs_nobody(run: Any) -> None:
    trial = run.shell("sleep 0.5", background=[{"argv": ["yes"]}], output_limit_bytes=4)
    load = trial.exited("background")
    assert (load.signal, trial.output(role="background").text) == (signal.SIGKILL, "y\ny\n")
    assert trial.output(role="background").dropped_bytes > 1 << 20


def test_tunables_are_read_and_what_is_none_says_why(run: Any) -> None:
    place = "/proc/sys/kernel/ostype"
    reads = [
        {"tunable": "a", "location": {"kind": "file", "path": place}},
        {"tunable": "b", "location": {"kind": "file", "path": "/etc/passwd"}},
        {"tunable": "c", "location": {"kind": "choice", "path": place}},
    ]
    trial = run(reads=reads)
    a, b, c = trial.of(ReadBack)
    assert (a.value, a.error) == ("Linux", None)
    assert (b.value, c.value) == (None, None)
    assert "not a plain path below /proc/sys, /proc/irq or /sys" in (b.error or "")
    assert c.error == f"no current choice is marked in {place}"
    assert trial.exit_code == 0


def test_nothing_is_written_without_a_journal(run: Any, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    write = {"tunable": "w", "location": {"kind": "file", "path": "/proc/sys/kernel/ostype"}, "value": "x"}
    trial = run.shell(f"touch {mark}", writes=[write])
    assert (trial.failed.stage, trial.failed.tunable, trial.exit_code) == ("write", "w", 1)
    assert trial.failed.message == "writing on this machine needs a journal: --journal DIR"
    assert not mark.exists()


def test_a_malformed_plan_is_refused_with_the_reason(run: Any) -> None:
    trial = run.document('{"id":"x","counters":["cycels"]}')
    assert (trial.exit_code, trial.failed.stage) == (2, "plan")
    assert 'unknown counter "cycels"' in trial.failed.message
    assert trial.failed.message in trial.complaint
    assert not trial.of(End)


def test_the_peak_of_memory_is_what_the_process_sees_itself(run: Any) -> None:
    look = "a = b'x' * 50_000_000; del a; print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"
    trial = run(workload={"argv": [sys.executable, "-c", look]})
    assert trial.exited().peak_rss_bytes == pytest.approx(int(trial.output().text) * 1024, rel=0.02)


def test_it_takes_less_than_8_mb_of_memory(run: Any, agent: str, tmp_path: Path) -> None:
    """Measured by itself, with a full megabyte of output that has to be escaped."""
    plan = tmp_path / "plan.json"
    plan.write_text(
        json.dumps({"id": "m", "workload": run.command("head -c 4000000 /dev/zero"), "counters": ["cycles"]})
    )
    trial = run(workload={"argv": [agent, "run", "--plan", str(plan)]})
    assert trial.exited().exit_code == 0
    assert trial.exited().peak_rss_bytes < 8 << 20


@pytest.mark.parametrize("arguments", [[], ["fly"], ["run", "--plan"], ["run", "x"], ["sweep"], ["--version", "x"]])
def test_a_wrong_request_is_refused(agent: str, arguments: list[str]) -> None:
    done = subprocess.run([agent, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("ajuste-agent: ")
    assert len(done.stderr.splitlines()) == 1
