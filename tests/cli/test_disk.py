"""Disks from the command line: their schedulers are compared, and are afterwards what they were."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from ajuste.executor.host.disk import DISKS, disk_for_run
from shell import Shell

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="disks need root"),
    pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed"),
    pytest.mark.skipif(not Path("/dev/loop-control").exists(), reason="no loop devices here"),
    pytest.mark.usefixtures("machine_lock"),
]


def scheduler(name: str) -> str:
    return (DISKS / name / "queue" / "scheduler").read_text()


def test_fio_over_schedulers_of_a_disk_leaves_the_scheduler_as_it_was(tmp_path: Path, ajuste_home: Path) -> None:
    fio = ("fio", "pattern=randwrite", "size_mib=1", "block_kib=64", "jobs=2")
    with disk_for_run(None, 8, accept_risk=False) as name:
        before = scheduler(name)
        varied = f"block.scheduler[{name}]=none,mq-deadline"
        options = ("--set", varied, "--metric", "fio.write.latency", "--as-root", "--blocks", "2", "--json")
        output, _ = Shell(tmp_path, ajuste_home)("compare", *options, "--", *fio, f"file=/dev/{name}")
        results = json.loads(output)
        assert scheduler(name) == before
    assert {configuration["name"] for configuration in results["configurations"]} == {
        f"block.scheduler[{name}]=none",
        f"block.scheduler[{name}]=mq-deadline",
    }
    assert all(c["metrics"]["fio.fairness"]["mean"] <= 1 for c in results["configurations"])


def test_the_study_makes_a_disk_of_its_own_and_takes_it_away_again(tmp_path: Path, ajuste_home: Path) -> None:
    study = (Path(__file__).parents[2] / "packages/programs/src/ajuste_programs/studies/io-scheduler.toml").read_text()
    for old, new in (
        ("size_mib = 128, milliseconds = 2000", "size_mib = 2, milliseconds = 50"),
        ("\nsize_mib = 512", "\nsize_mib = 8"),
        ("min_blocks = 5", "min_blocks = 1"),
        ("max_blocks = 32", "max_blocks = 1"),
        ('["none", "mq-deadline", "kyber", "bfq"]', '["none", "mq-deadline"]'),
    ):
        assert old in study
        study = study.replace(old, new)
    (tmp_path / "study.toml").write_text(study)
    shell = Shell(tmp_path, ajuste_home)
    before = {path.name: (path / "queue" / "scheduler").read_text() for path in DISKS.glob("loop*")}
    results = shell.json("run", "study.toml", "--target", "host", "--quiet")
    assert all(c["metrics"]["fio.reader.read.latency"]["mean"] > 0 for c in results["configurations"])
    used = results["factors"][0]["name"].partition("[")[2].rstrip("]")
    assert not (DISKS / used / "loop").exists()
    assert scheduler(used) == before.get(used, scheduler(used))
    shell("run", "study.toml", "--target", "host", "--disk", used, expect=2)
