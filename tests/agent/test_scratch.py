"""The scratch file system of a trial: what it is, who sees it, and that nothing of it stays."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.agent.conftest import Runner, Told, until

MKFS = shutil.which("mkfs.ext4", path="/usr/sbin:/sbin:/usr/bin:/bin")
LOOPS = Path("/sys/block")

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount"),
    pytest.mark.skipif(MKFS is None, reason="mkfs.ext4 is not installed"),
    pytest.mark.skipif(not Path("/dev/loop-control").exists(), reason="no loop devices here"),
]


@pytest.fixture
def journals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("journals")


@pytest.fixture
def run(agent: str, journals: Path) -> Runner:
    return Runner(agent, journals)


def start(run: Runner, **plan: Any) -> subprocess.Popen[str]:
    """The agent with such a plan, on its way."""
    process = subprocess.Popen(run.arguments, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert process.stdin is not None
    process.stdin.write(json.dumps({"id": "t"} | plan))
    process.stdin.close()
    return process


def ext4(folder: Path, **changed: Any) -> dict[str, Any]:
    """A file system on an image in ``folder``, mounted at a place in it that is not there yet."""
    return {
        "filesystem": "ext4",
        "make": [MKFS, "-q"],
        "mount": str(folder / "mounted"),
        "size_bytes": 16 << 20,
        "directory": str(folder),
    } | changed


def images_of(folder: Path) -> list[str]:
    """The files in ``folder`` that loop devices are on, whether they still have a name or not."""
    files = [path.read_text().strip() for path in LOOPS.glob("loop*/loop/backing_file")]
    return [file for file in files if file.startswith(f"{folder}/")]


def assert_nothing_is_left(folder: Path) -> None:
    until(lambda: images_of(folder) == [])
    assert str(folder) not in Path("/proc/self/mounts").read_text()
    assert list(folder.iterdir()) == []


def scratch_failure(trial: Told) -> str:
    assert (trial.exit_code, trial.failed.stage) == (1, "scratch")
    return trial.failed.message


def test_the_workload_has_a_file_system_of_its_own(run: Runner, tmp_path: Path) -> None:
    scratch = ext4(tmp_path, options="noatime,nodev,data=journal", user={"uid": 1000, "gid": 1001})
    script = (
        f"cd {tmp_path}/mounted && grep {tmp_path} /proc/self/mounts && stat -c '%u:%g' . && echo x >file && cat file"
    )
    trial = run.shell(script, scratch=scratch)
    mounted, owner, content = trial.output().text.splitlines()
    device, place, filesystem, options, *_ = mounted.split()
    assert (place, filesystem) == (str(tmp_path / "mounted"), "ext4")
    assert device.startswith("/dev/loop")
    assert {"noatime", "nodev", "data=journal"} <= set(options.split(","))
    assert (owner, content) == ("1000:1001", "x")
    assert trial.exit_code == 0
    assert_nothing_is_left(tmp_path)


def test_each_trial_has_a_new_one(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "mounted").mkdir()
    script = f"cd {tmp_path}/mounted && ls && touch mine"
    assert [run.shell(script, scratch=ext4(tmp_path)).output().text for _ in range(2)] == ["lost+found\n"] * 2
    assert (tmp_path / "mounted").is_dir(), "it was there before"
    assert images_of(tmp_path) == []


def test_only_the_processes_of_the_trial_see_it(run: Runner, tmp_path: Path) -> None:
    started = tmp_path / "started"
    workload = Runner.command(f"touch {tmp_path}/mounted/seen {started}; while [ -e {started} ]; do sleep 0.01; done")
    with start(run, scratch=ext4(tmp_path), workload=workload) as process:
        until(started.exists)
        assert len(images_of(tmp_path)) == 1
        assert list((tmp_path / "mounted").iterdir()) == []
        assert str(tmp_path) not in Path("/proc/self/mounts").read_text()
        started.unlink()
    assert process.returncode == 0
    assert_nothing_is_left(tmp_path)


@pytest.mark.parametrize("ended", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_however_the_agent_ends(
    run: Runner, journals: Path, tmp_path: Path, ended: signal.Signals
) -> None:
    started = tmp_path / "started"
    script = f"touch {started}; cd {tmp_path}/mounted; (while :; do echo x >>file; done) & sleep 1000"
    with start(run, scratch=ext4(tmp_path), workload=Runner.command(script)) as process:
        until(started.exists)
        assert len(images_of(tmp_path)) == 1
        started.unlink()
        process.send_signal(ended)
    until(lambda: list(journals.iterdir()) == [])
    assert_nothing_is_left(tmp_path)


def test_without_a_journal_no_directory_is_made(agent: str, tmp_path: Path) -> None:
    trial = Runner(agent).shell("true", scratch=ext4(tmp_path))
    assert scratch_failure(trial) == "writing on this machine needs a journal: --journal DIR"
    (tmp_path / "mounted").mkdir()
    assert Runner(agent).shell("true", scratch=ext4(tmp_path)).exit_code == 0


def test_a_full_file_system_is_the_workloads_business_and_a_full_disk_is_said_at_once(
    run: Runner, tmp_path: Path
) -> None:
    trial = run.shell(f"dd if=/dev/zero of={tmp_path}/mounted/x bs=1M", scratch=ext4(tmp_path))
    assert "No space left on device" in trial.output("stderr").text
    free = shutil.disk_usage(tmp_path).free
    reason = scratch_failure(run.shell("true", scratch=ext4(tmp_path, size_bytes=free + (1 << 40))))
    assert reason.endswith(("No space left on device", "File too large"))
    assert_nothing_is_left(tmp_path)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"make": [MKFS, "-q", "-b", "77"]}, f"{MKFS} ended with exit code 1: mkfs.ext4: invalid block size - 77"),
        ({"make": ["/bin/sh", "-c", "kill -9 $$"]}, "/bin/sh was ended by signal 9"),
        ({"make": ["no-such-mkfs"]}, "no-such-mkfs: no such program in "),
        ({"options": "data=warp"}, "cannot mount ext4 with data=warp at "),
        ({"filesystem": "warpfs"}, "cannot mount warpfs at "),
        ({"mount": "/proc/version"}, "/proc/version: it is no directory"),
        ({"mount": "/run/../x"}, '"/run/../x" is no plain absolute path of a directory'),
        ({"directory": "/no/such/place"}, "/no/such/place: No such file or directory"),
        ({"device": "/dev/null"}, "/dev/null is no block device"),
        ({"device": "/dev/no-such-device"}, "/dev/no-such-device: No such file or directory"),
    ],
)
def test_what_cannot_be_made_says_why_and_leaves_nothing(
    run: Runner, tmp_path: Path, changed: dict[str, Any], reason: str
) -> None:
    trial = run.shell("true", scratch=ext4(tmp_path, **changed))
    assert scratch_failure(trial).startswith(reason)
    assert_nothing_is_left(tmp_path)


def test_the_kernels_own_words_about_an_option_are_given(run: Runner, tmp_path: Path) -> None:
    reason = scratch_failure(run.shell("true", scratch=ext4(tmp_path, options="noatime,warp=9")))
    assert "Invalid argument" in reason
    assert "warp" in reason.rpartition("Invalid argument")[2]


def test_a_place_that_others_could_exchange_is_refused(run: Runner, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    reason = scratch_failure(run.shell("true", scratch=ext4(tmp_path)))
    assert reason == f"{tmp_path}/mounted: others than root could exchange it"


def test_a_device_that_is_in_use_is_refused_and_a_free_one_is_taken(run: Runner, tmp_path: Path) -> None:
    image = tmp_path / "image"
    image.touch()
    os.truncate(image, 16 << 20)
    device = subprocess.check_output(["losetup", "--find", "--show", str(image)], text=True).strip()
    try:
        held = os.open(device, os.O_RDWR | os.O_EXCL)
        trial = run.shell("true", scratch=ext4(tmp_path, device=device))
        os.close(held)
        assert scratch_failure(trial) == f"{device} is in use: mounted, swapped to or part of another device"
        trial = run.shell(f"grep {tmp_path} /proc/self/mounts", scratch=ext4(tmp_path, device=device))
        assert trial.output().text.startswith(f"{device} {tmp_path}/mounted ext4 ")
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)
        image.unlink()
    assert_nothing_is_left(tmp_path)


def test_who_is_not_root_is_told_so(agent: str, tmp_path: Path) -> None:
    with Path(agent).open("rb") as program:
        plan = json.dumps({"id": "t", "scratch": ext4(tmp_path)})
        done = subprocess.run(
            [f"/proc/self/fd/{program.fileno()}", "run"],
            input=plan,
            capture_output=True,
            text=True,
            pass_fds=[program.fileno()],
            user=65534,
            group=65534,
            extra_groups=[],
            cwd="/",
        )
    trial = Runner.trial(done.returncode, done.stderr, done.stdout)
    assert scratch_failure(trial) == "a scratch file system is mounted, and only root may do that"
