"""Booting a guest up to its gate; and snapshots there, from which any number of machines go on.

A snapshot is memory of this process that nothing can change any more, this process included: what was compared with its
checksum once is what every trial starts from. Each QEMU gets a descriptor of it; no path, and no shell is involved.

Source: memfd_create(2), and "File sealing" in fcntl(2).
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import shutil
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, Final, Self

from ajuste.executor.stream import read_boot
from ajuste.machine.cache import SNAPSHOTS, make_room
from ajuste.machine.files import file_sha256, holding, make_directory, replaced, sealed, unsealed
from ajuste.machine.home import Home
from ajuste.model.base import BaseModel
from ajuste.model.caller import open_kept
from ajuste.model.error import RequestError, RunError
from ajuste.model.event import Gate, Hello
from ajuste_guest.executor.machine import (
    LARGEST_CONSOLE_BYTES,
    LARGEST_OUTPUT_BYTES,
    MachineLimit,
    MonitorClosed,
    Outcome,
    RunningMachine,
)
from ajuste_guest.executor.qemu import Channels, GuestMachine, command_line
from ajuste_guest.kernel.config import read_config

BOOT_LIMIT = MachineLimit(host_s=300, guest_s=120)
"""Emulated kernels take about 3 s of their own time to boot, and a busy machine makes that ten times as long."""

_LAST_LINES = 12


@dataclass(frozen=True)
class Arrival:
    """A guest that waits at its gate for its plan."""

    hello: Hello
    gate: Gate


class BootFailure(Exception):
    """A guest did not arrive; the message says why, ``console`` is the end of what it printed."""

    def __init__(self, reason: str, console: str) -> None:
        super().__init__(reason)
        self.console = console

    @property
    def last_lines(self) -> str:
        """Return the last lines of the console."""
        return "\n".join(self.console.rstrip().splitlines()[-_LAST_LINES:])


def await_gate(machine: RunningMachine, limit: MachineLimit = BOOT_LIMIT) -> Arrival:
    """Wait until the guest stands at its gate. Raises BootFailure if it does anything else."""
    outcome = machine.wait(limit)
    boot = read_boot(machine.events())
    console = machine.console()
    if outcome is Outcome.STOPPED and boot.hello is not None and boot.gate is not None and not boot.rest:
        _LOG.info("guest booted", extra={"kernel": boot.hello.kernel, "guest_seconds": boot.gate.at_ns / 1e9})
        return Arrival(boot.hello, boot.gate)
    if outcome is Outcome.LATE:
        raise BootFailure(f"it was not ready within {limit.host_s:.0f} s", console)
    if boot.problem and boot.hello is None and boot.problem.startswith("the guest failed"):
        raise BootFailure(boot.problem, console)
    if "Kernel panic" in console:
        raise BootFailure("the kernel panicked", console)
    complaint = machine.complaint()
    raise BootFailure(boot.problem + (f" ({complaint.splitlines()[-1]})" if complaint else ""), console)


# The options that a kernel needs to boot as a guest, and which of them a kernel lacks that did not boot.


# Reasons by option, the likeliest first.
_NEEDS: Final = {
    "64BIT": "it is not a 64-bit kernel",
    "BLK_DEV_INITRD": "it cannot use an initramfs",
    "BINFMT_ELF": "it cannot run programs",
    "DEVTMPFS": "it has no devices in /dev",
    "PROC_FS": "it has no /proc",
    "SYSFS": "it has no /sys",
    "X86_IOPL_IOPERM": "programs cannot use I/O ports, through which the guest answers",
    "FUTEX": "threads cannot wait for each other",
    "EPOLL": "it lacks system calls that current programs use",
    "MULTIUSER": "it has no users",
    "TTY": "it has no terminals",
    "SERIAL_8250_CONSOLE": "it has no serial console, so its messages cannot be seen",
    "PRINTK": "it prints nothing",
}

# Reasons by the text of the console.
_SIGNS: Final = {
    "Unable to mount root fs": "it did not use its initramfs",
    "No working init found": "it could not run the first program of the initramfs",
    "Requested init /init failed (error -8)": "it cannot run programs",
    "Out of memory": "the guest has too little memory; raise --memory, or memory_mib in the study",
    "System is deadlocked on memory": "the guest has too little memory; raise --memory, or memory_mib in the study",
}


def likely_causes(config: Path | None, console: str) -> str | None:
    """Say why a kernel with that ``.config`` (if it is known) may not have come up, or ``None``."""
    seen = [meaning for sign, meaning in _SIGNS.items() if sign in console]
    seen += [f"{meaning} ({name} is off)" for name, meaning in _NEEDS.items() if name in _off(config)]
    return f"likely cause: {'; '.join(dict.fromkeys(seen))}" if seen else None


def _off(config: Path | None) -> frozenset[str]:
    if config is None:
        return frozenset()
    try:
        options = read_config(config)
    except RequestError:
        return frozenset()
    return frozenset(name for name in _NEEDS if not options[name].is_on)


# The ends of a guest, in words.


def what_went_wrong(running: RunningMachine, outcome: Outcome, console: str) -> str:
    """Return what went wrong with the machine itself, or an empty text."""
    if outcome is Outcome.LATE:
        return "the guest hung: it did not end within its time limit"
    if outcome is Outcome.LOUD:
        most, events = LARGEST_CONSOLE_BYTES >> 20, LARGEST_OUTPUT_BYTES >> 20
        return f"the guest printed more than {most} MiB on its console, or {events} MiB of events, and was ended"
    if outcome is Outcome.STOPPED or "Kernel panic" in console:
        line = next((line for line in console.splitlines() if "Kernel panic" in line), "")
        reason = line.partition("Kernel panic - not syncing: ")[2]
        return "the guest's kernel panicked" + (f": {reason[:200]}" if reason else "")
    code = running.exit_code
    if code:
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        return f"QEMU ended {how}: {running.complaint() or 'it gave no reason'}"
    return ""


_LOG: Final = logging.getLogger(__name__)

_SECONDS = 600.0
_UNLIMITED_BYTES_PER_SECOND = 2**63 - 1
_NAME = "snapshot"
_SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
_PART_BYTES = 1 << 20


class NotRestored(RunError):
    """QEMU did not take a snapshot."""


class Snapshot:
    """A saved machine. Leaving it as a context manager gives its memory back. ``sha256`` is of its content."""

    def __init__(self) -> None:
        self._descriptor = os.memfd_create(_NAME, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        self.sha256 = ""
        self.size_bytes = 0

    @classmethod
    def of_file(cls, file: BufferedReader) -> Self:
        """Return a copy of the rest of ``file``. Raises OSError, also where there is too little memory."""
        snapshot = cls()
        try:
            digest = hashlib.sha256()
            part = memoryview(bytearray(_PART_BYTES))
            while count := file.readinto(part):
                digest.update(part[:count])
                written = 0
                while written < count:
                    written += os.write(snapshot.descriptor, part[written:count])
            snapshot._seal(digest.hexdigest())
        except BaseException:
            snapshot.close()
            raise
        return snapshot

    @classmethod
    def of_machine(cls, machine: RunningMachine) -> Self:
        """Save a stopped ``machine`` and end it. Raises RunError where that fails."""
        machine.lift_output_limit()
        snapshot = cls()
        try:
            machine.monitor.execute("migrate-set-parameters", {"max-bandwidth": _UNLIMITED_BYTES_PER_SECOND})
            _transfer(machine, "migrate", snapshot.descriptor)
            machine.quit()
            with snapshot.open() as file:
                snapshot._seal(hashlib.file_digest(file, "sha256").hexdigest())
        except MonitorClosed as error:
            snapshot.close()
            raise RunError(f"QEMU ended before its machine was saved: {machine.complaint()}") from error
        except BaseException:
            snapshot.close()
            raise
        return snapshot

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def descriptor(self) -> int:
        return self._descriptor

    def open(self) -> BufferedReader:
        """Return the snapshot, open at its beginning; several readers do not disturb each other."""
        return Path(f"/proc/self/fd/{self._descriptor}").open("rb")

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _seal(self, sha256: str) -> None:
        fcntl.fcntl(self._descriptor, fcntl.F_ADD_SEALS, _SEALS)
        self.sha256 = sha256
        self.size_bytes = os.fstat(self._descriptor).st_size


def restore(machine: RunningMachine, snapshot: Snapshot) -> None:
    """Load ``snapshot`` into a ``machine`` that was started as ``restored``. It stays stopped. Raises NotRestored."""
    try:
        # QEMU would announce its network cards by timers of this machine's time, which shorten the turns that several
        # CPUs take under the virtual clock (also where there is no such card).
        machine.monitor.execute("migrate-set-parameters", {"announce-rounds": 0})
        with snapshot.open() as file:
            _transfer(machine, "migrate-incoming", file.fileno())
    except MonitorClosed as error:
        raise NotRestored(f"QEMU ended before it could be given a snapshot: {machine.complaint()}") from error
    except RunError as error:
        raise NotRestored(error.message) from error


def _transfer(machine: RunningMachine, command: str, descriptor: int) -> None:
    monitor = machine.monitor
    try:
        monitor.execute("migrate-set-capabilities", {"capabilities": [{"capability": "events", "state": True}]})
        monitor.pass_file(_NAME, descriptor)
        monitor.execute(command, {"uri": f"fd:{_NAME}"})
        event = monitor.wait_for(_is_settled, _SECONDS)
        if event is None or event["data"]["status"] != "completed":
            reason = monitor.execute("query-migrate").get("error-desc", "") or machine.complaint()
            raise RunError(f"{command} failed: {reason or 'no reason given'}")
    except MonitorClosed as error:
        raise RunError(f"QEMU ended during {command}: {machine.complaint()}") from error


def _is_settled(event: dict[str, Any]) -> bool:
    return event.get("event") == "MIGRATION" and event["data"].get("status") in ("completed", "failed", "cancelled")


# Machines that have booted, kept in the cache: under the virtual clock the next boot would come to the very same.


_FORMAT: Final = 2
_LONGEST_LINE: Final = 1 << 20
_ANY_CHANNELS = Channels(plan=Path("plan"), console=Path("console"), events=Path("events"), monitor=0)


class Booted(BaseModel):
    """A machine at its gate. ``command_line`` is QEMU's, in words; ``snapshot_sha256`` is of its snapshot, if it has
    one.
    """

    hello: Hello
    gate: Gate
    command_line: str
    snapshot_sha256: str = ""


class Damaged(Exception):
    """A cached machine was damaged, and dropped. The message says what is wrong with it."""


def snapshot_name(machine: GuestMachine, kernel_sha256: str, initramfs_sha256: str) -> str:
    """Return the SHA-256 of all that a boot depends on: QEMU's arguments, files by content, QEMU by size and time.

    A fetched QEMU is known by its package's version: the time of its file is when it was last used.
    """
    binary = machine.emulator.binary.stat()
    made = 0 if machine.emulator.firmware else binary.st_mtime_ns
    by_content = machine.model_copy(update={"kernel": Path(kernel_sha256), "initramfs": Path(initramfs_sha256)})
    depends_on = [
        *command_line(by_content, _ANY_CHANNELS, restored=False),
        *(machine.emulator.version, binary.st_size, made),
        *((file_sha256(machine.lens),) if machine.lens and machine.quantum_us else ()),
        _FORMAT,
    ]
    return hashlib.sha256(json.dumps(depends_on).encode()).hexdigest()


def find(home: Home, name: str) -> tuple[Booted, Snapshot] | None:
    """Return the intact machine of that name with its snapshot, or ``None``. Raises Damaged after removing another."""
    path = _file(home, name)
    try:
        with open_kept(path) as file:
            head = file.readline(_LONGEST_LINE) + file.readline(_LONGEST_LINE)
            booted = Booted.model_validate_json(unsealed(head))
            snapshot = Snapshot.of_file(file)
    except FileNotFoundError:
        return None
    except OSError as error:
        drop(home, name)
        raise Damaged(error.strerror or str(error)) from error
    except ValueError as error:  # Of these is ValidationError.
        drop(home, name)
        raise Damaged("its first lines changed") from error
    if snapshot.sha256 != booted.snapshot_sha256:
        snapshot.close()
        drop(home, name)
        raise Damaged("its SHA-256 changed")
    with contextlib.suppress(OSError):
        os.utime(path)
    _LOG.info("snapshot found", extra={"kernel": booted.hello.kernel})
    return booted, snapshot


def keep(home: Home, name: str, booted: Booted, snapshot: Snapshot) -> None:
    """Cache a booted machine, if there is room; a failure is ignored."""
    path = _file(home, name)
    with contextlib.suppress(OSError):
        make_directory(path.parent)
        _remove(path)
        # Held while it is written: clean-up takes a file that nobody holds for a leftover.
        with replaced(path) as new, holding(new), snapshot.open() as content, new.open("wb") as file:
            file.write(sealed(booted.model_dump_json()).encode())
            shutil.copyfileobj(content, file, 1 << 20)
        make_room(SNAPSHOTS, home)


def drop(home: Home, name: str) -> None:
    """Remove whatever is there of that name, as far as possible."""
    path = _file(home, name)
    _LOG.warning("snapshot dropped", extra={"file": str(path)})
    _remove(path)


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        shutil.rmtree(path, ignore_errors=True)


def _file(home: Home, name: str) -> Path:
    # Format: a checksum, a line of JSON on the machine, then the snapshot's bytes.
    return home.booted / f"{name}.snapshot"
