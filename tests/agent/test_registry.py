"""The registry of unsettled journals, damaged journals, and what is never believed or removed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.agent.conftest import Told, registry_beside
from tests.agent.serving import EXPIRE, SETTINGS, Serving, shell, values, write
from tests.agent.test_guardian import await_no_guardian, end, guardian_of

from ajuste.model.event import Failed, Journal, Restored, Started, parse_event

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: settings of this machine are changed")

BOOT = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
CHANGES = {EXPIRE: "2987", "/proc/sys/vm/stat_interval": "3", "/proc/sys/vm/vfs_cache_pressure": "103"}


@pytest.fixture(autouse=True)
def as_before(own_machine: None) -> Iterator[dict[str, str]]:
    before = values()
    yield before
    now = values()
    for place in CHANGES:
        Path(place).write_text(before[place])
    assert now == before


class Machine:
    """The agent's commands about journals, with the registry of the sessions in ``journals``."""

    def __init__(self, agent: str, journals: Path) -> None:
        self.agent = agent
        self.journals = journals
        self.registry = registry_beside(journals)
        self.workloads: list[int] = []
        """Process groups that nobody may end before the test does."""

    def leave(self) -> Path:
        """A session that was killed together with its guardian, after it had changed three values."""
        serving = Serving(self.agent, self.journals)
        serving.send(writes=[write(place, value) for place, value in CHANGES.items()], workload=shell("sleep 1000"))
        self.workloads.append(serving.hear(Started).pid)
        end(guardian_of(self.journals))
        serving.process.kill()
        serving.process.communicate()
        (left,) = self.journals.iterdir()
        return left

    def __call__(self, command: str, *arguments: str | Path, permit: list[str] = SETTINGS) -> Told:
        options = ["--permit", "-"] if command == "restore" else []
        argv = [self.agent, command, "--registry", self.registry, *options, *arguments]
        permitted = json.dumps([{"kind": "file", "path": path} for path in permit])
        done = subprocess.run(argv, input=permitted, capture_output=True, text=True, timeout=120)
        return Told(done.returncode, done.stderr, tuple(parse_event(line) for line in done.stdout.splitlines()))

    def listed(self, *arguments: str | Path) -> list[dict[str, Any]]:
        argv = [self.agent, "journals", "--registry", self.registry, *arguments]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=120)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def entries(self) -> list[Path]:
        return list(self.registry.iterdir())


@pytest.fixture
def machine(agent: str, tmp_path: Path) -> Iterator[Machine]:
    journals = tmp_path / "journals"
    journals.mkdir()
    machine = Machine(agent, journals)
    yield machine
    for workload in machine.workloads:
        with suppress(ProcessLookupError):
            os.killpg(workload, signal.SIGKILL)


def outcome(trial: Told) -> tuple[list[str], int]:
    return [event.state for event in trial.of(Journal)], trial.exit_code


def test_an_orderly_end_leaves_no_entry(machine: Machine) -> None:
    serving = Serving(machine.agent, machine.journals)
    serving.send(writes=[write(EXPIRE, "2987")], workload=shell("true"))
    assert serving.finish().exit_code == 0
    assert (machine.entries(), list(machine.journals.iterdir())) == ([], [])


def test_a_guardian_removes_the_entry(machine: Machine) -> None:
    serving = Serving(machine.agent, machine.journals)
    serving.send(writes=[write(EXPIRE, "2987")], workload=shell("sleep 1000"))
    serving.hear(Started)
    assert len(machine.entries()) == 1
    serving.process.kill()
    serving.process.communicate()
    await_no_guardian(machine.journals)
    assert (machine.entries(), list(machine.journals.iterdir())) == ([], [])


def test_a_journal_is_found_wherever_it_is(machine: Machine) -> None:
    left = machine.leave()
    (listed,) = machine.listed("--all")
    assert (listed["path"], listed["state"]) == (str(left), "left")
    assert {step["tunable"] for step in listed["steps"]} == {Path(place).name for place in CHANGES}
    trial = machine("restore", "--all")
    assert outcome(trial) == (["restored"], 0)
    assert len(trial.of(Restored)) == len(CHANGES)
    assert machine.entries() == []
    assert machine("restore", "--all").events == ()


