"""A good and a useless setting on a live redis whose load drifts, judged by ajuste live.

Redis and its clients (``benchmarks.live.load``) have a network of their own. Larger receive buffers are truly good for
large values; fewer retransmissions before a connection is given up change nothing on a loopback that loses nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from ajuste.model.error import RequestError
from benchmarks.comparison import RESULTS, Comparison

SLICE_S: Final = 5
FOR_S: Final = 900
DAY_S: Final = 97
"""Length of a day, no multiple of a block."""
GOOD: Final = "net.ipv4.tcp_rmem=4096 131072 6291456 net.ipv4.tcp_retries2=15"
USELESS: Final = "net.ipv4.tcp_rmem=4096 4096 4096 net.ipv4.tcp_retries2=8"
_SETTINGS: Final = ("net.ipv4.tcp_rmem=4096 4096 4096,4096 131072 6291456", "net.ipv4.tcp_retries2=15,8")
_REDIS, _METRICS = 21791, 21792
_PAGE: Final = f"http://127.0.0.1:{_METRICS}/metrics"
NAMESPACES = ("unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "sh", "-c")
"""Begins a command whose script has a network, mounts and processes of its own."""

ALONE: Final = (
    "set -eu; for place in /run /var/log /var/lib/ajuste; do mount -t tmpfs -o mode=0755 none $place; done; "
    "mkdir /run/lock; mount -t sysfs none /sys; ip link set lo up\n"
)
_SCRIPT: Final = """\
redis-server --port {redis} --bind 127.0.0.1 --save "" >/dev/null &
sleep 1
{python} -m benchmarks.live.load {redis} {port} {day} &
sleep 2
"$@"
"""


def printed_alone(directory: Path, module: str, *words: str) -> str:
    """Return what ``module`` prints in a network, with mounts and a home of its own, in a new ``directory``."""
    directory.mkdir()
    done = subprocess.run(
        [*NAMESPACES, f'{ALONE}"$@"', "sh", sys.executable, "-m", module, *words],
        env={**os.environ, "AJUSTE_HOME": f"{directory}/home"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


def measure() -> Iterable[Comparison]:
    """Run one experiment on both settings, in a network of its own. Needs root and redis-server."""
    RESULTS.mkdir(exist_ok=True)
    document = experiment(RESULTS / "live-redis.html")
    (RESULTS / "live-redis-document.json").write_text(json.dumps(document))
    figures = {verdict["configuration"]: verdict for verdict in document["verdicts"]}
    verdicts = {name: verdict["verdict"] for name, verdict in figures.items()}
    intervals = {name: (verdict["verdict"], verdict["low"], verdict["high"]) for name, verdict in figures.items()}
    right = {GOOD: "improves", USELESS: "equivalent"}
    changes = {name: [100 * (verdict["estimate"] - 1)] for name, verdict in figures.items() if verdict["estimate"]}
    slices = len(document["live"]["slices"])
    yield Comparison(
        name="live-redis",
        what=f"change of the latency of a live redis under drifting load ({slices} slices of {SLICE_S} s): "
        + ", ".join(f"{name}: {word}, {low:.3f} to {high:.3f}" for name, (word, low, high) in intervals.items()),
        unit="%",
        figures=changes,
        goal="the good setting improves, the useless one is equivalent",
        reached=verdicts == right,
    )


def experiment(report: Path) -> dict[str, Any]:
    """Return what ``ajuste live --json`` printed. Raises RequestError where there is no root."""
    if os.geteuid() != 0:
        raise RequestError("a network of its own needs root")
    Path("/var/lib/ajuste").mkdir(exist_ok=True)
    ajuste = [str(Path(sys.executable).with_name("ajuste")), "live", "--json", "--one-at-a-time"]
    ajuste += [word for setting in _SETTINGS for word in ("--set", setting)]
    ajuste += ["--slice", f"{SLICE_S}s", "--washout", "1s", "--for", f"{FOR_S}s", "--min-effect", "20%"]
    ajuste += ["--metric", f"latency,s,lower=prometheus:{_PAGE}#demo_latency_seconds"]
    ajuste += ["--watch", f"p99,s=prometheus:{_PAGE}#demo_latency_seconds@p99", "--guard", "p99 < 2s"]
    ajuste += ["--watch", f"requests,1/s=prometheus:{_PAGE}#demo_requests"]
    ajuste += ["--report", str(report)]
    script = _SCRIPT.format(python=sys.executable, redis=_REDIS, port=_METRICS, day=DAY_S)
    with tempfile.TemporaryDirectory(prefix="ajuste-live-") as directory:
        done = subprocess.run(
            [
                *NAMESPACES,
                ALONE + script,
                "sh",
                *ajuste,
            ],
            env={**os.environ, "AJUSTE_HOME": directory},
            stdout=subprocess.PIPE,
            check=True,
            timeout=2 * FOR_S + 120,
        )
    document: dict[str, Any] = json.loads(done.stdout)
    return document
