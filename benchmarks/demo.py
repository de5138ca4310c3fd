"""``make demo`` on a machine that is set up: its time, and the most memory that the orchestrator and the agent use."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ajuste.machine.home import home
from benchmarks.comparison import Comparison

MOST_SECONDS = 90
MOST_MIB = 250
_AJUSTE = Path(sys.executable).parent / "ajuste"


def measure() -> tuple[Comparison, ...]:
    """Measure one whole run of ``ajuste run granularity`` with an empty store."""
    began = time.monotonic()
    document, peak_mib = _run()
    taken = time.monotonic() - began
    results = json.loads(document)
    stopped = f"{len(results['trials'])} trials, {results['stopped']}"
    return (
        Comparison(
            name="demo",
            what=f"ajuste run granularity ({stopped})",
            unit="s",
            figures={"ajuste": [taken]},
            goal=f"under {MOST_SECONDS} s",
            reached=taken < MOST_SECONDS,
        ),
        Comparison(
            name="memory",
            what="the most memory that the orchestrator had in that run, without QEMU",
            unit="MiB",
            figures={"ajuste": [peak_mib]},
            goal=f"orchestrator under {MOST_MIB} MiB",
            reached=peak_mib < MOST_MIB,
        ),
    )


def _run() -> tuple[str, float]:
    """Return what the run printed, and the peak of its resident memory in MiB."""
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "cache").symlink_to(home().cache)
        environment = {"AJUSTE_HOME": directory, "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"}
        peak_mib = 0.0
        with (Path(directory) / "results.json").open("w+") as output:
            process = subprocess.Popen([_AJUSTE, "run", "granularity", "--json"], env=environment, stdout=output)
            while process.poll() is None:
                peak_mib = max(peak_mib, _peak_mib(process.pid))
                time.sleep(0.1)
            if process.returncode != 0:
                raise SystemExit(f"ajuste run granularity failed with exit code {process.returncode}")
            output.seek(0)
            return output.read(), peak_mib


def _peak_mib(pid: int) -> float:
    """VmHWM of proc(5); 0 once the process has ended."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0
