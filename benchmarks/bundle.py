"""A run of 1,000 trials as a bundle and as a report: how large they are, and whether reports are the same after an
import. Then the reports of shorter and longer runs on this machine, which have all of its metrics.

``python -m benchmarks bundle``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from ajuste.machine.files import locked
from benchmarks.comparison import Comparison
from benchmarks.kills import TESTS_LOCK

TRIALS = 1_000
BUNDLE_BYTES = 1_000_000
REPORT_BYTES = 1_500_000
BLOCKS = (6, 341, 500, 1_000)
"""Numbers of blocks of two configurations each, and one block of warm-up."""
STUDY = f"""\
schema = 1
name = "thousand"
[[factor]]
name = "nice"
levels = [0, 5]
[workload]
kind = "matrix"
parameters = {{ size = 40, repetitions = 1 }}
[[workload.background]]
kind = "spin"
[target]
kernel = "debian:5.10"
[budget]
min_blocks = {TRIALS // 2}
max_blocks = {TRIALS // 2}
max_minutes = 120
[analysis]
metrics = ["elapsed"]
"""


def measure() -> tuple[Comparison, ...]:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        study, bundle = root / "thousand.toml", root / "thousand.ajuste"
        study.write_text(STUDY)
        first, second = root / "first.sqlite", root / "second.sqlite"
        _ajuste(first, "run", str(study), "--quiet", "--report", str(root / "report.html"))
        run = json.loads(_ajuste(first, "report", "--json"))[0]["run"]
        before = _reports(first, run, root)
        summary = json.loads(_ajuste(first, "bundle", run, "-o", str(bundle), "--json"))
        _ajuste(second, "import", str(bundle))
        after = _reports(second, run, root)
        sizes = {"bundle": summary["size_bytes"], "store": first.stat().st_size, "report as HTML": len(before["HTML"])}
        reports = dict(_report_on_host(blocks, root) for blocks in BLOCKS)
    return (
        Comparison(
            name="bundle",
            what=f"a run of {summary['trials']:,} trials",
            unit="kB",
            figures={name: [size / 1e3] for name, size in sizes.items()},
            goal="the bundle has less than 1 MB, the report less than 1.5 MB",
            reached=summary["trials"] >= TRIALS
            and sizes["bundle"] < BUNDLE_BYTES
            and sizes["report as HTML"] < REPORT_BYTES,
        ),
        Comparison(
            name="report-sizes",
            what="reports as HTML of runs of true at two nice values on this machine",
            unit="kB",
            figures={f"{trials:,} trials": [size / 1e3] for trials, size in reports.items()},
            goal="each has less than 1.5 MB",
            reached=max(reports.values()) < REPORT_BYTES,
        ),
        Comparison(
            name="bundle-reports",
            what="reports that differ after an import (text, JSON, Markdown, HTML)",
            unit="reports",
            figures={"of 4": [float(sum(before[form] != after[form] for form in before))]},
            goal="none",
            reached=before == after,
        ),
    )


def _report_on_host(blocks: int, root: Path) -> tuple[int, int]:
    """Return how many trials a run has, and how many bytes its report."""
    html = root / f"{blocks}.html"
    words = ("--nice", "0,5", "--blocks", str(blocks), "--quiet", "--report", str(html), "--json", "--", "true")
    with locked(TESTS_LOCK):
        results = json.loads(_ajuste(root / f"{blocks}.sqlite", "compare", *words))
    return len(results["trials"]), html.stat().st_size


def _ajuste(store: Path, *words: str) -> bytes:
    ajuste = Path(sys.executable).with_name("ajuste")
    environment = {**os.environ, "AJUSTE_STORE": f"sqlite:///{store}"}
    return subprocess.run([ajuste, *words], env=environment, check=True, stdout=subprocess.PIPE).stdout


def _reports(store: Path, run: str, root: Path) -> dict[str, Any]:
    html, markdown = root / "report.html", root / "report.md"
    html.unlink(missing_ok=True)  # A page of the same contents would stay.
    text = _ajuste(store, "report", run, "--verbose", "--html", str(html), "--markdown", str(markdown))
    document = _ajuste(store, "report", run, "--json", "--html", str(html))
    return {"text": text, "JSON": document, "Markdown": markdown.read_bytes(), "HTML": html.read_bytes()}
