"""A running QEMU: started so that it cannot outlive this process, watched, spoken to, and killed on leaving."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import resource
import signal
import socket
import subprocess
import time
from calendar import timegm
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import psutil
from qemu.qmp import EventListener, QMPClient, QMPError
from qemu.qmp.protocol import Runstate

from ajuste.catalogue.programs import install_hint
from ajuste.machine.files import file_sha256, holding
from ajuste.machine.home import Home
from ajuste.model.error import RequestError, RunError
from ajuste.model.plan import CpuPause, Plan
from ajuste.model.results import Clock
from ajuste_guest.executor.qemu import Channels, GuestMachine, Lens, command_line
from ajuste_guest.session import MachineSession

# The files that a guest was started with: they stay in the cache, and must not change.


_AGAIN: Final = "run the same command again; it replaces damaged files of the cache"


def hold(stack: ExitStack, home: Home, *files: Path) -> None:
    """Keep ``files`` of the cache until ``stack`` is left. Raises RunError for missing ones."""
    for file in files:
        for used in (file, file.parent) if file.is_relative_to(home.cache) else ():
            try:
                stack.enter_context(holding(used))
            except OSError as error:
                raise RunError(f"cannot use {used}: {error.strerror}", hint=_AGAIN) from error


def require_intact(checksums: Mapping[Path, str]) -> None:
    """Raise RunError where QEMU would read something else than what the run began with."""
    for file, sha256 in checksums.items():
        try:
            intact = file_sha256(file) == sha256
        except OSError as error:
            raise RunError(f"cannot read {file}: {error.strerror}", hint=_AGAIN) from error
        if not intact:
            raise RunError(f"{file} changed during the run", hint=_AGAIN)


LARGEST_OUTPUT_BYTES = 64 << 20
"""Maximum size in bytes of a guest's events; the kernel enforces it (RLIMIT_FSIZE)."""

LARGEST_CONSOLE_BYTES = 1 << 20
"""... and of its console, on which a kernel's boot prints 0.1 MB. Emulated, a byte of it costs the time of thousands of
instructions, so that a guest that prints without end takes minutes for a second of its own.
"""

DATE = float(timegm((2020, 1, 1, 0, 0, 0)))
"""The time at which every guest starts by its own clock (see ``command_line``), in seconds since 1970."""

_CONSOLE_TAIL_BYTES = 8192
_LOOK_EVERY_SECONDS = 10.0
_LOOKS_UNTIL_HALTED = 3
_HALTED_CPU_SECONDS = 0.02
_EVENT_REST_SECONDS = 1.5
_END_SECONDS = 30.0
_PLACES = "places"
_PAUSES = "pauses"
_FILES: tuple[str, ...] = (
    "plan.json",
    _PAUSES,
    "places",
    "places.made",
    "shared",
    "shared.new",
    "console.log",
    "events.jsonl",
    "qemu.log",
)
_FILES += tuple(f"{name}.{end}" for name in ("costs", "decisions") for end in ("json", "new"))
_NUMBERS = itertools.count()


class Outcome(Enum):
    """The reasons why waiting for a guest ended."""

    STOPPED = "the machine stopped itself"
    ENDED = "QEMU ended"
    LATE = "the guest did not end in time"
    LOUD = "the guest printed too much"


# Maximum number of seconds that emulation on a busy machine may take for one second of the guest.
_SLOWEST: Final = 30
_SLACK_SECONDS: Final = 60
_GUEST_SLACK_SECONDS: Final = 20


@dataclass(frozen=True)
class MachineLimit:
    """The time limits of a guest in seconds: of this machine, and of its own clock (``None``: no limit of its own)."""

    host_s: float
    guest_s: float | None = None

    @classmethod
    def of(cls, plan: Plan, clock: Clock) -> Self:
        """Return the limits for ``plan``: a busy machine may take long for one second of the guest."""
        work_ns = (
            plan.settle_ns
            + plan.ready_timeout_ns
            + plan.perturbation.start_delay_ns
            + (plan.timeout_ns + plan.observe_ns if plan.workload else 0)
        )
        work_s = work_ns / 1e9
        if clock == "wall":
            return cls(host_s=work_s + _SLACK_SECONDS)
        return cls(host_s=_SLOWEST * work_s + _SLACK_SECONDS, guest_s=work_s + _GUEST_SLACK_SECONDS)


class DidNotStart(RunError):
    """QEMU ended before it could be spoken to: it refused its arguments, the kernel file, the amount of memory."""


