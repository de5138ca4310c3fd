"""Limits of control groups in a guest, in exact figures under the virtual clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ajuste.machine.home import WORKLOADS, Home
from ajuste.model.event import Exited, Failed, Output
from ajuste.model.kernel import KernelImage
from ajuste.model.plan import Attributes, Command, Plan
from ajuste_guest.executor.guest import GuestExecutor
from ajuste_guest.executor.initramfs import GuestFiles
from tiers import slow

BUNDLED = f"/ajuste/bin/{WORKLOADS}"
BUSYBOX = "/bin/busybox"
QUOTA_NS, PERIOD_NS = 50_000_000, 100_000_000
WAITS = 9
USED_NS = WAITS * QUOTA_NS + QUOTA_NS // 2
"""Nine quotas and half of a tenth."""
BEYOND_NS = 9_000_000
"""A CPU takes 5 ms of a quota at once (sched_cfs_bandwidth_slice_us), and looks at its use every 4 ms (CONFIG_HZ)."""

pytestmark = [
    pytest.mark.vm,
    pytest.mark.skipif(not Path(BUSYBOX).exists(), reason="busybox is not installed"),
]


@pytest.fixture(scope="module", params=["debian:5.10", *slow("debian:6.12")])
def target(
    request: pytest.FixtureRequest, place: Home, kernel: Callable[[str], KernelImage]
) -> Iterator[GuestExecutor]:
    files = GuestFiles(programs=(Path(BUSYBOX),))
    with GuestExecutor(kernel(request.param), clock="virtual", files=files, home=place) as target:
        yield target


def limited(*argv: str, **limits: str) -> Plan:
    """``cpu_max="max"`` is the file ``cpu.max``."""
    attributes = Attributes(cgroup_limits={name.replace("_", "."): value for name, value in limits.items()})
    return Plan(id="limits", workload=Command(argv=argv, attributes=attributes))


def exited(target: GuestExecutor, plan: Plan) -> Exited:
    observation = target.run(plan)
    assert observation.problem == "", observation.problem
    return next(event for event in observation.events if isinstance(event, Exited))


def hog(cpu_max: str) -> Plan:
    return limited(BUNDLED, "spin", "--milliseconds", str(USED_NS // 1_000_000), cpu_max=cpu_max)


def test_half_a_cpu_takes_twice_as_long(target: GuestExecutor) -> None:
    free, halved = exited(target, hog("max")), exited(target, hog(f"{QUOTA_NS // 1000} {PERIOD_NS // 1000}"))
    assert free.wall_ns == pytest.approx(USED_NS, rel=0.02)
    assert halved.user_ns + halved.system_ns == pytest.approx(free.user_ns + free.system_ns, rel=0.02)
    # The first period may have begun before it did, and what it used beyond its last quota is not waited for any more.
    waited_ns = WAITS * (PERIOD_NS - QUOTA_NS)
    assert waited_ns - QUOTA_NS - BEYOND_NS < halved.wall_ns - free.wall_ns < waited_ns + 10_000_000
    assert target.run(hog("50000 100000")).lines == target.run(hog("50000 100000")).lines


def test_more_memory_than_the_limit_is_the_end(target: GuestExecutor) -> None:
    copy = (BUSYBOX, "dd", "if=/dev/zero", "of=/dev/null", "bs=32M", "count=1")
    assert exited(target, limited(*copy, memory_max=str(64 << 20))).exit_code == 0
    killed = exited(target, limited(*copy, memory_max=str(16 << 20)))
    assert (killed.exit_code, killed.signal) == (None, 9)


def test_no_more_processes_than_the_limit(target: GuestExecutor) -> None:
    observation = target.run(limited(BUSYBOX, "sh", "-c", f"{BUSYBOX} true | {BUSYBOX} true", pids_max="1"))
    (stderr,) = [event.text for event in observation.events if isinstance(event, Output) and event.stream == "stderr"]
    assert "can't fork" in stderr


def test_a_value_that_the_kernel_refuses_is_said_with_its_place(target: GuestExecutor) -> None:
    observation = target.run(limited(BUSYBOX, "true", cpu_max="1 2"))
    (failed,) = [event for event in observation.events if isinstance(event, Failed)]
    assert failed.stage == "workload"
    assert failed.message.startswith(f'{BUSYBOX}: writing "1 2" to /sys/fs/cgroup/ajuste-1-workload/cpu.max: Invalid')


def as_on_a_host(target: GuestExecutor, script: str, **inner: Attributes) -> str:
    """Return what a script prints that uses the agent as a host does, with a plan for each name in /tmp."""
    plans = {
        name: Plan(id=name, workload=Command(argv=(BUSYBOX, "sleep", "100"), attributes=attributes)).model_dump_json()
        for name, attributes in inner.items()
    }
    files = "".join(f"cat >/tmp/{name} <<'END'\n{document}\nEND\n" for name, document in plans.items())
    install = f"{BUSYBOX} mkdir /applets; {BUSYBOX} --install -s /applets; mkdir /tmp/journals\n"
    workload = Command(argv=(BUSYBOX, "sh", "-c", install + files + script), environment={"PATH": "/applets"})
    observation = target.run(Plan(id="host", workload=workload, timeout_ns=20_000_000_000))
    assert observation.problem == "", observation.problem
    return "".join(event.text for event in observation.events if isinstance(event, Output))


def test_on_a_host_controllers_are_not_enabled_but_named(target: GuestExecutor) -> None:
    output = as_on_a_host(
        target,
        "/init run --plan /tmp/lacking --journal /tmp/journals; cat /sys/fs/cgroup/cgroup.subtree_control",
        lacking=Attributes(cgroup_limits={"pids.max": "5"}),
    )
    place = "/sys/fs/cgroup/cgroup.subtree_control"
    assert f"pids.max: groups do not have the controller pids; to enable it: echo +pids > {place}" in output
    assert output.splitlines()[-1] == "cpu"


def test_the_group_of_a_killed_agent_is_removed(target: GuestExecutor) -> None:
    script = """
        /init run --plan /tmp/limited --journal /tmp/journals >/dev/null & agent=$!
        until grep -q . /sys/fs/cgroup/ajuste-$agent-workload/cgroup.procs; do sleep 0.1; done
        cat /sys/fs/cgroup/ajuste-$agent-workload/cpu.max
        kill -9 $agent
        while [ -n "$(ls /tmp/journals)" ]; do sleep 0.1; done
        ls -d /sys/fs/cgroup/ajuste-*
    """
    output = as_on_a_host(target, script, limited=Attributes(cgroup_limits={"cpu.max": "60000 100000"}))
    assert "60000 100000\n" in output
    assert "ajuste-*: No such file" in output
