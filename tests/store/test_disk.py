"""Disks that fail, lose and tear: every operation of the store's files in turn, recorded by ``disk.c``."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from ajuste.model.error import AjusteError
from ajuste.store.salvage import inspect_store
from ajuste.store.store import Store

HERE = Path(__file__).parent
sys.path.append(str(HERE))
import on_disk  # noqa: E402 - also a program of its own

EVERY: Final = bool(os.environ.get("AJUSTE_DISK_ALL"))
"""Try every fault at every operation, and every state after every crash, instead of some; for ``make fuzz``."""
FAULTS: Final = {
    "full": (errno.ENOSPC, 1),
    "failing": (errno.EIO, 0),
    "dead": (errno.EIO, 1),
    "read-only": (errno.EROFS, 1),
    "full in the middle of a write": (0, 0),
}
DIRECTORY: Final = "disk"
Files = dict[str, bytes]


@dataclass(frozen=True)
class Operation:
    kind: str
    name: str
    offset: int
    data: bytes


def operations(record: Path) -> list[Operation]:
    content, at, decoded = record.read_bytes(), 0, []
    while at < len(content):
        kind, length = content[at : at + 1].decode(), struct.unpack_from("=I", content, at + 1)[0]
        at += 5
        name = Path(content[at : at + length].decode()).name
        offset, size = struct.unpack_from("=qQ", content, at + length)
        at += length + 16
        data = content[at : at + size] if kind == "w" else b""
        at += len(data)
        decoded.append(Operation(kind, name, offset, data))
    return decoded


class Disk:
    """The process whose store is on a disk that is looked at."""

    def __init__(self, directory: Path, library: Path) -> None:
        self.record = directory / "record"
        store = directory / DIRECTORY / "store.sqlite"
        environment = {**os.environ, "AJUSTE_DISK": str(store), "LD_PRELOAD": str(library)}
        self._process = subprocess.Popen(
            [sys.executable, HERE / "on_disk.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )

    def attempt(self, at: int = -1, error: int = 0, on: int = 0) -> list[dict[str, Any]]:
        assert self._process.stdin
        assert self._process.stdout
        request = {"at": at, "error": error, "on": on, "record": str(self.record)}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        ended: list[dict[str, Any]] = json.loads(self._process.stdout.readline())
        return ended

    def end(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Disk]:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler here")
    directory = tmp_path_factory.mktemp("disk")
    library = directory / "disk.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, HERE / "disk.c", "-ldl"], check=True)
    made = Disk(directory, library)
    yield made
    made.end()


@pytest.fixture(scope="module")
def recorded(disk: Disk) -> list[Operation]:
    (ended,) = disk.attempt()
    assert ended["code"] == 0, ended
    trace = operations(disk.record)
    assert {operation.kind for operation in trace} >= {"w", "s", "m"}
    assert {operation.name for operation in trace if operation.kind == "w"} >= {"store.sqlite", "store.sqlite-wal"}
    return trace


@pytest.mark.slow
def test_every_operation_may_fail_and_the_same_command_goes_on(disk: Disk) -> None:
    (undisturbed,) = disk.attempt()
    names = list(FAULTS)
    failed = 0
    for at in range(0, undisturbed["count"], 1 if EVERY else 4):
        for name in names if EVERY else [names[at // 4 % len(names)]]:
            error, on = FAULTS[name]
            first, again = disk.attempt(at, error, on)
            what = f"operation {at}, disk {name}: {first}, then {again}"
            assert first["code"] in (0, 1) or (first["code"] == 2 and "cannot be opened" in first["said"]), what
            assert first["code"] == 0 or first["said"].startswith("ajuste: the store"), what
            assert (again["code"], again["said"]) == (0, undisturbed["said"]), what
            promised = [operation.offset for operation in operations(disk.record) if operation.kind == "m"]
            # What a disk did not confirm may be there all the same; what it confirmed is never measured again.
            assert promised == sorted(set(promised)), f"what was kept is there: {what}"
            failed += first["code"] != 0
    assert failed > undisturbed["count"] // 12


def written(files: Files, operation: Operation, data: bytes) -> None:
    old = files.get(operation.name, b"")
    old = old.ljust(operation.offset, b"\0")
    files[operation.name] = old[: operation.offset] + data + old[operation.offset + len(data) :]


def applied(files: Files, operation: Operation) -> None:
    match operation.kind:
        case "w":
            written(files, operation, operation.data)
        case "t":
            files[operation.name] = files.get(operation.name, b"")[: operation.offset].ljust(operation.offset, b"\0")
        case "u":
            files.pop(operation.name, None)


def all_of_it(files: Files, unsynced: list[Operation], chance: random.Random) -> None:
    for operation in unsynced:
        applied(files, operation)


def nothing_unsynced(files: Files, unsynced: list[Operation], chance: random.Random) -> None:
    """Lose all that was not synced."""


def torn(files: Files, unsynced: list[Operation], chance: random.Random) -> None:
    """The last write is there in part: some sectors of it."""
    all_of_it(files, unsynced[:-1], chance)
    if unsynced and unsynced[-1].kind == "w":
        written(files, unsynced[-1], unsynced[-1].data[: chance.randrange(9) * 512])


def reordered(files: Files, unsynced: list[Operation], chance: random.Random) -> None:
    """Some of what was not synced is there, whole or torn: later writes without earlier ones."""
    for operation in unsynced:
        if chance.random() < 0.5:
            continue
        if operation.kind == "w" and chance.random() < 0.3:
            written(files, operation, operation.data[: chance.choice((512, 4096))])
        else:
            applied(files, operation)


CRASHES: Final[tuple[Callable[[Files, list[Operation], random.Random], None], ...]] = (
    *(all_of_it, nothing_unsynced, torn, reordered),
)


def after_crash(
    done: list[Operation], crash: Callable[[Files, list[Operation], random.Random], None], seed: int
) -> Files:
    """Return what is on a disk that does as it says when the power fails."""
    synced: Files = {}
    pending: list[Operation] = []
    for operation in done:
        if operation.kind == "s":  # Of a file: what was written to it. Of the directory: which files are gone.
            now = [
                earlier
                for earlier in pending
                if earlier.name == operation.name or (operation.name == DIRECTORY and earlier.kind == "u")
            ]
            for earlier in now:
                applied(synced, earlier)
            pending = [earlier for earlier in pending if earlier not in now]
        elif operation.kind != "m":
            pending.append(operation)
    crash(synced, pending, random.Random(seed))
    return synced


def put(directory: Path, files: Files) -> Path:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    for name, content in files.items():
        (directory / name).write_bytes(content)
    return directory / "store.sqlite"


def test_after_a_crash_every_trial_that_was_kept_is_there_and_no_half_one(
    recorded: list[Operation], tmp_path: Path
) -> None:
    for number in range(len(recorded) + 1):
        done = recorded[:number]
        promised = [operation.offset for operation in done if operation.kind == "m"]
        for crash in CRASHES if EVERY else [CRASHES[number % len(CRASHES)]]:
            what = f"after {number} operations, {crash.__name__}"
            file = put(tmp_path / "disk", after_crash(done, crash, number))
            with Store(f"sqlite:///{file}") as store:
                run = store.latest_run("f", 1)
                trials = store.trials(run) if run else []
            assert trials == [on_disk.trial(block) for block in range(len(trials))], what
            assert len(promised) <= len(trials) <= len(promised) + 1, what


def measured(file: Path) -> tuple[AjusteError | None, str]:
    try:
        return None, on_disk.measure(file, lambda _: None)
    except AjusteError as error:
        return error, ""


def test_a_disk_that_loses_what_it_said_was_written_is_noticed(recorded: list[Operation], tmp_path: Path) -> None:
    whole: Files = {}
    all_of_it(whole, recorded, random.Random(0))
    right = on_disk.measure(put(tmp_path / "disk", whole), lambda _: None)
    writes = [
        number
        for number, operation in enumerate(recorded)
        if operation.kind == "w" and operation.name == "store.sqlite"
    ]
    noticed = 0
    for number in writes:
        files: Files = {}
        all_of_it(files, recorded[:number] + recorded[number + 1 :], random.Random(0))
        file = put(tmp_path / "disk", files)
        refused, digest = measured(file)
        if refused is None:
            assert digest == right
            assert not inspect_store(f"sqlite:///{file}").damaged, f"write {number}"
        else:
            assert refused.exit_code == 1
            assert "damaged" in str(refused) or "malformed" in str(refused), refused
            noticed += 1
    assert noticed > len(writes) // 3
