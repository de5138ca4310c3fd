"""Places that are not files of the kernel: what the agent reads there, judged by other programs."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.agent.conftest import Runner, until

from ajuste.machine.home import AGENT, native_program
from ajuste.model.event import ReadBack, Restored, Written

INTERFACES = sorted(path.name for path in Path("/sys/class/net").iterdir())


def value(run: Runner, **location: Any) -> ReadBack:
    (read,) = run(reads=[{"tunable": "t", "location": location}]).of(ReadBack)
    return read


@pytest.mark.parametrize("device", INTERFACES)
def test_the_root_qdisc_is_the_one_of_tc(run: Runner, device: str) -> None:
    if shutil.which("tc") is None:
        pytest.skip("tc is not installed")
    done = subprocess.run(["tc", "-j", "qdisc", "show", "dev", device], capture_output=True, check=True)
    roots = [qdisc["kind"] for qdisc in json.loads(done.stdout) if qdisc.get("root")]
    assert value(run, kind="qdisc", device=device).value == (roots[0] if roots else "noop")


@pytest.mark.parametrize("device", INTERFACES)
def test_features_are_those_of_ethtool(run: Runner, device: str) -> None:
    if shutil.which("ethtool") is None:
        pytest.skip("ethtool is not installed")
    done = subprocess.run(["ethtool", "-k", device], capture_output=True, text=True, check=True)
    states = dict(line.strip().split(": ", 1) for line in done.stdout.splitlines()[1:])
    reads = [{"tunable": name, "location": {"kind": "feature", "device": device, "name": name}} for name in states]
    read = {event.tunable: event.value for event in run(reads=reads).of(ReadBack)}
    assert read == {name: "1" if state.startswith("on") else "0" for name, state in states.items()}


def test_the_latency_bound_is_the_kernels(run: Runner) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    if not Path("/dev/cpu_dma_latency").exists():
        pytest.skip("/dev/cpu_dma_latency is not here")
    (bound,) = struct.unpack("i", Path("/dev/cpu_dma_latency").read_bytes())
    assert value(run, kind="latency").value == str(bound)


def test_an_interrupts_cpus_are_a_file_like_others(run: Runner) -> None:
    default = Path("/proc/irq/default_smp_affinity")
    if not default.exists():
        pytest.skip("no interrupts to be seen here")
    read = value(run, kind="file", path=str(default))
    assert read.value == default.read_text().rstrip("\n")


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ({"kind": "feature", "device": "none0", "name": "rx-gro"}, "features of none0: No such device"),
        ({"kind": "feature", "device": "lo", "name": "warp"}, "lo has no feature warp"),
        ({"kind": "ring", "device": "lo", "name": "rx"}, "rings of lo: Operation not supported"),
        ({"kind": "coalesce", "device": "lo", "name": "rx-usecs"}, "coalescing of lo: Operation not supported"),
        ({"kind": "coalesce", "device": "lo", "name": "warp"}, "ethtool has no coalescing parameter warp"),
        ({"kind": "qdisc", "device": "none0"}, "none0: No such device"),
    ],
)
def test_what_is_not_there_says_so(run: Runner, location: dict[str, str], reason: str) -> None:
    read = value(run, **location)
    assert (read.value, read.error) == (None, reason)


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Runner]:
    """The agent in a network of its own with the interface v0, and with journals."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "tc", "ethtool", "nsenter", "unshare"))):
        pytest.skip("needs root, ip, tc, ethtool, nsenter and unshare")
    with subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; exec sleep 1000"], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        journals = tmp_path / "journals"
        journals.mkdir()
        run = Runner(str(native_program(AGENT)), journals)
        run.arguments = ["nsenter", f"--net=/proc/{holder.pid}/ns/net", *run.arguments]
        inside(run, "ip link add v0 type veth peer name v1 && ip link set v0 up && ip link set v1 up")
        try:
            yield run
        finally:
            holder.kill()


def inside(network: Runner, script: str) -> str:
    done = subprocess.run([*network.arguments[:2], "sh", "-c", script], capture_output=True, text=True, check=True)
    return done.stdout


SHOW_SETTINGS = "ethtool -k v0; tc -d qdisc show dev v0 | sed 's/direct_packets_stat [0-9]*//'"
"""Commands that print what the writes below change. (How many packets there were is no setting.)"""


def write(tunable: str, value: str, **location: str) -> dict[str, Any]:
    return {"tunable": tunable, "location": location, "value": value}


WRITES = [
    write("gso", "0", kind="feature", device="v0", name="tx-generic-segmentation"),
    write("tso", "1", kind="feature", device="v0", name="tcp-segmentation-offload"),
    write("qdisc", "pfifo_fast", kind="qdisc", device="v0"),
    write("latency", "1999999999", kind="latency"),
]


def test_an_interface_is_afterwards_as_it_was(network: Runner) -> None:
    inside(
        network, "ethtool -K v0 tx-tcp6-segmentation off && tc qdisc replace dev v0 root handle 7: bfifo limit 12345"
    )
    before = inside(network, SHOW_SETTINGS)
    trial = network.shell(f"{SHOW_SETTINGS}; readlink /proc/$PPID/fd/* | grep -c cpu_dma_latency", writes=WRITES)
    during = trial.output().text
    assert "generic-segmentation-offload: off" in during
    assert "tx-tcp6-segmentation: on" in during
    assert "qdisc pfifo_fast " in during
    assert during.splitlines()[-1] == "1", "the bound is held open"
    written = {event.tunable: (event.before, event.after) for event in trial.of(Written)}
    assert (written["gso"], written["tso"], written["qdisc"]) == (("1", "0"), ("1", "1"), ("bfifo", "pfifo_fast"))
    restored = {event.tunable: (event.found, event.value) for event in trial.of(Restored)}
    assert (restored["gso"], restored["qdisc"]) == (("0", "1"), ("pfifo_fast", "bfifo"))
    assert trial.exit_code == 0
    assert inside(network, SHOW_SETTINGS) == before


def test_the_guardian_puts_an_interface_back(network: Runner, tmp_path: Path) -> None:
    before = inside(network, SHOW_SETTINGS)
    plan = {"id": "t", "writes": WRITES, "workload": Runner.command(f"touch {tmp_path}/started; sleep 1000")}
    with subprocess.Popen(network.arguments, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        assert process.stdin is not None
        process.stdin.write(json.dumps(plan))
        process.stdin.close()
        until((tmp_path / "started").exists)
        assert inside(network, SHOW_SETTINGS) != before
        process.kill()
    until(lambda: list((tmp_path / "journals").iterdir()) == [])
    assert inside(network, SHOW_SETTINGS) == before


def test_what_could_not_be_put_back_is_not_changed(network: Runner) -> None:
    inside(network, "tc qdisc replace dev v0 root handle 7: htb")
    before = inside(network, SHOW_SETTINGS)
    trial = network.shell("true", writes=WRITES)
    reason = "the qdisc htb of v0 could not be put back: it does not tell all of its state"
    assert (trial.failed.stage, trial.failed.tunable, trial.failed.message) == ("write", "qdisc", reason)
    assert trial.of(Written) == []
    assert inside(network, SHOW_SETTINGS) == before
