"""Hunts in real guests: what pauses do to a job, to the bit, and a lost wake-up that is handed over."""

from __future__ import annotations

import json
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.kernel.spec import parse_spec
from ajuste.machine.home import home
from ajuste.model.event import Exited
from ajuste.model.plan import CpuPause
from ajuste.model.trial import Observation
from ajuste.run.testbed import RunOptions
from ajuste.study.read import read_study
from ajuste_guest.executor.machine import Places
from ajuste_hunt.bench import Bench, opened
from ajuste_hunt.chance import Chance
from shell import Shell

pytestmark = pytest.mark.vm

STUDY = """\
schema = 1
name = "counting"
factor = []
[workload]
command = ["sh", "-c", "i=0; while [ $i -lt 1000 ]; do i=$((i+1)); done"]
[target]
kernel = "debian:6.12"
cpus = {cpus}
[target.perturbation]
[analysis]
metrics = ["elapsed"]
"""
LOST_WAKEUP = Path(__file__).parents[3] / "benchmarks/hunt/planted/lost-wakeup"


JOB = """\
schema = 1
name = "lost"
factor = []
[workload]
command = ["./job"]
files = ["job"]
timeout_s = 1
[target]
kernel = "debian:6.12"
cpus = 2
[target.perturbation]
[analysis]
metrics = ["elapsed"]
"""


def build_lost_wakeup(directory: Path, *flags: str) -> None:
    if shutil.which("cc") is None:
        pytest.skip("this machine has no cc")
    source = LOST_WAKEUP / "lost-wakeup.c"
    subprocess.run(
        ["cc", "-O2", "-static", "-pthread", *flags, "-I", str(LOST_WAKEUP.parent), "-o", "job", str(source)],
        cwd=directory,
        check=True,
    )


@pytest.fixture(params=[1, 2], ids="{} CPUs".format)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    file = tmp_path / "counting.toml"
    file.write_text(STUDY.format(cpus=request.param))
    study = read_study(file, catalogue(), parse_kernel=parse_spec)
    with opened(study, catalogue(), RunOptions(home()), tells_stalls=False, fresh=True) as entered:
        yield entered


def elapsed_ns(observation: Observation) -> int:
    (exited,) = (event for event in observation.events if isinstance(event, Exited) and event.role == "workload")
    return exited.wall_ns


def test_a_pause_takes_its_time_and_nothing_else(bench: Bench) -> None:
    plan, cpus = bench.plan(0), bench.resolved.study.target.cpus
    plain = bench.guest.run_paused(plan, ())
    assert bench.guest.run_paused(plan, ()).lines == plain.lines
    # The job runs on one of the CPUs: all of them stand still.
    pauses = [CpuPause(cpu=cpu, at_ns=5_000_000, for_ns=300_000) for cpu in range(cpus)]
    paused = bench.guest.run_paused(plan, pauses)
    # By less than a tick's own work: one that fell into the pause comes later.
    assert elapsed_ns(paused) - elapsed_ns(plain) == pytest.approx(300_000, abs=20_000)
    assert bench.guest.run_paused(plan, pauses).lines == paused.lines
    # After its end there is nothing to delay.
    late = [CpuPause(cpu=0, at_ns=elapsed_ns(plain) * 100, for_ns=10**9)]
    assert elapsed_ns(bench.guest.run_paused(plan, late)) == pytest.approx(elapsed_ns(plain), abs=2_000)
    # The lens sees the same trial.
    assert bench.guest.run_paused(plan, pauses, "decisions").lines == paused.lines


def test_a_pause_comes_between_an_access_and_the_next_instruction(ajuste: Shell) -> None:
    build_lost_wakeup(ajuste.directory)
    file = ajuste.directory / "job.toml"
    file.write_text(JOB)
    study = read_study(file, catalogue(), parse_kernel=parse_spec)
    with opened(study, catalogue(), RunOptions(home()), tells_stalls=False, fresh=True) as bench:
        plain = bench.shared_accesses(Chance(0))
        for at in (len(plain) // 3, len(plain) // 2):
            cpu, at_ns, _ = plain[at]
            until = at_ns + 100_000
            paused = bench.shared_accesses(Chance(0, (CpuPause(cpu=cpu, at_ns=at_ns, for_ns=100_000),)))
            assert [access for access in paused if access[1] <= at_ns] == [a for a in plain if a[1] <= at_ns]
            assert not any(of == cpu and at_ns < when < until for of, when, _ in paused)
            # One instruction earlier, and the access itself comes after the pause.
            earlier = CpuPause(cpu=cpu, at_ns=at_ns - study.target.instruction_ns, for_ns=100_000)
            before = bench.shared_accesses(Chance(0, (earlier,)))
            assert plain[at] not in before


def test_pauses_of_another_kernel_are_refused(ajuste: Shell) -> None:
    build_lost_wakeup(ajuste.directory)
    pauses = f'kernel_sha256 = "{"0" * 64}"\n[[target.perturbation.pause]]\ncpu = 0\nat_ns = 1\nfor_ns = 9\n'
    (ajuste.directory / "job.toml").write_text(JOB.replace("[analysis]", f"{pauses}[analysis]"))
    _, complaint = ajuste("run", "job.toml", expect=2)
    assert "pauses are moments of another kernel" in complaint
    assert "debian:6.12" in complaint
    assert "job.toml:12" in complaint


@pytest.mark.slow
def test_pauses_at_places_are_repeated_by_their_times(bench: Bench) -> None:
    places = tuple({by for _, _, by in bench.shared_accesses(Chance(0))})[:50]
    drawn = Places(places or (0x401000,), 3, 200, 500, 50_000, 10_000_000)
    observation, made = bench.guest.run_at_places(bench.plan(0), drawn)
    assert bench.guest.run_paused(bench.plan(0), made).lines == observation.lines


@pytest.mark.slow
def test_a_lost_wakeup_is_searched_out_and_its_fix_passes_what_repeats_it(ajuste: Shell) -> None:
    build_lost_wakeup(ajuste.directory)
    options = ["--json", "--until", "hung", "--guest-cpus", "2", "--file", "./job", "--output", "found.toml"]
    account, _ = ajuste("hunt", *options, "--max-time", "9m", "--", "./job", expect=3)
    hunt = json.loads(account)
    finding = hunt["finding"]
    assert hunt["shown_plain"] == 0
    assert (finding["replays"], finding["attempts"]) == (5, 5)
    assert 1 <= len(finding["pauses"]) <= 2
    written = tomllib.loads((ajuste.directory / "found.toml").read_text())
    assert len(written["target"]["perturbation"]["pause"]) == len(finding["pauses"])
    ajuste("run", "found.toml", expect=3)
    build_lost_wakeup(ajuste.directory, "-DFIXED")
    ajuste("run", "found.toml")
