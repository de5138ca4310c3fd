"""A scheduler is loaded when the kernel says so, and was there all the time, or it is an error: on a kernel that is
played by files."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

# Does what a scheduler's program and the kernel do together.
LOADS = """\
echo 'libbpf: loaded'
mkdir -p {kernel}/root && echo toy > {kernel}/root/ops && echo 1 > {kernel}/enable_seq && echo enabled > {kernel}/state
trap 'echo disabled > {kernel}/state; exit' TERM
while :; do sleep 0.02; done
"""
REFUSED = "echo 'libbpf: no such kfunc' >&2; exit 1"


@dataclass
class Played:
    """``kernel`` is the directory that stands for /sys/kernel/sched_ext."""

    program: str
    directory: Path

    @property
    def kernel(self) -> Path:
        return self.directory / "kernel"

    @property
    def state(self) -> str:
        return (self.kernel / "state").read_text().strip()

    def scheduler(self, script: str) -> str:
        file = self.directory / "scx_toy"
        file.write_text("#!/bin/sh\n" + script.format(kernel=self.kernel))
        file.chmod(0o755)
        return str(file)

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [self.program, "scheduler", *words, "--class", str(self.kernel)]
        environment = {"PATH": os.environ["PATH"], "TMPDIR": str(self.directory)}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


@pytest.fixture
def played(workloads: str, tmp_path: Path) -> Played:
    (tmp_path / "kernel").mkdir()
    (tmp_path / "kernel" / "state").write_text("disabled\n")
    return Played(workloads, tmp_path)


def test_a_scheduler_is_there_from_its_loading_to_its_unloading(played: Played) -> None:
    loaded = played("load", played.scheduler(LOADS))
    assert (loaded.stdout, loaded.stderr, played.state) == ("scheduler loaded=toy\n", "", "enabled")
    unloaded = played("unload")
    assert (unloaded.stdout, unloaded.stderr, played.state) == ("scheduler unloaded=toy\n", "", "disabled")


def test_a_program_that_loads_nothing_is_an_error_with_its_last_words(played: Played) -> None:
    refused = played("load", played.scheduler(REFUSED))
    assert refused.returncode == 1
    assert "scx_toy did not load its scheduler (exit status: 1): libbpf: no such kfunc" in refused.stderr


@pytest.mark.parametrize(("file", "content"), [("state", "disabled"), ("enable_seq", "2"), ("root/ops", "other")])
def test_a_scheduler_that_the_kernel_ejected_meanwhile_is_an_error(played: Played, file: str, content: str) -> None:
    played("load", played.scheduler(LOADS + "\n"))
    pid = int((played.directory / "ajuste-scheduler").read_text().split()[0])
    (played.kernel / file).write_text(content)
    os.kill(pid, 9)
    ejected = played("unload")
    assert ejected.returncode == 1
    assert "the kernel ejected the scheduler toy meanwhile: libbpf: loaded" in ejected.stderr


def test_a_kernel_without_sched_ext_and_one_whose_scheduler_is_somebody_elses_are_refused(played: Played) -> None:
    (played.kernel / "state").write_text("enabled\n")
    assert "enabled before anything was loaded" in played("load", played.scheduler(LOADS)).stderr
    (played.kernel / "state").unlink()
    assert "this kernel has no sched_ext" in played("load", played.scheduler(LOADS)).stderr


def test_nothing_can_be_unloaded_that_was_not_loaded(played: Played) -> None:
    assert "no scheduler was loaded" in played("unload").stderr
    assert played("load").returncode == 2