@dataclass(frozen=True)
class Places:
    """Addresses of instructions after whose block a CPU stands still, by chance, ``of_thousand`` times out of 1000, for
    ``shortest_ns`` to ``longest_ns``, and ``most_ns`` in all.
    """

    addresses: tuple[int, ...]
    seed: int
    of_thousand: int
    shortest_ns: int
    longest_ns: int
    most_ns: int

    @property
    def text(self) -> str:
        """Return it as the lens reads it (native/lens/src/pauses.rs)."""
        first = f"{self.seed} {self.of_thousand} {self.shortest_ns} {self.longest_ns} {self.most_ns}"
        return "\n".join((first, *map(str, self.addresses))) + "\n"


class RunningMachine:
    """A QEMU process with its files in the session's directory; entering starts it, leaving kills it and removes them.

    The kernel kills it with the thread that entered (PR_SET_PDEATHSIG), so it never outlives this process. Only that
    thread may use it.
    """

    def __init__(
        self,
        machine: GuestMachine,
        session: MachineSession,
        plan: bytes,
        *,
        restored: bool = False,
        lens: Lens | None = None,
        pauses: Sequence[CpuPause] = (),
        places: Places | None = None,
    ) -> None:
        self._machine = machine
        self._restored = restored
        self._plan = plan
        self._lens = lens
        self._pauses = pauses
        self._places = places
        number = next(_NUMBERS)
        self._directory = session.directory / str(number)
        self._pid_file = session.directory / f"{number}.pid"
        self._stack = contextlib.ExitStack()
        self._process: subprocess.Popen[bytes] | None = None
        self._monitor: Monitor | None = None
        self.resumed_at_s = DATE
        self.arguments: list[str] = []

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            stack.callback(self._remove_files)
            self._directory.mkdir()
            (self._directory / "plan.json").write_bytes(self._plan)
            if self._pauses:
                lines = (f"{pause.cpu} {pause.at_ns} {pause.for_ns}\n" for pause in self._pauses)
                (self._directory / _PAUSES).write_text("".join(lines))
            if self._places:
                (self._directory / _PLACES).write_text(self._places.text)
            ours, theirs = socket.socketpair()
            with theirs:
                stack.callback(ours.close)
                self._process = self._start(theirs)
            stack.callback(self._kill)
            self._pid_file.write_text(f"{self._process.pid}\n")
            try:
                self._monitor = stack.enter_context(Monitor(ours))
            except MonitorClosed as error:
                self._kill()
                raise DidNotStart(f"QEMU did not start: {self.complaint() or f'exit code {self.exit_code}'}") from error
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def monitor(self) -> Monitor:
        assert self._monitor is not None, "the machine was not entered"
        return self._monitor

    @property
    def costs(self) -> Path:
        """Return where a lens writes what it has counted."""
        return self._directory / "costs.json"

    @property
    def decisions(self) -> Path:
        """... and what the scheduler has decided."""
        return self._directory / "decisions.json"

    @property
    def made(self) -> Path:
        """... and where CPUs stood still at places of a program."""
        return self._directory / f"{_PLACES}.made"

    @property
    def shared(self) -> Path:
        """... and when tasks accessed memory that they share."""
        return self._directory / "shared"

    @property
    def exit_code(self) -> int | None:
        """Return QEMU's exit code; negative: the signal that killed it. ``None`` while it runs."""
        return None if self._process is None else self._process.poll()

    def resume(self) -> None:
        # The clock is read before the machine runs: a monitor command to a running machine costs it time.
        self.resumed_at_s = self.guest_seconds()
        with contextlib.suppress(MonitorClosed):  # It may end at once; ``wait`` says how.
            self.monitor.execute("cont")

    def let_monitor_rest(self) -> None:
        """Wait until QEMU has no timer of this machine's time left: it keeps one for a second after a watchdog's event,
        and under the virtual clock such a timer shortens the turns that several CPUs take.
        """
        if self._machine.clock == "virtual" and self._machine.cpus > 1:
            self.monitor.wait_for(lambda _: False, _EVENT_REST_SECONDS)

    def quit(self) -> None:
        """End QEMU in order, and wait for that."""
        with contextlib.suppress(MonitorClosed):
            self.monitor.execute("quit")
        self._wait_for_end()

    def wait(self, limit: MachineLimit) -> Outcome:
        """Wait until the machine stops itself (its gate, a panic) or ends, or ``limit`` is over, or it is halted for
        good.
        """
        began = time.monotonic()
        vigil = _Vigil(self, limit)
        while (rest_s := limit.host_s - (time.monotonic() - began)) > 0:
            try:
                stop = self.monitor.wait_for(
                    lambda event: event.get("event") == "STOP", min(rest_s, _LOOK_EVERY_SECONDS)
                )
                if stop is not None:
                    return Outcome.STOPPED
                if self.is_loud():
                    return Outcome.LOUD
                if limit.guest_s is not None and vigil.is_over():
                    return Outcome.LATE
            except MonitorClosed:
                self._wait_for_end()
                return Outcome.LOUD if self.is_loud() else Outcome.ENDED
        return Outcome.LATE

    def is_loud(self) -> bool:
        """Return whether the guest has printed or sent all that it may."""
        limits = {"console.log": LARGEST_CONSOLE_BYTES, "events.jsonl": LARGEST_OUTPUT_BYTES}
        files = ((self._directory / name, most) for name, most in limits.items())
        return any(file.exists() and file.stat().st_size >= most for file, most in files)

    def cpu_seconds(self) -> float:
        """Return how much time QEMU has spent on this machine's CPUs."""
        assert self._process is not None
        try:
            times = psutil.Process(self._process.pid).cpu_times()
        except psutil.NoSuchProcess:
            return 0.0
        return float(times.user + times.system)

    def guest_seconds(self) -> float:
        """Return the time of the guest's real-time clock, which runs with its virtual clock, in seconds since 1970."""
        now = self.monitor.execute("qom-get", {"path": "/machine", "property": "rtc-time"})
        fields = [int(now[f"tm_{name}"]) for name in ("year", "mon", "mday", "hour", "min", "sec")]
        return float(timegm((fields[0] + 1900, fields[1] + 1, *fields[2:])))

    def lift_output_limit(self) -> None:
        """Let QEMU write files of any size from now on: a snapshot is as large as the guest's memory."""
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    def events(self) -> bytes:
        """Return all that the agent, or anybody else, has sent through its port."""
        return self._read("events.jsonl")

    def console(self) -> str:
        """Return the end of the console, without control characters."""
        raw = self._read("console.log", tail_bytes=_CONSOLE_TAIL_BYTES)
        return "".join(c for c in raw.decode(errors="replace").replace("\r\n", "\n") if c.isprintable() or c in "\n\t")

    def complaint(self) -> str:
        """Return QEMU's own standard error."""
        return self._read("qemu.log", tail_bytes=_CONSOLE_TAIL_BYTES).decode(errors="replace").strip()

    def _read(self, name: str, tail_bytes: int = LARGEST_OUTPUT_BYTES) -> bytes:
        try:
            with (self._directory / name).open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                file.seek(max(0, size - tail_bytes))
                return file.read(tail_bytes)
        except FileNotFoundError:
            return b""

    def _start(self, monitor: socket.socket) -> subprocess.Popen[bytes]:
        channels = Channels(
            plan=self._directory / "plan.json",
            console=self._directory / "console.log",
            events=self._directory / "events.jsonl",
            monitor=monitor.fileno(),
            lens=self._lens,
            costs=self.costs,
            decisions=self.decisions,
            shared=self.shared,
            pauses=self._directory / _PAUSES if self._pauses else None,
            places=self._directory / _PLACES if self._places else None,
        )
        self.arguments = command_line(self._machine, channels, restored=self._restored)
        command = [
            "prlimit",
            f"--fsize={LARGEST_OUTPUT_BYTES}:",
            "--core=0:",
            "setpriv",
            "--pdeathsig",
            "KILL",
            "--",
            *self.arguments,
        ]
        try:
            with (self._directory / "qemu.log").open("wb") as complaints:
                return subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=complaints,
                    stderr=complaints,
                    pass_fds=[monitor.fileno()],
                    cwd=self._directory,
                    env={"PATH": os.environ.get("PATH", os.defpath), **self._machine.emulator.environment},
                    # Ctrl-C at the terminal is for this process, which then ends QEMU.
                    process_group=0,
                )
        except FileNotFoundError as error:
            raise RequestError(f"program {error.filename} not found", hint=install_hint("util-linux")) from error

    def _wait_for_end(self) -> None:
        assert self._process is not None
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._kill()

    def _kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()

    def _remove_files(self) -> None:
        for name in _FILES:
            (self._directory / name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self._directory.rmdir()
        self._pid_file.unlink(missing_ok=True)


class _Vigil:
    # A guest with a clock of its own can exceed its time, or halt for good: both are seen only by looking.
    def __init__(self, machine: RunningMachine, limit: MachineLimit) -> None:
        self._machine = machine
        self._limit_s = limit.guest_s or 0.0
        self._seen = (-1.0, 0.0)
        self._still = 0

    def is_over(self) -> bool:
        guest_s, cpu_s = self._machine.guest_seconds(), self._machine.cpu_seconds()
        # Halted with interrupts off: no instruction is carried out, and so no time passes.
        still = guest_s == self._seen[0] and cpu_s - self._seen[1] < _HALTED_CPU_SECONDS
        self._still = self._still + 1 if still else 0
        self._seen = (guest_s, cpu_s)
        return self._still >= _LOOKS_UNTIL_HALTED or guest_s - self._machine.resumed_at_s > self._limit_s


# The QEMU machine protocol over an inherited socket: commands, events, and the end of QEMU.
#
# ``qemu.qmp``'s asynchronous client on an event loop of its own: its synchronous wrapper keeps one loop a thread,
# which it never closes, and cannot tell that QEMU is gone while it waits for an event.


_T = TypeVar("_T")
_ANSWER_SECONDS: Final = 60

# The end of QEMU is no error here: without this the client would say so on standard error.
logging.getLogger("qemu.qmp").addHandler(logging.NullHandler())


class MonitorClosed(Exception):
    """QEMU has ended, or is about to."""


class Monitor:
    """A connection to one QEMU. To be used by one thread at a time."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._loop = asyncio.new_event_loop()
        self._client = QMPClient("ajuste")
        self._events = EventListener()
        self._arrival: asyncio.Task[Any] | None = None
        self._ending: asyncio.Task[Any] | None = None

    def __enter__(self) -> Self:
        self._client.register_listener(self._events)
        try:
            self._run(self._client.connect(self._connection))
        except QMPError as error:
            self._close()
            raise MonitorClosed from error
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def execute(self, command: str, arguments: dict[str, object] | None = None) -> Any:
        """Return what QEMU answers. Raises MonitorClosed if it has ended, RunError if it refuses or does not answer."""

        async def _execute() -> object:
            return await asyncio.wait_for(self._client.execute(command, arguments), _ANSWER_SECONDS)

        try:
            return self._run(_execute())
        except TimeoutError as error:
            raise RunError(f"QEMU did not answer {command} within {_ANSWER_SECONDS} s") from error
        except QMPError as error:
            if self._client.runstate != Runstate.RUNNING:
                raise MonitorClosed from error
            raise RunError(f"QEMU refused {command}: {error}") from error

    def pass_file(self, name: str, descriptor: int) -> None:
        """Give QEMU an open file under ``name``, for addresses such as ``fd:NAME``."""

        async def _send() -> None:
            self._client.send_fd_scm(descriptor)

        self._run(_send())
        self.execute("getfd", {"fdname": name})

    def wait_for(self, wanted: Callable[[dict[str, Any]], bool], timeout_s: float) -> dict[str, Any] | None:
        """Return the next event that is ``wanted``, or ``None`` after ``timeout_s``. Raises MonitorClosed at QEMU's
        end.
        """
        return self._run(self._wait_for(wanted, timeout_s))

    async def _wait_for(self, wanted: Callable[[dict[str, Any]], bool], timeout_s: float) -> dict[str, Any] | None:
        deadline = self._loop.time() + timeout_s
        while True:
            # Both tasks outlive this call: a cancelled one could take an event with it.
            if self._arrival is None:
                self._arrival = self._loop.create_task(self._events.get())
            if self._ending is None:
                self._ending = self._loop.create_task(_as_coroutine(self._client.runstate_changed()))
            ended = self._client.runstate != Runstate.RUNNING
            rest_s = 0 if ended else max(0.0, deadline - self._loop.time())
            await asyncio.wait({self._arrival, self._ending}, timeout=rest_s, return_when=asyncio.FIRST_COMPLETED)
            if self._arrival.done():
                event = dict(self._arrival.result())
                self._arrival = None
                if wanted(event):
                    return event
            elif ended:
                raise MonitorClosed
            elif self._client.runstate == Runstate.RUNNING and self._loop.time() >= deadline:
                return None

    def _run(self, work: Coroutine[Any, Any, _T]) -> _T:
        task = self._loop.create_task(work)
        try:
            return self._loop.run_until_complete(task)
        except (KeyboardInterrupt, SystemExit):
            # A signal arrived in between: the work must not be left half done.
            self._cancel({task})
            raise

    def _cancel(self, tasks: set[asyncio.Task[Any]]) -> None:
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))

    def _close(self) -> None:
        if self._loop.is_closed():
            return
        with contextlib.suppress(Exception):
            self._run(asyncio.wait_for(self._client.disconnect(), 5))
        with contextlib.suppress(Exception):
            self._cancel(asyncio.all_tasks(self._loop))
        self._loop.close()
        self._connection.close()


async def _as_coroutine(work: Awaitable[_T]) -> _T:
    return await work
