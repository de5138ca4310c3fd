"""Studies on this machine from the command line: what they change is there, and afterwards is as it was."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

import ajuste as package
from ajuste.machine.home import AGENT, native_program
from ajuste.machine.session import boot_id
from shell import Shell

EXPIRE = Path("/proc/sys/vm/dirty_expire_centisecs")
RATIO = Path("/proc/sys/vm/dirty_ratio")
BYTES = Path("/proc/sys/vm/dirty_bytes")
STUDY = """\
schema = 1
name = "here"
[[factor]]
name = "FACTOR"
levels = LEVELS
[workload]
command = COMMAND
MORE
[target]
kind = "host"
[analysis]
metrics = ["elapsed"]
[budget]
min_blocks = 2
max_blocks = 2
"""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="changing settings needs root")
pytestmark = pytest.mark.usefixtures("machine_lock")


def study(
    ajuste: Shell,
    factor: str = "vm.dirty_expire_centisecs",
    levels: str = "[3100, 1500]",
    command: str = '["cat", "/proc/sys/vm/dirty_expire_centisecs"]',
    more: str = "",
) -> str:
    text = STUDY.replace("FACTOR", factor).replace("LEVELS", levels).replace("COMMAND", command).replace("MORE", more)
    (ajuste.directory / "here.toml").write_text(text)
    return "here.toml"


def open_to_all(directory: Path) -> None:
    """The directories of tests are their user's alone."""
    directory.chmod(0o1777)
    for parent in directory.parents:
        if parent == Path(tempfile.gettempdir()):
            break
        parent.chmod(parent.stat().st_mode | 0o011)


def outputs(ajuste: Shell) -> dict[str, set[str]]:
    """Return what the workload printed under each configuration."""
    (run,) = ajuste.json("report")
    by_configuration: dict[str, set[str]] = {}
    for trial in ajuste.json("report", run["run"], "--trials"):
        for line in trial["events"].splitlines():
            event = json.loads(line)
            if event["event"] == "output" and event["role"] == "workload" and event["stream"] == "stdout":
                by_configuration.setdefault(trial["slot"]["configuration"], set()).add(event["text"].strip())
    return by_configuration