@pytest.mark.parametrize("is_in_memory", [True, False])
@pytest.mark.parametrize("whole_lines", [1, 3])
def test_a_step_that_was_acted_on_is_missed_even_if_its_whole_line_is_gone(
    machine: Machine, as_before: dict[str, str], whole_lines: int, is_in_memory: bool
) -> None:
    left = machine.leave()
    lines = left.read_bytes().splitlines(keepends=True)
    left.write_bytes(b"".join(lines[:whole_lines]))
    if not is_in_memory:
        (roll,) = Path("/dev/shm").glob("ajuste-*-{}".format(left.stem.rpartition("-")[2]))
        roll.unlink()
    lost = list(CHANGES)[whole_lines - 1 :]
    for _ in range(2):
        trial = machine("restore", "--all")
        assert outcome(trial) == (["damaged"], 1)
        if not is_in_memory:
            assert all(Path(place).name in (trial.of(Journal)[0].message or "") for place in lost)
    now = values()
    assert {place for place in now if now[place] != as_before[place]} == {*lost}
    for place in lost:
        Path(place).write_text(as_before[place])
    assert machine("discard", left).exit_code == 0


def test_remains_of_a_line_that_was_never_acted_on_are_no_damage(machine: Machine) -> None:
    left = machine.leave()
    with left.open("ab") as file:
        file.write(b"\0" * 40 + b'"}}\n')
    assert outcome(machine("restore", "--all")) == (["restored"], 0)
    assert (machine.entries(), list(machine.journals.iterdir())) == ([], [])


@pytest.mark.parametrize(("more", "is_settled"), [(b"", True), (b'\n00000000 {"begun":true}\n', False)])
def test_an_entry_of_which_the_beginning_was_lost_was_never_begun_unless_it_goes_on(
    machine: Machine, more: bytes, is_settled: bool
) -> None:
    machine.registry.mkdir(exist_ok=True)
    entry = machine.registry / "1-2147483646-1.unsettled"
    entry.write_bytes(b"\0" * 40 + b'"machine":null}\n' + more)
    assert machine("restore", "--all").exit_code == (0 if is_settled else 1)
    assert entry.exists() is not is_settled


def test_one_bad_line_costs_that_line_only_and_is_not_forgotten(machine: Machine, as_before: dict[str, str]) -> None:
    left = machine.leave()
    lines = left.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(as_before["/proc/sys/vm/stat_interval"].encode(), b"9", 1).replace(b"before", b"befOre")
    left.write_bytes(b"".join(lines))
    for _ in range(2):
        trial = machine("restore", "--all")
        assert outcome(trial) == (["damaged"], 1)
        assert "1 line of it cannot be read" in (trial.of(Journal)[0].message or "")
    now = values()
    assert {place for place in now if now[place] != as_before[place]} == {"/proc/sys/vm/stat_interval"}
    Path("/proc/sys/vm/stat_interval").write_text(as_before["/proc/sys/vm/stat_interval"])
    assert machine("discard", left).exit_code == 0
    assert (machine.entries(), list(machine.journals.iterdir())) == ([], [])


def test_without_its_header_all_steps_are_restored_and_it_is_kept(machine: Machine, as_before: dict[str, str]) -> None:
    left = machine.leave()
    content = bytearray(left.read_bytes())
    content[30] ^= 4
    left.write_bytes(content)
    assert outcome(machine("restore", "--all")) == (["damaged"], 1)
    assert values() == as_before
    machine("discard", left)


def test_a_deleted_one_is_missed_and_its_tunables_are_named(machine: Machine, as_before: dict[str, str]) -> None:
    left = machine.leave()
    left.unlink()
    machine.journals.rmdir()
    for _ in range(2):
        trial = machine("restore", "--all")
        assert outcome(trial) == (["unknown"], 1)
        message = trial.of(Journal)[0].message or ""
        assert message == (
            "it was deleted; these values may still be changed: "
            "dirty_expire_centisecs, stat_interval, vfs_cache_pressure"
        )
    for place in CHANGES:
        Path(place).write_text(as_before[place])
    assert machine("discard", left).exit_code == 0
    assert machine.entries() == []


def test_an_entry_that_cannot_be_read_is_unknown(machine: Machine) -> None:
    machine.leave()
    (entry,) = machine.entries()
    content = entry.read_bytes()
    entry.write_bytes(b"x" + content)
    trial = machine("restore", "--all")
    assert (trial.exit_code, trial.failed.message) == (1, f"{entry}: its first line cannot be read")
    assert [journal["state"] for journal in machine.listed("--all")] == ["unknown"]
    entry.write_bytes(content)
    assert machine("restore", "--all").exit_code == 0


