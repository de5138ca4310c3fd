"""Structures of a modelled machine against published measurements: whether what real processors carry out more slowly
is slower on it, too. The same programs run on this machine beside it.

Of a structure that the model lacks, the known difference is said; it is no failure.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from ajuste.catalogue.loader import catalogue
from ajuste.machine.home import WORKLOADS, home
from ajuste.model.cost import CostTask
from ajuste.model.modelled import ModelledMachine
from ajuste.model.plan import Command, MemoryNode, Plan
from ajuste_guest.executor.guest import GuestExecutor
from ajuste_guest.executor.initramfs import GuestFiles
from ajuste_guest.kernel.fetch import fetch_kernel
from benchmarks.comparison import Comparison
from benchmarks.parallel import built as built_beside

SPEC: Final = "debian:6.12"
MACHINE: Final = "skylake-server"
DREPPER: Final = "Drepper, What every programmer should know about memory (2007)"
LEAST_RATIO: Final = 1.1
# Steps of the shorter and of the longer trial of each: their difference is free of what comes before.
_STEPS: Final = (50_000, 150_000)
_ON_HOST: Final = 3_000_000
_HOST_ROUNDS: Final = 3


class Structure(NamedTuple):
    """A structure, and two ways of which published measurements find the second one slower, by ``source``. Where the
    model does not have it, ``lacks`` says why.
    """

    name: str
    faster: str
    slower: str
    source: str
    lacks: str = ""


STRUCTURES: Final = (
    Structure("L1 and L2", "chase 16", "chase 512", f"{DREPPER}, section 3.3.2"),
    Structure("L2 and LLC", "chase 512", "chase 8192", f"{DREPPER}, section 3.3.2"),
    Structure("LLC and memory", "chase 8192", "chase 65536", f"{DREPPER}, section 3.3.2"),
    Structure("TLB of the first level", "pages 32", "pages 512", f"{DREPPER}, section 3.3.2"),
    Structure(
        "walks of the page tables",
        "pages 512",
        "pages 8192",
        "Basu and others, Efficient virtual memory for big memory servers (ISCA 2013)",
    ),
    Structure("size of pages", "large 16384", "chase 16384", "Basu and others (ISCA 2013): 2 MiB against 4 KiB"),
    Structure("prefetcher", "row 16384", "chase 16384", f"{DREPPER}, section 3.3.2"),
    Structure("lines of a matrix", "rows 1024", "columns 1024", f"{DREPPER}, section 6.2.1"),
    Structure(
        "branch predictor",
        "sorted 64",
        "random 64",
        "Kaligosi and Sanders, How branch mispredictions affect quicksort (ESA 2006)",
    ),
    Structure(
        "misses that overlap",
        "both 16384",
        "chase 16384",
        "Chou and others, Microarchitecture optimizations for exploiting memory-level parallelism (ISCA 2004)",
        lacks="nothing overlaps, so both take the same time",
    ),
)
_NODES: Final = Structure("distance of nodes", "local", "remote", f"{DREPPER}, section 5.4")
_LINES: Final = Structure("lines that CPUs take from each other", "64", "8", f"{DREPPER}, section 6.4.1: false sharing")


def measure() -> Iterator[Comparison]:
    """Compare both ways of each structure, in ns a step by the model."""
    with ExitStack() as stack:
        program = _built(Path(stack.enter_context(tempfile.TemporaryDirectory())))
        guest = stack.enter_context(_guest(GuestFiles(study_files={"structures": program})))
        step_ns = cache(lambda way: _step_ns(guest, way))
        for structure in STRUCTURES:
            here = [_on_host(program, way) for way in (structure.faster, structure.slower)]
            yield _comparison(structure, step_ns(structure.faster), step_ns(structure.slower), here[1] / here[0])
    yield _comparison(_NODES, *_nodes())
    yield _comparison(_LINES, *_lines())


def table() -> str:
    """Return the table of all structures in Markdown."""
    rows = ("| Structure | Slower on real machines | Source | Model | This machine |", "|---|---|---|--:|--:|")
    return "\n".join((*rows, *(comparison.what for comparison in measure())))


def _comparison(structure: Structure, faster: float, slower: float, here: float | None = None) -> Comparison:
    agrees = slower >= LEAST_RATIO * faster
    known = f" (known miss: {structure.lacks})" if structure.lacks and not agrees else ""
    ratio, beside = f"×{slower / faster:.3g}{known}", f"×{here:.3g}" if here else "–"
    compared = f"`{structure.slower}` than `{structure.faster}`"
    return Comparison(
        name=f"structures-{structure.name.replace(' ', '-')}",
        what=f"| {structure.name} | {compared} | {structure.source} | {ratio} | {beside} |",
        unit="ns",
        figures={structure.faster: [faster], structure.slower: [slower]},
        goal=f"{structure.slower} is slower; by the model {ratio}, here {beside}",
        reached=agrees or bool(structure.lacks),
    )


def _built(directory: Path) -> Path:
    program, source = directory / "structures", Path(__file__).with_name("structures.c")
    subprocess.run(["gcc", "-O1", "-static", "-o", program, source], check=True)
    return program


def _guest(files: GuestFiles, nodes: tuple[MemoryNode, ...] = ()) -> GuestExecutor:
    # Linux gives no huge pages with less than 512 MiB, unless it is told to (mm/huge_memory.c).
    memory_mib = sum(node.memory_mib for node in nodes) or 640
    image = fetch_kernel("debian:6.1" if nodes else SPEC, home())
    return GuestExecutor(image, clock="virtual", memory_mib=memory_mib, files=files, home=home(), nodes=nodes)


def _machine() -> ModelledMachine:
    return catalogue().machines[MACHINE]


def _task(guest: GuestExecutor, *argv: str) -> CostTask:
    observed = guest.count(Plan(id="structures", workload=Command(argv=argv)), "counts", _machine())
    if observed.problem or observed.costs is None:
        raise SystemExit(f"{' '.join(argv)}: {observed.problem or 'nothing was counted'}")
    return next(task for task in observed.costs.tasks if task.role == "workload")


def _step_ns(guest: GuestExecutor, way: str) -> float:
    seconds = []
    for steps in _STEPS:
        task = _task(guest, "/study/structures", *way.split(), f"{steps:07}")
        if task.modelled is None:
            raise SystemExit(f"{way}: nothing was modelled")
        seconds.append(_machine().seconds(task.user, task.modelled.user.misses))
    return 1e9 * (seconds[1] - seconds[0]) / (_STEPS[1] - _STEPS[0])


def _on_host(program: Path, way: str) -> float:
    lines = (
        subprocess.run([program, *way.split(), str(_ON_HOST)], check=True, capture_output=True, text=True).stdout
        for _ in range(_HOST_ROUNDS)
    )
    return median(float(line.split()[1]) for line in lines)


def _nodes() -> tuple[float, float]:
    nodes = (MemoryNode(cpus=1, memory_mib=256, distances=(10, 31)), MemoryNode(memory_mib=128, distances=(31, 10)))
    with _guest(GuestFiles(), nodes) as guest:
        times = []
        for policy in ("local", "remote"):
            task = _task(guest, f"/ajuste/bin/{WORKLOADS}", "pages", "--policy", policy, "--mib", "16")
            missed = task.modelled.misses if task.modelled else None
            times.append(1e9 * _machine().seconds(task.user + task.kernel, missed) if missed else 0.0)
        return times[0], times[1]


def _lines() -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as directory:
        files = GuestFiles(study_files={"costs": built_beside(Path(directory), "costs")})
        guest = GuestExecutor(
            fetch_kernel(SPEC, home()), clock="virtual", cpus=2, files=files, home=home(), paced_by=_machine()
        )
        with guest as entered:
            times = []
            for apart in ("64", "8"):
                argv = ("/study/costs", "share", apart, "20000", "0", "1")
                observed = entered.run(Plan(id="structures", workload=Command(argv=argv)))
                match = re.search(r"ps (\d+)", observed.lines)
                if match is None:
                    raise SystemExit(f"{' '.join(argv)}: {observed.problem}")
                times.append(int(match[1]) / 1000)
            return times[0], times[1]