@needs_root
class TestChanging:
    def test_a_study_changes_what_it_says_and_puts_it_back(self, ajuste: Shell) -> None:
        before = EXPIRE.read_text()
        document = ajuste.json("run", study(ajuste))
        assert document["stopped"] in ("budget", "decided")
        assert outputs(ajuste) == {
            "vm.dirty_expire_centisecs=3100": {"3100"},
            "vm.dirty_expire_centisecs=1500": {"1500"},
        }
        assert EXPIRE.read_text() == before
        assert ajuste("restore") == ("Nothing to restore.\n", "")

    def test_what_the_kernel_changes_along_is_put_back_too(self, ajuste: Shell) -> None:
        before = RATIO.read_text(), BYTES.read_text()
        ajuste("run", study(ajuste, "vm.dirty_bytes", "[8388608, 16777216]"))
        assert (RATIO.read_text(), BYTES.read_text()) == before

    def test_a_value_that_the_kernel_refuses_is_said_before_anything_runs(self, ajuste: Shell, tmp_path: Path) -> None:
        mark = tmp_path / "mark"
        name = study(ajuste, "sched_rt_runtime_us", "[950000, 999999999]", f'["touch", "{mark}"]')
        _, complained = ajuste("run", name, "--accept-risk", expect=2)
        assert "sched_rt_runtime_us" in complained
        assert not mark.exists()

    def test_a_second_one_at_the_same_time_is_refused(self, ajuste: Shell) -> None:
        first = ajuste.start("run", study(ajuste, command='["sleep", "600"]'))
        try:
            deadline = time.monotonic() + 60
            while not list(ajuste.home.glob("state/journals/*.journal")) and time.monotonic() < deadline:
                time.sleep(0.02)
            _, complained = Shell(ajuste.directory, ajuste.home.with_name("other-home"))("run", "here.toml", expect=2)
        finally:
            first.terminate()
            first.communicate()
        assert f"another experiment is running on this machine: process {first.pid}, since 20" in complained

    def test_an_interrupted_study_leaves_nothing(self, ajuste: Shell) -> None:
        before = EXPIRE.read_text()
        started = ajuste.start("run", study(ajuste, command='["sleep", "600"]'))
        deadline = time.monotonic() + 60
        while EXPIRE.read_text() == before and time.monotonic() < deadline:
            time.sleep(0.02)
        assert EXPIRE.read_text() != before
        started.send_signal(2)
        _, complained = started.communicate()
        assert started.returncode == 130, complained
        assert EXPIRE.read_text() == before
        assert list(ajuste.home.glob("state/journals/*")) == []

    def test_a_full_disk_changes_nothing(self, ajuste: Shell) -> None:
        before = EXPIRE.read_text()
        journals = ajuste.home / "state" / "journals"
        journals.mkdir(parents=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k,mode=700", "tmpfs", journals], check=True)
        try:
            (journals / "full").write_bytes(bytes(4096))
            _, complained = ajuste("run", study(ajuste), expect=1)
        finally:
            subprocess.run(["umount", journals], check=True)
        assert "cannot write the journal, so nothing was changed" in complained
        assert EXPIRE.read_text() == before

    def test_commands_are_whose_who_called_sudo(self, ajuste: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
        open_to_all(ajuste.directory)
        monkeypatch.setenv("SUDO_UID", "65534")
        monkeypatch.setenv("SUDO_GID", "65534")
        ajuste("run", study(ajuste, "nice", "[0, 5]", '["id", "-u"]'))
        assert set().union(*outputs(ajuste).values()) == {"65534"}
        plan = ajuste.json("plan", "here.toml")
        assert {c["user"] for configuration in plan["configurations"] for c in configuration["commands"]} == {
            "user 65534"
        }

    def test_set_up_and_clean_up_run_once(self, ajuste: Shell, tmp_path: Path) -> None:
        log = tmp_path / "log"
        more = f'setup = ["sh", "-c", "echo setup >> {log}"]\ncleanup = ["sh", "-c", "echo cleanup >> {log}"]'
        ajuste("run", study(ajuste, "nice", "[0, 5]", f'["sh", "-c", "echo trial >> {log}"]', more))
        assert log.read_text().split() == ["setup", *["trial"] * 4, "cleanup"]


@needs_root
class TestLeftBehind:
    @pytest.fixture
    def journal(self, ajuste: Shell) -> Path:
        """The journal of an experiment that was killed with its guardian, after it had changed a value."""
        header = {"journal": 1, "session": "s", "boot": boot_id(), "pid": 1, "started_ticks": 2, "began_s": 3}
        location = {"kind": "file", "path": str(EXPIRE)}
        step = {
            "undo": "value",
            "tunable": "vm.dirty_expire_centisecs",
            "location": location,
            "before": EXPIRE.read_text().strip(),
        }
        path = ajuste.home / "state" / "journals" / "s.journal"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(header) + "\n" + json.dumps(step) + "\n")
        path.chmod(0o600)
        return path

    def test_it_stands_in_the_way_until_it_is_put_back(self, ajuste: Shell, journal: Path) -> None:
        before = EXPIRE.read_text()
        EXPIRE.write_text("1234\n")
        try:
            _, complained = ajuste("run", study(ajuste), expect=2)
            assert str(journal) in complained
            assert "ajuste restore" in complained
            assert EXPIRE.read_text() == "1234\n"
            output, _ = ajuste("restore", "--dry-run")
            assert f"vm.dirty_expire_centisecs would be {before.strip()} again" in output
            assert EXPIRE.read_text() == "1234\n"
            output, _ = ajuste("restore")
            assert f"vm.dirty_expire_centisecs is {before.strip()} (it was 1234)" in output
            assert EXPIRE.read_text() == before
        finally:
            EXPIRE.write_text(before)
        assert not journal.exists()
        ajuste("run", "here.toml")

    def test_restoring_speaks_json(self, ajuste: Shell, journal: Path) -> None:
        document = ajuste.json("restore")
        assert document["done"] is True
        assert [event["event"] for event in document["events"]] == ["restored", "journal"]
        assert ajuste.json("restore") == {"done": True, "events": [], "removed": []}

    def test_what_is_no_journal_is_not_discarded(self, ajuste: Shell, tmp_path: Path) -> None:
        settings = tmp_path / "fstab"
        settings.write_text("key = 1\n")
        _, complained = ajuste("restore", "--discard", str(settings), expect=2)
        assert "expected a journal" in complained
        assert settings.exists()

    def test_one_that_cannot_be_put_back_is_a_failure_and_is_kept(self, ajuste: Shell, journal: Path) -> None:
        journal.write_text(journal.read_text().replace(str(EXPIRE), "/proc/sys/kernel/ostype"))
        _, complained = ajuste("restore", expect=1)
        assert "not everything was restored" in complained
        assert journal.exists()
        journal.unlink()

    def test_a_value_that_the_kernel_refuses_is_named_and_can_be_given_up(self, ajuste: Shell, journal: Path) -> None:
        before = EXPIRE.read_text().strip()
        journal.write_text(journal.read_text().replace(f'"before": "{before}"', '"before": "no number"'))
        for _ in range(2):
            output, complained = ajuste("restore", expect=1)
            assert f'vm.dirty_expire_centisecs is "{before}" and cannot be put back to "no number"' in output
            assert "Invalid argument" in output
            assert "(vm.dirty_expire_centisecs)" in complained
            discard = f"ajuste restore --discard {journal}"
            assert discard in " ".join(complained.split())
        ajuste(*discard.split()[1:])
        assert ajuste.json("restore")["done"] is True
        ajuste("run", study(ajuste))


@needs_root
def test_what_can_hang_the_machine_needs_to_be_accepted(ajuste: Shell) -> None:
    name = study(ajuste, "policy", '["other", "fifo"]', '["true"]')
    _, complained = ajuste("run", name, expect=2)
    assert "can hang this machine: policy fifo" in complained
    assert "--accept-risk" in complained
    planned, _ = ajuste("plan", name)
    assert "--accept-risk" in planned
    ajuste("run", name, "--accept-risk")


def test_the_time_for_a_study_can_be_limited(ajuste: Shell) -> None:
    name = study(ajuste, "nice", "[0, 5]", '["sleep", "0.1"]')
    text = (ajuste.directory / name).read_text()
    (ajuste.directory / name).write_text(text.replace("blocks = 2", "blocks = 1000"))
    document = ajuste.json("run", name, "--max-time", "0.5s")
    assert "reached the limit of 0.5 seconds" in document["stopped_because"]
    assert document["blocks"] < 10
    assert " --max-time 0.5s " in document["reproduce"][0]
    assert "--max-time x: expected a duration" in ajuste("run", name, "--max-time", "x", expect=2)[1]


def test_a_plan_shows_values_users_and_commands_and_does_nothing(ajuste: Shell, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    before = EXPIRE.read_text()
    document = ajuste.json("plan", study(ajuste, command=f'["touch", "{mark}"]'))
    assert document["target"] == "this machine"
    writes = [write for configuration in document["configurations"] for write in configuration["writes"]]
    assert [(write["where"], write["value"], write["now"]) for write in writes] == [
        (str(EXPIRE), "3100", before.strip()),
        (str(EXPIRE), "1500", before.strip()),
    ]
    assert not mark.exists()
    assert EXPIRE.read_text() == before
    assert not (ajuste.home / "state" / "journals").exists()


def test_a_program_that_is_not_there_is_named(ajuste: Shell) -> None:
    _, complained = ajuste("run", study(ajuste, command='["no-such-program"]'), expect=2)
    assert 'program "no-such-program" not found' in complained


def test_a_cpu_that_is_not_there_is_named(ajuste: Shell) -> None:
    _, complained = ajuste("run", study(ajuste, "affinity", '["0", "4000"]', '["true"]'), expect=2)
    assert "CPU 4000 is not available" in complained


WITHOUT_ROOT = """
import email, os, sys
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
import ajuste
from ajuste.machine.inventory.inventory import take_inventory
from ajuste.machine.home import ajuste_version
from ajuste.catalogue.loader import catalogue
from ajuste.cli.edge import exit_code
from ajuste.run.testbed import RunOptions
from ajuste.run.experiment import conduct, prepare
from ajuste.machine.home import Home
from ajuste.report.progress import Progress
from ajuste.store.store import Store
from ajuste.study.read import read_study

known, place = catalogue(), Home(*(Path("home") / name for name in ("data", "cache", "state")))
# What is loaded only when it is needed, is loaded now.
for module in walk_packages(ajuste.__path__, "ajuste."):
    import_module(module.name)
with Store(f"sqlite:///{Path('warm.sqlite').absolute()}"):
    ajuste_version(), take_inventory(), email.message_from_string("")
os.setgroups([]), os.setresgid(65534, 65534, 65534), os.setresuid(65534, 65534, 65534)

def work():
    study = read_study(Path("here.toml"), known)
    watcher = Progress(min_blocks=2, max_blocks=2, max_seconds=60, metric=None, quiet=True)
    experiment = prepare(study, known, RunOptions(place))
    with Store(place.store_url) as store:
        run = conduct(experiment, store, watcher, RunOptions(place), named="here")
        print([trial.status for trial in store.trials(run)])

sys.exit(exit_code(work))
"""


@needs_root
class TestWithoutRoot:
    def run(self, ajuste: Shell) -> subprocess.CompletedProcess[str]:
        """Run as nobody, by a copy of Ajuste, in a process that has loaded all else that it needs before: this tree
        and the tests' Python may be root's alone.
        """
        open_to_all(ajuste.directory)
        programs = ajuste.directory / "programs"
        packages = ajuste.directory / "packages"
        shutil.copytree(Path(package.__file__).parent, packages / "ajuste")
        programs.mkdir()
        for program in native_program(AGENT).parent.glob("ajuste-*"):
            shutil.copy(program, programs)
        return subprocess.run(
            [sys.executable, "-c", WITHOUT_ROOT],
            cwd=ajuste.directory,
            env={**os.environ, "AJUSTE_NATIVE": str(programs), "PYTHONPATH": str(packages)},
            capture_output=True,
            text=True,
            check=False,
        )

    def test_much_can_be_done(self, ajuste: Shell) -> None:
        study(ajuste, "nice", "[0, 19]", '["true"]', 'attributes = { affinity = "0" }')
        done = self.run(ajuste)
        assert (done.returncode, done.stdout) == (0, "['ok', 'ok', 'ok', 'ok']\n"), done.stderr

    @pytest.mark.parametrize(
        ("factor", "levels", "words"),
        [
            ("nice", "[0, -5]", "nice -5 needs root"),
            ("vm.swappiness", "[50, 60]", "changing vm.swappiness needs root"),
        ],
    )
    def test_what_cannot_is_refused_with_what_can(self, ajuste: Shell, factor: str, levels: str, words: str) -> None:
        study(ajuste, factor, levels, '["true"]')
        done = self.run(ajuste)
        assert done.returncode == 2
        assert words in done.stderr
        assert "in a guest" in done.stderr
        assert not (ajuste.directory / "home" / "state" / "journals").exists()