def test_a_registry_that_others_can_write_is_unknown(machine: Machine) -> None:
    machine.leave()
    machine.registry.chmod(0o777)
    trial = machine("restore", "--all")
    assert trial.exit_code == 1
    assert trial.failed.message.endswith("others may write it")
    machine.registry.chmod(0o755)
    assert machine("restore", "--all").exit_code == 0


def test_without_a_registry_nothing_is_changed(machine: Machine) -> None:
    machine.registry.write_text("a file")
    serving = Serving(machine.agent, machine.journals)
    serving.send(writes=[write(EXPIRE, "2987")])
    trial = serving.finish()
    assert (trial.failed.stage, trial.exit_code) == ("journal", 1)
    assert list(machine.journals.iterdir()) == []
    machine.registry.unlink()


def of_another_boot(path: Path, *, boot: str = "11111111-2222-3333-4444-555555555555") -> None:
    """The same file as it would be of that boot: the id is in the first line, and in every checksum."""
    lines = path.read_bytes().splitlines()
    texts = [line[9:].replace(BOOT.encode(), boot.encode()) for line in lines if line]
    path.write_bytes(b"".join(f"{crc32c(boot.encode() + text):08x} ".encode() + text + b"\n" for text in texts))


def crc32c(data: bytes) -> int:
    rest = 0xFFFFFFFF
    for byte in data:
        rest ^= byte
        for _ in range(8):
            rest = (rest >> 1) ^ (0x82F63B78 if rest & 1 else 0)
    return rest ^ 0xFFFFFFFF


def test_one_of_an_earlier_boot_of_this_machine_is_void_and_one_of_another_machine_is_left_alone(
    machine: Machine, as_before: dict[str, str]
) -> None:
    left = machine.leave()
    (entry,) = machine.entries()
    for place in CHANGES:
        Path(place).write_text(as_before[place])
    of_another_boot(left)
    # As it is where a home is shared: the journal is here, and this machine knows nothing of it.
    elsewhere = entry.rename(entry.with_name("elsewhere"))
    trial = machine("restore", machine.journals)
    assert outcome(trial) == (["foreign"], 0)
    assert "left alone" in (trial.of(Journal)[0].message or "")
    assert left.exists()
    elsewhere.rename(entry)
    of_another_boot(entry)
    trial = machine("restore", "--all")
    assert outcome(trial) == (["void"], 0)
    assert trial.of(Restored) == []
    assert (machine.entries(), list(machine.journals.iterdir())) == ([], [])


def test_a_journal_writes_only_what_is_permitted(machine: Machine, as_before: dict[str, str]) -> None:
    left = machine.leave()
    trial = machine("restore", "--all", permit=[EXPIRE])
    assert outcome(trial) == (["kept"], 1)
    assert values()[EXPIRE] == as_before[EXPIRE]
    refused = [failed.tunable for failed in trial.of(Failed)]
    assert sorted(map(str, refused)) == ["stat_interval", "vfs_cache_pressure"]
    assert left.exists()
    assert outcome(machine("restore", "--all")) == (["restored"], 0)


def test_on_a_file_system_that_became_read_only_the_values_come_back(
    machine: Machine, as_before: dict[str, str]
) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", machine.journals], check=True)
    try:
        left = machine.leave()
        # Whoever was killed may have its files open for another moment.
        for _ in range(100):
            if subprocess.run(["mount", "-o", "remount,ro", machine.journals], check=False).returncode == 0:
                break
            time.sleep(0.05)
        (listed,) = machine.listed("--all")
        assert (listed["state"], len(listed["steps"])) == ("kept", len(CHANGES))
        trial = machine("restore", "--all")
        assert outcome(trial) == (["kept"], 1)
        assert (trial.of(Journal)[0].message or "").startswith("everything was put back, but")
        assert values() == as_before
        subprocess.run(["mount", "-o", "remount,rw", machine.journals], check=True)
        assert outcome(machine("restore", "--all")) == (["restored"], 0)
        assert not left.exists()
    finally:
        subprocess.run(["umount", machine.journals], check=True)


def test_the_checksum_is_the_agents(machine: Machine) -> None:
    left = machine.leave()
    lines = left.read_bytes().splitlines()
    assert all(int(line[:8], 16) == crc32c(BOOT.encode() + line[9:]) for line in lines)
    assert machine("restore", left).exit_code == 0
