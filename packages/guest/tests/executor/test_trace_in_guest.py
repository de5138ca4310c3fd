"""Events of the scheduler in guests under the virtual clock, beside the kernel's own counts of the same trial."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ajuste.machine.home import WORKLOADS, Home, native_program
from ajuste.model.event import Exited, Sample, Traced
from ajuste.model.kernel import KernelImage
from ajuste.model.plan import Command, Plan, Sampler, Trace
from ajuste.model.scheduling import Recording
from ajuste.model.trial import Observation
from ajuste_guest.executor.guest import GuestExecutor
from ajuste_guest.executor.initramfs import GuestFiles
from tiers import slow

pytestmark = pytest.mark.vm

SHELL = """i=0
while [ $i -lt 150 ]; do
    i=$((i + 1))
    (echo $i) | while read word; do :; done
done
"""
SPIN = Command(argv=(f"/ajuste/bin/{WORKLOADS}", "spin"))
PIPES = Plan(
    id="pipes",
    background=(SPIN,),
    workload=Command(argv=("/bin/sh", "-c", SHELL), environment={"PATH": "/bin"}),
    samplers=(Sampler(source="schedstat", keys=("cpu.wait_ns",), interval_ns=10_000_000_000),),
    trace=Trace(buffer_bytes=32 << 20),
)


@pytest.fixture(scope="module")
def guest(place: Home, kernel: Callable[[str], KernelImage]) -> Iterator[GuestExecutor]:
    with target(place, kernel("debian:5.10")) as guest:
        yield guest


def target(place: Home, image: KernelImage) -> GuestExecutor:
    programs = (Path("/bin/sh"), native_program(WORKLOADS))
    return GuestExecutor(image, clock="virtual", files=GuestFiles(programs=programs), home=place)


@pytest.fixture(scope="module")
def first(guest: GuestExecutor) -> Observation:
    return guest.run(PIPES)


@pytest.fixture(scope="module", params=["debian:5.10", *slow("debian:6.12")])
def observed(request: pytest.FixtureRequest, place: Home, kernel: Callable[[str], KernelImage]) -> Observation:
    """The trial with CFS and with EEVDF."""
    if request.param == "debian:5.10":
        observation: Observation = request.getfixturevalue("first")
        return observation
    with target(place, kernel(request.param)) as guest:
        return guest.run(PIPES)


def exited(observation: Observation, role: str = "workload") -> Exited:
    (event,) = [event for event in observation.events if isinstance(event, Exited) and event.role == role]
    return event


def recording(observation: Observation) -> Recording:
    (event,) = [event for event in observation.events if isinstance(event, Traced)]
    assert event.recording is not None, event.not_supported
    return event.recording


def test_switches_are_those_that_the_kernel_counts(observed: Observation) -> None:
    """The kernel counts those of processes that were waited for, some before their very last switch."""
    trace, counted = recording(observed), exited(observed)
    switches = trace.workload.switches
    assert trace.lost == 0
    assert trace.workload.tasks > 300
    assert abs(switches.preempted - counted.involuntary_switches) <= 2
    voluntary = switches.slept + switches.blocked
    assert voluntary - 2 <= counted.voluntary_switches <= voluntary + switches.exited + 2
    assert switches.exited == trace.workload.tasks


def test_times_are_those_that_the_kernel_counts(observed: Observation) -> None:
    trace, counted = recording(observed), exited(observed)
    assert trace.span_ns == trace.covered_ns == pytest.approx(counted.wall_ns, rel=0.01)
    assert trace.workload.run_ns == pytest.approx(counted.user_ns + counted.system_ns, rel=0.05, abs=8_000_000)
    waits = [event.values["cpu.wait_ns"] for event in observed.events if isinstance(event, Sample)]
    # The kernel's sum has those who are no part of the trial, too.
    assert 0.85 * (waits[-1] - waits[0]) <= trace.workload.wait_ns + trace.background.wait_ns <= waits[-1] - waits[0]


def test_the_figures_agree_with_each_other(observed: Observation) -> None:
    trace = recording(observed)
    for part in (trace.workload, trace.background):
        for spread in (part.latency, part.runs):
            assert sum(count for _, count in spread.histogram) == spread.count
            assert spread.p50_ns <= spread.p95_ns <= spread.p99_ns <= spread.max_ns
        assert part.runs.total_ns <= part.run_ns
    assert trace.workload.latency.count == trace.workload.wakeups
    assert sum(lasted for _, lasted in trace.queue) <= trace.covered_ns
    assert sum(share.run_ns for share in trace.shares) + trace.idle_ns == pytest.approx(trace.covered_ns, rel=0.001)
    assert sum(preemption.count for preemption in trace.preemptions) == trace.workload.switches.preempted


def test_the_same_trial_is_recorded_alike(guest: GuestExecutor, first: Observation) -> None:
    assert guest.run(PIPES).lines == first.lines


def test_where_there_is_no_room_for_all_it_is_known_of_what(guest: GuestExecutor, first: Observation) -> None:
    small = recording(guest.run(PIPES.model_copy(update={"trace": Trace(buffer_bytes=1 << 16)})))
    whole = recording(first)
    assert small.lost > 0
    assert 0 < small.covered_ns < small.span_ns
    assert 0 < small.events < whole.events <= small.events + small.lost + 100
