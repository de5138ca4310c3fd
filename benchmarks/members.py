"""Runs of all workloads of the catalogue, for real: on this machine once, with what came of it, or why one cannot run.

``python -m benchmarks members`` prints a table as it goes. ``AJUSTE_MEMBERS`` names those to
run, by commas (default: all). Each runs in an empty directory. Programs that are not packaged are found by PATH;
``kernbench``, ``unixbench`` and ``will-it-scale`` look for their directories in the one where this was called.
PostgreSQL refuses root: for root, what needs it runs as nobody.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from ajuste.catalogue.loader import catalogue
from ajuste.model.workload import WorkloadKind
from ajuste.report.format import common_format
from benchmarks.comparison import Comparison

_AJUSTE: Final = Path(sys.executable).parent / "ajuste"
_LIMIT_S: Final = 300
_SHORTEST: Final = {"seconds": 1, "milliseconds": 500}
_BUSY: Final = "another experiment is running"
_DIRECTORIES: Final = ("source", "directory")
"""Parameters that name what was built, by a path."""
_NOBODY: Final = "65534"
_TURNS: Final = 600
"""Number of times, at most, that a workload waits a second for the experiments of others on this machine."""
_MISSING: Final = re.compile(r"not found|No such file|needs root|takes root|not supported|sch_netem")
"""Pattern of what a workload says where the machine lacks something: this is no failure of Ajuste."""


class Ran(NamedTuple):
    """Outcome of a workload: its main figure, or why there is none. ``failed`` if that is no lack of the machine."""

    name: str
    seconds: float
    result: str
    failed: bool = False


def measure() -> tuple[Comparison, ...]:
    """Count the workloads that ran, and print a row for each."""
    wanted = tuple(filter(None, os.environ.get("AJUSTE_MEMBERS", "").split(",")))
    outcomes: list[Ran] = []
    print("| Workload | Time | Result |\n|---|--:|---|", file=sys.stderr)
    for outcome in _all(wanted):
        print(f"| `{outcome.name}` | {outcome.seconds:.1f} s | {outcome.result} |", file=sys.stderr, flush=True)
        outcomes.append(outcome)
    ran = [outcome for outcome in outcomes if outcome.result.startswith("ran")]
    failed = [outcome.name for outcome in outcomes if outcome.failed]
    return (
        Comparison(
            name="members",
            what=f"{len(ran)} of {len(outcomes)} workloads ran here; failed: {', '.join(failed) or 'none'}",
            unit="s",
            figures={"one run": [outcome.seconds for outcome in ran]},
            goal="every workload runs, or the machine lacks something that it names",
            reached=not failed,
        ),
    )


def _all(wanted: tuple[str, ...]) -> Iterator[Ran]:
    for name, kind in sorted(catalogue().workloads.items()):
        if not kind.endless and (not wanted or name in wanted):
            yield _once(kind)


def _once(kind: WorkloadKind) -> Ran:
    """Run one block, in which everything is short; a display is made for what needs one."""
    parameters = kind.parameters
    shortest = {
        name: max(value, parameters[name].minimum or 0) for name, value in _SHORTEST.items() if name in parameters
    }
    built = {name: Path(parameters[name].default).resolve() for name in _DIRECTORIES if name in parameters}
    arguments = [f"{name}={value}" for name, value in (*shortest.items(), *built.items())]
    words = [str(_AJUSTE), "compare", "--blocks", "1", "--quiet", "--json", "--fresh", "--", kind.name, *arguments]
    if kind.name == "glxgears" and "DISPLAY" not in os.environ and shutil.which("xvfb-run"):
        words = ["xvfb-run", "-a", *words]
    environment = dict(os.environ)
    if os.geteuid() == 0 and "pgbench" in kind.needs:
        environment |= {"SUDO_UID": _NOBODY, "SUDO_GID": _NOBODY}
    for _ in range(_TURNS):
        began = time.monotonic()
        try:
            with tempfile.TemporaryDirectory() as place:
                Path(place).chmod(0o777)
                done = subprocess.run(
                    words, cwd=place, env=environment, capture_output=True, text=True, timeout=_LIMIT_S, check=False
                )
        except subprocess.TimeoutExpired:
            return Ran(kind.name, float(_LIMIT_S), "did not end", failed=True)
        if _BUSY not in done.stderr:
            break
        time.sleep(1)
    took = time.monotonic() - began
    if done.returncode == 0:
        return Ran(kind.name, took, _figure(kind, done.stdout))
    lines = [line for line in done.stderr.splitlines() if not line.startswith(" ")]  # without hints
    reason = " ".join(lines).removeprefix("ajuste: ").rpartition("it said last: ")[2][:200]
    return Ran(kind.name, took, f"not run: {reason}", failed=_MISSING.search(done.stderr) is None)


def _figure(kind: WorkloadKind, output: str) -> str:
    """The main metric, as a report shows it."""
    (configuration,) = json.loads(output)["configurations"]
    main = configuration["metrics"].get(kind.main or "elapsed")
    metric = next((metric for metric in kind.metrics if metric.name == kind.main), None)
    if main is None:
        return "ran"
    figure = common_format([main["mean"]], metric.unit if metric else "s").with_unit(main["mean"])
    return f"ran: {metric.title if metric else 'Elapsed time'} {figure}"
