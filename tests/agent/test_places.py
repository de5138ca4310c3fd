"""Places that are not files of the kernel: what the agent reads there, judged by other programs."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.agent.conftest import Runner

from ajuste.model.event import ReadBack

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
    if os.geteuid() != 0 or not Path("/dev/cpu_dma_latency").exists():
        pytest.skip("needs root and /dev/cpu_dma_latency")
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
