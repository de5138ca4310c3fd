"""Archives for guests: unpacked by cpio(1), or refused with a message."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from ajuste.machine.home import AGENT, WORKLOADS, native_program
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelImage
from ajuste_guest.executor.initramfs import LARGEST_STUDY_FILE_BYTES, GuestFiles, build_initramfs

pytestmark = pytest.mark.skipif(shutil.which("cpio") is None, reason="cpio is not installed")


@pytest.fixture
def kernel(tmp_path: Path) -> KernelImage:
    vmlinuz = tmp_path / "vmlinuz"
    vmlinuz.touch()
    return KernelImage(spec="path:vmlinuz", release="6.1.0-test", vmlinuz=vmlinuz, sha256="0" * 64)


def unpacked(files: GuestFiles, kernel: KernelImage, tmp_path: Path, *, quiet_gate: bool = True) -> Path:
    archive = build_initramfs(files, kernel, tmp_path / "archive", quiet_gate=quiet_gate).path
    out = tmp_path / "out"
    out.mkdir()
    # Devices cannot be made by everybody, and are not needed here.
    subprocess.run(["cpio", "-id", "--quiet", "-f", "dev/*"], input=archive.read_bytes(), cwd=out, check=True)
    return out


def test_the_agent_is_the_first_process_and_the_workloads_are_there(kernel: KernelImage, tmp_path: Path) -> None:
    out = unpacked(GuestFiles(), kernel, tmp_path)
    assert (out / "init").read_bytes() == native_program(AGENT).read_bytes()
    assert os.access(out / "init", os.X_OK)
    assert (out / "ajuste/bin" / WORKLOADS).read_bytes() == native_program(WORKLOADS).read_bytes()
    assert json.loads((out / "ajuste/boot.json").read_text()) == {
        "version": 1,
        "modules": [],
        "event_port": 0x4A0,
        "gate": True,
        "quiet_gate": True,
    }


def test_programs_are_at_their_own_path_and_can_be_started_in_the_tree_alone(
    kernel: KernelImage, tmp_path: Path
) -> None:
    out = unpacked(GuestFiles(programs=(Path("/bin/bash"), Path("/usr/bin/env"))), kernel, tmp_path)
    assert (out / "bin/bash").read_bytes() == Path("/bin/bash").read_bytes()
    if os.geteuid() != 0:
        pytest.skip("only root can change the root directory")
    shell = subprocess.run(["chroot", out, "/bin/bash", "-c", "echo $((6 * 7))"], capture_output=True, text=True)
    assert (shell.stdout, shell.stderr) == ("42\n", "")


def test_a_scheduler_is_the_kernels_own_and_brings_its_libraries(kernel: KernelImage, tmp_path: Path) -> None:
    (tmp_path / "schedulers").mkdir()
    shutil.copy("/usr/bin/env", tmp_path / "schedulers" / "scx_simple")
    with pytest.raises(RequestError, match="was built without BPF schedulers"):
        build_initramfs(GuestFiles(schedulers=("scx_simple",)), kernel, tmp_path / "archive", quiet_gate=True)
    built = kernel.model_copy(update={"schedulers": tmp_path / "schedulers"})
    out = unpacked(GuestFiles(schedulers=("scx_simple",)), built, tmp_path)
    assert (out / "ajuste/schedulers/scx_simple").read_bytes() == Path("/usr/bin/env").read_bytes()
    assert list(out.glob("**/libc.so.6"))


@pytest.mark.parametrize("in_proc", [False, True])
def test_a_scheduler_finds_the_options_of_its_kernel(kernel: KernelImage, tmp_path: Path, in_proc: bool) -> None:
    (tmp_path / "schedulers").mkdir()
    shutil.copy("/usr/bin/env", tmp_path / "schedulers" / "scx_simple")
    config = tmp_path / "config"
    config.write_text(f"CONFIG_PREEMPT_RCU=y\n{'CONFIG_IKCONFIG_PROC=y' if in_proc else ''}\n")
    built = kernel.model_copy(update={"schedulers": tmp_path / "schedulers", "config": config})
    out = unpacked(GuestFiles(schedulers=("scx_simple",)), built, tmp_path)
    there = out / "boot" / f"config-{kernel.release}"
    assert (there.read_text() if there.exists() else None) == (None if in_proc else config.read_text())


def test_a_script_brings_its_interpreter(kernel: KernelImage, tmp_path: Path) -> None:
    job = tmp_path / "job.sh"
    job.write_text("#!/bin/sh\necho $0\n")
    job.chmod(0o755)
    out = unpacked(GuestFiles(study_files={"tools/job.sh": job}), kernel, tmp_path)
    assert (out / "bin/sh").exists()
    assert (out / "study/tools/job.sh").read_text() == job.read_text()
    assert os.access(out / "study/tools/job.sh", os.X_OK)


def test_a_program_that_is_a_link_keeps_both_names(kernel: KernelImage, tmp_path: Path) -> None:
    real = tmp_path / "real-1.0"
    shutil.copy("/bin/true", real)
    link = tmp_path / "program"
    link.symlink_to(real)
    out = unpacked(GuestFiles(programs=(link,)), kernel, tmp_path)
    assert (out / str(real).lstrip("/")).is_file()
    assert (out / str(link).lstrip("/")).readlink() == real


def test_the_same_files_give_the_same_bytes(kernel: KernelImage, tmp_path: Path) -> None:
    first = tmp_path / "first"
    first.write_text("data")
    files = GuestFiles(programs=(Path("/bin/ls"), Path("/bin/cat")), study_files={"a": first, "b": first})
    archive = build_initramfs(files, kernel, tmp_path / "one", quiet_gate=True)
    os.utime(first, (1, 1))
    turned = GuestFiles(programs=files.programs[::-1], study_files=dict(reversed(files.study_files.items())))
    two = build_initramfs(turned, kernel, tmp_path / "two", quiet_gate=True)
    assert archive.sha256 == two.sha256
    assert archive.path.read_bytes() == two.path.read_bytes()
    assert build_initramfs(files, kernel, tmp_path / "three", quiet_gate=False).sha256 != archive.sha256


def test_a_missing_program_is_named_with_its_package(kernel: KernelImage, tmp_path: Path) -> None:
    files = GuestFiles(programs=(Path("/usr/bin/no-such-bench"),), packages={"no-such-bench": "rt-tests"})
    with pytest.raises(RequestError, match="program /usr/bin/no-such-bench not found") as caught:
        build_initramfs(files, kernel, tmp_path / "archive", quiet_gate=True)
    assert "apt install rt-tests" in (caught.value.hint or "")


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a\nb", "a\0b", "a/"])
def test_names_that_lead_out_of_the_study_are_refused(kernel: KernelImage, tmp_path: Path, name: str) -> None:
    source = tmp_path / "source"
    source.touch()
    with pytest.raises(RequestError, match="of the study: expected a relative path"):
        build_initramfs(GuestFiles(study_files={name: source}), kernel, tmp_path / "archive", quiet_gate=True)


def test_files_that_are_too_large_or_no_files_are_refused(kernel: KernelImage, tmp_path: Path) -> None:
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(LARGEST_STUDY_FILE_BYTES + 1)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for source, message in (
        (large, "at most 64 MiB"),
        (pipe, "expected a regular file"),
        (tmp_path, "expected a regular file"),
        (tmp_path / "no", "cannot read"),
    ):
        with pytest.raises(RequestError, match=message):
            build_initramfs(GuestFiles(study_files={"x": source}), kernel, tmp_path / "archive", quiet_gate=True)


def test_python_is_refused_in_words(kernel: KernelImage, tmp_path: Path) -> None:
    job = tmp_path / "job"
    job.write_text("#!/usr/bin/env python3\nprint(1)\n")
    job.chmod(0o755)
    with pytest.raises(RequestError, match="cannot work without its own tree"):
        build_initramfs(GuestFiles(programs=(job,)), kernel, tmp_path / "archive", quiet_gate=True)


def test_a_program_in_tmp_can_be_brought_along_and_one_in_dev_cannot(kernel: KernelImage, tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as temporary, tempfile.TemporaryDirectory(dir="/dev/shm") as hidden:
        fine, unfit = Path(temporary, "program"), Path(hidden, "program")
        for program in (fine, unfit):
            shutil.copy("/bin/true", program)
        assert (unpacked(GuestFiles(programs=(fine,)), kernel, tmp_path) / str(fine).lstrip("/")).is_file()
        with pytest.raises(RequestError, match="/dev is the guest's own"):
            build_initramfs(GuestFiles(programs=(unfit,)), kernel, tmp_path / "archive", quiet_gate=True)
