"""Disks that studies may overwrite: loop devices that leave nothing behind, and devices that the person names."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ajuste.executor.host.disk import DISKS, disk_for_run, disk_in_plan, whole_disk
from ajuste.model.error import RequestError

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="disks need root")
needs_loop = pytest.mark.skipif(not Path("/dev/loop-control").exists(), reason="no loop devices here")
SOME_DISK = next((path.name for path in sorted(DISKS.iterdir()) if not path.name.startswith("loop")), "loop0")


def attached(name: str) -> bool:
    return (DISKS / name / "loop").exists()


@needs_root
@needs_loop
def test_a_loop_device_past_the_page_cache_is_made_for_the_run_and_gone_after_it() -> None:
    with disk_for_run(None, 8, accept_risk=False) as name:
        assert attached(name)
        assert (DISKS / name / "size").read_text() == f"{8 << 11}\n"
        assert (DISKS / name / "loop" / "dio").read_text() == "1\n"
        with Path(f"/dev/{name}").open("rb") as disk:
            assert disk.read(1 << 16) != bytes(1 << 16)
    assert not attached(name)


@needs_root
@needs_loop
def test_a_loop_device_is_gone_when_its_process_was_killed() -> None:
    script = (
        "import time\nfrom ajuste.executor.host.disk import disk_for_run\n"
        "with disk_for_run(None, 8, accept_risk=False) as name:\n    print(name, flush=True)\n    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        name = process.stdout.readline().strip()
        assert attached(name)
        process.send_signal(signal.SIGKILL)
    assert not attached(name)


@needs_root
@needs_loop
def test_a_named_disk_is_overwritten_only_if_that_was_accepted_and_nobody_else_has_it() -> None:
    with disk_for_run(None, 8, accept_risk=False) as name:
        with pytest.raises(RequestError, match=f"everything on /dev/{name} would be overwritten"):
            disk_for_run(name, 8, accept_risk=False).__enter__()
        with pytest.raises(RequestError, match="it has 8 MiB; expected at least 9 MiB"):
            disk_for_run(f"/dev/{name}", 9, accept_risk=True).__enter__()
        with disk_for_run(f"/dev/{name}", 8, accept_risk=True) as again:
            assert again == name
            with pytest.raises(RequestError, match="in use"):
                disk_for_run(name, 8, accept_risk=True).__enter__()


@pytest.mark.parametrize("wrong", ["", "nothing", "/dev/null", "../etc/passwd", "/dev/", f"{SOME_DISK}/queue"])
def test_what_is_no_disk_is_refused(wrong: str) -> None:
    with pytest.raises(RequestError, match="disk not found"):
        whole_disk(wrong)


def test_a_plan_names_a_disk_and_touches_none() -> None:
    assert disk_in_plan(f"/dev/{SOME_DISK}") == SOME_DISK
    assert not attached(disk_in_plan(None))


@pytest.mark.skipif(os.geteuid() == 0, reason="only for an ordinary user: root may")
def test_without_root_it_is_said_before_anything_is_opened() -> None:
    with pytest.raises(RequestError, match="requires root"):
        disk_for_run(None, 8, accept_risk=False).__enter__()
