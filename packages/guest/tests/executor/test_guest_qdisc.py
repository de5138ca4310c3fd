"""The agent as it is on a host, in a guest: queueing disciplines that the kernel of this machine may not have."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ajuste.machine.home import Home
from ajuste.model.event import Output
from ajuste.model.kernel import KernelImage
from ajuste.model.plan import Command, Plan, Qdisc, Write
from ajuste_guest.executor.guest import GuestExecutor
from ajuste_guest.executor.initramfs import GuestFiles

BUSYBOX = "/bin/busybox"
TC = shutil.which("tc", path="/usr/sbin:/sbin:/usr/bin:/bin") or ""

QDISCS = (
    "fq limit 777 flow_limit 55 quantum 3000",
    "fq_codel limit 500 target 7ms interval 90ms noecn memory_limit 1Mb",
    "cake bandwidth 50mbit diffserv4 nat rtt 80ms",
    "codel limit 99 target 9ms",
    "sfq perturb 10 limit 60",
    "pie limit 99 target 20ms",
    "hhf limit 99",
    "tbf rate 1mbit burst 32kbit latency 400ms",
    "pfifo limit 42",
)

pytestmark = [
    pytest.mark.vm,
    pytest.mark.skipif(not TC or not Path(BUSYBOX).exists(), reason="tc or busybox is not installed"),
]


@pytest.fixture(scope="module", params=["debian:5.10", "debian:6.12"])
def target(
    request: pytest.FixtureRequest, place: Home, kernel: Callable[[str], KernelImage]
) -> Iterator[GuestExecutor]:
    kinds = {f"sch_{qdisc.split()[0]}" for qdisc in QDISCS if not qdisc.startswith("pfifo")}
    files = GuestFiles(programs=(Path(BUSYBOX), Path(TC)), modules=tuple(sorted(kinds)))
    with GuestExecutor(kernel(request.param), clock="virtual", files=files, home=place) as target:
        yield target


def script() -> str:
    """Return a script that for each sets it up, looks, lets the agent have another one for a trial, and looks again."""
    inner = Plan(
        id="inner",
        writes=(Write(tunable="qdisc", location=Qdisc(device="lo"), value="pfifo_fast"),),
        workload=Command(argv=(TC, "qdisc", "show", "dev", "lo")),
    )
    lines = ["mkdir /tmp/journals", f"cat >/tmp/plan <<'END'\n{inner.model_dump_json()}\nEND"]
    for qdisc in QDISCS:
        lines += [
            f"{TC} qdisc replace dev lo root handle 7: {qdisc}",
            f"before=$({TC} -d qdisc show dev lo)",
            "/init run --plan /tmp/plan --journal /tmp/journals >/tmp/events 2>&1 || cat /tmp/events",
            "grep -q 'qdisc pfifo_fast ' /tmp/events || echo not changed",
            f"after=$({TC} -d qdisc show dev lo)",
            '[ "$before" = "$after" ] && echo "same $before" || echo "before $before, after $after"',
            f"{TC} qdisc del dev lo root",
        ]
    lines += ["ls /tmp/journals"]
    return "\n".join(lines)


@pytest.mark.slow
def test_every_kind_that_can_be_put_back_is_put_back_with_its_options(target: GuestExecutor) -> None:
    environment = {"PATH": "/applets"}
    install = f"{BUSYBOX} mkdir /applets; {BUSYBOX} --install -s /applets; mkdir -p /tmp;"
    workload = Command(argv=(BUSYBOX, "sh", "-c", f"{install} {script()}"), environment=environment)
    observation = target.run(Plan(id="qdiscs", workload=workload, timeout_ns=300_000_000_000))
    assert observation.problem == "", observation.problem
    outputs = {event.stream: event.text for event in observation.events if isinstance(event, Output)}
    lines = [line for line in outputs["stdout"].splitlines() if line.startswith(("same", "before", "not", "{"))]
    assert [line.split(" 7: ")[0] for line in lines] == [f"same qdisc {qdisc.split()[0]}" for qdisc in QDISCS], outputs
