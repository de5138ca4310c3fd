"""Grids: how quickly the 30 points of hackbench-granularity are measured, and what refinement saves of a fine grid."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from ajuste.machine.home import home
from ajuste.model.trial import Configuration, Factor
from ajuste.study.builtin import find_study
from ajuste_search.refinement.grid import Grid, SampledPoint, build_grid, known, surface_over
from benchmarks.comparison import Comparison

MOST_SECONDS = 45
LEAST_EFFICIENCY = 0.9
SIDE, BLOCKS, NOISE, ALLOWED, REPEATS = 20, 2, 0.005, 0.03, 5
_AJUSTE = Path(sys.executable).parent / "ajuste"

Array = NDArray[np.float64]
SHAPES: dict[str, Callable[[Array, Array], Array]] = {
    "bowl": lambda x, y: 0.3 * ((x - 0.6) ** 2 + (y - 0.3) ** 2),
    "fast fall": lambda x, y: 0.5 * np.exp(-8 * x) * (1 - y / 2) + 0.05 * y,
    "ripple": lambda x, y: 0.08 * np.sin(9 * x) + 0.1 * y,
    "ridge": lambda x, y: 0.45 * np.exp(-12 * y) * (0.3 + 0.7 * np.exp(-3 * x)),
    "step": lambda x, y: 0.3 / (1 + np.exp(-25 * (x - 0.45))) + 0.1 * x * y,
}


def measure() -> tuple[Comparison, ...]:
    """Measure one block of the study with one job and with two, and refinement played through on known surfaces."""
    return (*_measured_in_the_guest(), *_simulated())


def _measured_in_the_guest() -> tuple[Comparison, ...]:
    one_block("--jobs", "2")  # The machine boots, which neither has to do again.
    runs = {jobs: one_block("--jobs", str(jobs)) for jobs in (1, 2)}
    (alone, one_job_digest), (together, two_jobs_digest) = runs[1], runs[2]
    efficiency = alone / (2 * together)
    return (
        Comparison(
            name="surface",
            what="each of the 30 points of hackbench-granularity once, with analysis",
            unit="s",
            figures={"1 job": [alone], "2 jobs": [together]},
            goal=f"under {MOST_SECONDS} s with two jobs, and the same digest",
            reached=together < MOST_SECONDS and one_job_digest == two_jobs_digest,
        ),
        Comparison(
            name="surface-efficiency",
            what="of two jobs beside one",
            unit="",
            figures={"efficiency": [efficiency]},
            goal=f"at least {LEAST_EFFICIENCY}",
            reached=efficiency >= LEAST_EFFICIENCY,
        ),
    )


def one_block(*options: str) -> tuple[float, str]:
    """Seconds of the whole command with an empty store, and the digest, of each point of the study once."""
    text = find_study("hackbench-granularity").read_text(encoding="utf-8")
    for budget in ("min_blocks", "max_blocks"):
        text = text.replace(f"{budget} = 5", f"{budget} = 1")
    text = text.replace("explain = true", "explain = false")  # the trials that say why are not of the grid
    cache = home().cache
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "cache").symlink_to(cache)
        study = Path(directory) / "study.toml"
        study.write_text(text, encoding="utf-8")
        environment = {"AJUSTE_HOME": directory, "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"}
        words = [str(_AJUSTE), "run", str(study), *options, "--json", "--quiet"]
        began = time.monotonic()
        done = subprocess.run(words, env=environment, stdout=subprocess.PIPE, check=True)
        taken = time.monotonic() - began
    results = json.loads(done.stdout)
    if results["tally"]["clean"] != 30:
        raise SystemExit(f"expected 30 clean trials, found {results['tally']}")
    return taken, results["digest"]


def _simulated() -> tuple[Comparison, ...]:
    of = _grid()
    played = {name: [_refined(of, shape, seed) for seed in range(REPEATS)] for name, shape in SHAPES.items()}
    whole = float(BLOCKS * SIDE * SIDE)
    trials = {name: [float(count) for count, _ in runs] for name, runs in played.items()}
    errors = {name: [100 * error for _, error in runs] for name, runs in played.items()}
    return (
        Comparison(
            name="refinement",
            what=f"trials until a surface of {SIDE} × {SIDE} points is known, simulated with {100 * NOISE:g} % noise",
            unit="trials",
            figures={"whole grid": [whole], **trials},
            goal="a fifth of the whole grid's trials at most",
            reached=all(max(counts) <= whole / 5 for counts in trials.values()),
        ),
        Comparison(
            name="refinement-error",
            what="largest error of such a surface at any point",
            unit="%",
            figures=errors,
            goal=f"at most {100 * ALLOWED:g} %, in the median of each",
            reached=all(median(percentages) <= 100 * ALLOWED for percentages in errors.values()),
        ),
    )


def _grid() -> Grid:
    levels = tuple(map(str, range(SIDE)))
    factors = tuple(Factor(name=name, levels=levels, baseline="0") for name in ("m", "w"))
    made = [
        Configuration(name=f"{m} {w}", levels={"m": m, "w": w}, baseline=m == w == "0")
        for m, w in product(levels, levels)
    ]
    return build_grid(factors, made)


def _refined(of: Grid, shape: Callable[[Array, Array], Array], seed: int) -> tuple[int, float]:
    """Return how many trials it took, and the largest error of the surface that they gave."""
    random = np.random.default_rng(seed)
    truth = shape(of.points[:, 0], of.points[:, 1])
    truth = truth - truth[of.names.index(of.baseline)]
    values: dict[str, list[float]] = {}
    roster, trials, block = of.coarse, 0, 0
    while True:
        baseline = random.normal(0, NOISE)
        for name in roster:
            trials += 1
            if name != of.baseline:
                difference = truth[of.names.index(name)] + random.normal(0, NOISE) - baseline
                values.setdefault(name, []).append(float(difference))
        block += 1
        sampled = SampledPoint(values, float(np.log1p(ALLOWED)))
        knowledge = known(of, [sampled]) if block >= BLOCKS else None
        if knowledge is not None and knowledge.worst <= 1:
            return trials, float(np.max(np.abs(surface_over(of, sampled).mean - truth)))
        roster = knowledge.following if knowledge is not None else roster
