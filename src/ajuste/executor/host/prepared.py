"""A host made ready for one study: its disk, its changes tried, its set-up run, and its clean-up whatever happens."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from ajuste.catalogue.loader import Catalogue
from ajuste.executor.executor import Executor
from ajuste.executor.host.adoption import adopted_from
from ajuste.executor.host.availability import (
    NEEDS_ROOT,
    HostMachine,
    require_rights,
    require_root,
    why_no_weight,
    why_not_writable,
)
from ajuste.executor.host.caller import agents_directory, services_directories
from ajuste.executor.host.host import HostExecutor
from ajuste.machine.home import Home, as_root
from ajuste.model.error import RequestError, RunError
from ajuste.model.event import Failed
from ajuste.model.plan import REAL_TIME, Command, Plan, User, Write
from ajuste.model.wording import Say
from ajuste.outputs.services import with_advice
from ajuste.outputs.trial import with_last_words
from ajuste.study.named import LOOP, disks_of_mkfs
from ajuste.study.resolved import ResolvedConfiguration, ResolvedStudy


class PreparedHost(HostExecutor):
    """Entering tries each of the ``changes`` (the writes of one configuration) once and takes it back: RequestError for
    a value that the kernel refuses, a place that is locked or not there. Then it runs ``setup``; leaving runs
    ``cleanup`` if the set-up began, also after a failure or an interruption. Neither is measured; each of their
    commands may take ``timeout_ns``. ``first`` is called before anything is changed; ``servers`` are the users of
    services.
    """

    def __init__(
        self,
        home: Home | None = None,
        say: Say = lambda _: None,
        *,
        changes: Sequence[tuple[Write, ...]] = (),
        setup: tuple[Command, ...] = (),
        cleanup: tuple[Command, ...] = (),
        first: Callable[[Executor], None] = lambda _: None,
        timeout_ns: int,
        wait_s: float = 0,
        daemons: frozenset[str] = frozenset(),
        servers: Sequence[User | None] = (),
    ) -> None:
        super().__init__(home, say, wait_s=wait_s, daemons=daemons)
        self._first = first
        self._changes = tuple(dict.fromkeys(writes for writes in changes if writes))
        self._setup = setup
        self._cleanup = cleanup
        self._timeout_ns = timeout_ns
        self._servers = servers
        self._prepared = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(agents_directory())
            super().__enter__()
            stack.push(super().__exit__)
            stack.enter_context(services_directories(self._servers))
            for adoption in adopted_from(write.location for writes in self._changes for write in writes):
                self._say(f"{adoption}. What is adopted is the state that this experiment restores")
            self._first(self)
            for number, writes in enumerate(self._changes):
                self._try(Plan(id=f"change-{number}", writes=writes))
            stack.callback(self._clean_up)
            self._once("setup", self._setup)
            self._prepared = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._prepared.close()

    def _try(self, plan: Plan) -> None:
        observation = self.run(plan)
        for event in observation.events:
            if isinstance(event, Failed):
                raise RequestError(
                    f"{event.tunable or 'the change'} cannot be set on this machine: {event.message}",
                    hint="see what this machine accepts with `ajuste tunables show NAME`; nothing was changed",
                )
        if observation.problem:
            raise RunError(f"the changes could not be tried: {observation.problem}")

    def _clean_up(self) -> None:
        if self._cleanup:
            # A trial may have been cut short.
            self.begin_anew()
            self._once("cleanup", self._cleanup)

    def _once(self, name: str, commands: tuple[Command, ...]) -> None:
        if not commands:
            return
        observation = self.run(Plan(id=name, before=commands, timeout_ns=self._timeout_ns))
        failures = [event.message for event in observation.events if isinstance(event, Failed)]
        if failures or observation.problem:
            why = with_last_words("; ".join(failures) or observation.problem, observation.events)
            raise RunError(with_advice(f"the {name} command failed: {why}"))


def prepared_for(
    resolved: ResolvedStudy,
    home: Home,
    say: Say = lambda _: None,
    first: Callable[[Executor], None] = lambda _: None,
    *,
    wait_s: float = 0,
) -> PreparedHost:
    """Return this machine, made ready for that study; ``first`` is called before anything is changed."""
    return PreparedHost(
        home,
        say,
        first=first,
        changes=[configuration.writes for configuration in resolved.configurations],
        setup=resolved.setup,
        cleanup=resolved.cleanup,
        timeout_ns=round(resolved.study.workload.timeout_s * 1e9),
        wait_s=wait_s,
        daemons=frozenset(service.called for service in resolved.study.workload.services if service.when),
        servers=[
            service.command.user for configuration in resolved.configurations for service in configuration.services
        ],
    )


# Checks before anything runs: may the study be carried out on this machine at all?


REAL_TIME_NOTE = "a real-time process that never sleeps blocks every other process on its CPU"


def require_possible(resolved: ResolvedStudy, catalogue: Catalogue, *, accept_risk: bool, dry: bool = False) -> None:
    """Raise RequestError for missing root rights, for a tunable or control groups that this machine lacks or locks, for
    a kernel module, and for what can hang the machine unless the person has accepted that. A study that is ``dry`` is
    only planned, which needs no root.
    """
    _refuse_modules(resolved)
    if resolved.study.workload.as_root and not dry:
        require_root("a workload with as_root")
    once = Plan(id="once", before=resolved.setup, after=resolved.cleanup)
    for plan in () if dry else (once, *map(_plan, resolved.configurations)):
        require_rights(plan)
    machine = HostMachine()
    _require_writable(resolved, catalogue, machine, dry=dry)
    _require_weights(resolved, machine)
    if not accept_risk and (risk := next(risks(resolved, catalogue), None)):
        raise RequestError(risk.what, hint=f"add --accept-risk to do it anyway, or {risk.instead}")


@dataclass(frozen=True)
class Risk:
    """An effect of a study on this machine that the user has to accept, with what to do ``instead``."""

    what: str
    instead: str


def risks(resolved: ResolvedStudy, catalogue: Catalogue) -> Iterator[Risk]:
    """Yield everything in ``resolved`` that requires --accept-risk on this machine."""
    for parameter in disks_of_mkfs(resolved.study.scratch) if resolved.study.scratch else ():
        yield Risk(
            f"{parameter.where} = {parameter.value[:80]!r} may lead to another disk or a directory of this machine",
            "use only options of the file system itself",
        )
    for configuration in resolved.configurations:
        name = configuration.configuration.name
        device = configuration.scratch.device if configuration.scratch else ""
        if device and not device.startswith(LOOP):
            yield Risk(f"{name} overwrites {device} of this machine", "omit device for a file of its own")
        if reason := _reason_to_hang(configuration, catalogue):
            yield Risk(f"{name} can hang this machine: {reason}", "use a guest, where there is no risk")


def _refuse_modules(resolved: ResolvedStudy) -> None:
    for configuration in resolved.configurations:
        if configuration.modules:
            raise RequestError(
                f"{configuration.configuration.name} needs the kernel module {configuration.modules[0]}, which "
                "Ajuste loads only in guests",
                hint="use a guest, such as --target vm --kernel debian:5.10",
            )


def _require_writable(resolved: ResolvedStudy, catalogue: Catalogue, machine: HostMachine, *, dry: bool) -> None:
    names = (write.tunable for configuration in resolved.configurations for write in configuration.writes)
    for name in dict.fromkeys(names):
        tunable = catalogue.find_tunable(name)
        why = why_not_writable(catalogue, tunable, machine)
        if why and not (dry and why.startswith(NEEDS_ROOT)):
            raise RequestError(
                f"{name} cannot be changed on this machine: {why}", hint=f"see ajuste tunables show '{name}'"
            )


def _require_weights(resolved: ResolvedStudy, machine: HostMachine) -> None:
    for configuration in resolved.configurations:
        commands = (configuration.workload, *configuration.background, *(s.command for s in configuration.services))
        if any(command.attributes.cgroup_weight is not None for command in commands) and (
            why := why_no_weight(machine)
        ):
            raise RequestError(
                f"{configuration.configuration.name} needs a control group's weight: {why}",
                hint="use a guest, which has control groups: set a kernel in [target]",
            )


def _plan(configuration: ResolvedConfiguration) -> Plan:
    return Plan(
        id="possible",
        writes=configuration.writes,
        scratch=configuration.scratch,
        before=configuration.before,
        background=configuration.background,
        workload=configuration.workload,
        after=configuration.after,
    )


def _reason_to_hang(configuration: ResolvedConfiguration, catalogue: Catalogue) -> str:
    for write in configuration.writes:
        tunable = catalogue.find_tunable(write.tunable)
        if tunable.risk == "hang":
            return f"{tunable.name}: {tunable.risk_note}"
    served = (service.command for service in configuration.services)
    commands: tuple[Command, ...] = (configuration.workload, *configuration.background, *served)
    for command in commands:
        if command.attributes.policy in REAL_TIME:
            return f"policy {command.attributes.policy}: {REAL_TIME_NOTE}"
    return ""


# The disk of a study on this machine: one that the user names, or a loop device made for the run.


DISKS: Final = Path("/sys/block")
DIRECTORY: Final = Path("/var/tmp")  # noqa: S108 - a file without a name
"""The directory of a loop device's unnamed file: it is on a disk, while /tmp may be in memory."""

# include/uapi/linux/loop.h
_GET_FREE: Final = 0x4C82
_CONFIGURE: Final = 0x4C0A
_AUTOCLEAR: Final = 4
_DIRECT_IO: Final = 16
_CONFIG: Final = struct.Struct("=II5Q4I64s64s32s2Q8Q")
_TRIES: Final = 16
_MIB: Final = 1 << 20


@contextmanager
def disk_for_run(chosen: str | None, size_mib: int, *, accept_risk: bool) -> Iterator[str]:
    """Yield the kernel's name of a disk of at least ``size_mib`` that may be overwritten: ``chosen``, or a loop device.

    The loop device and its file are gone when the context or the process ends. Raises RequestError for a disk that is
    none, too small or in use, or that nobody allowed to overwrite; RunError where no loop device is available.
    """
    with ExitStack() as stack:
        if os.geteuid() != 0:
            raise RequestError("opening a disk directly requires root", hint=f"run {as_root()}")
        if chosen is None:
            name, descriptor = _loop_device(size_mib)
        else:
            name, descriptor = _named(chosen, size_mib, accept_risk=accept_risk)
        stack.callback(os.close, descriptor)
        yield name


def disk_in_plan(chosen: str | None) -> str:
    """Return the name that ``disk_for_run`` would most likely give; nothing is made or opened."""
    if chosen is not None:
        return whole_disk(chosen)
    numbers = (number for number in range(1 << 20) if not (DISKS / f"loop{number}" / "loop").exists())
    return f"loop{next(numbers)}"


def whole_disk(chosen: str) -> str:
    """Return the kernel's name of the disk ``sdb`` or ``/dev/sdb``. Raises RequestError for what is none."""
    name = Path(os.path.realpath(f"/dev/{chosen.removeprefix('/dev/')}")).name
    if (DISKS / name).is_dir():
        return name
    disks = ", ".join(sorted(path.name for path in DISKS.iterdir())) if DISKS.is_dir() else ""
    raise RequestError(
        f"--disk {chosen}: disk not found; expected a whole disk, not a partition",
        hint=f"choose one of {disks}" if disks else None,
    )


def _named(chosen: str, size_mib: int, *, accept_risk: bool) -> tuple[str, int]:
    name = whole_disk(chosen)
    if not accept_risk:
        raise RequestError(
            f"--disk {chosen}: everything on /dev/{name} would be overwritten",
            hint="add --accept-risk to overwrite it, or omit --disk to use a loop device",
        )
    try:
        # The kernel opens it for exclusive use only if nobody mounts it, swaps to it or has it in another device.
        descriptor = os.open(f"/dev/{name}", os.O_RDWR | os.O_EXCL | os.O_CLOEXEC)
    except OSError as error:
        why = "it is mounted or in use" if error.errno == errno.EBUSY else f"cannot open it: {error.strerror}"
        raise RequestError(f"--disk {chosen}: {why}", hint="choose a disk that nothing uses, or omit --disk") from None
    size = os.lseek(descriptor, 0, os.SEEK_END)
    if not stat.S_ISBLK(os.fstat(descriptor).st_mode) or size < size_mib * _MIB:
        os.close(descriptor)
        raise RequestError(f"--disk {chosen}: it has {size // _MIB} MiB; expected at least {size_mib} MiB")
    return name, descriptor


def _loop_device(size_mib: int) -> tuple[str, int]:
    # A loop device past the page cache, and the descriptor that keeps it: it is cleared when nobody has it open.
    try:
        image = _image(size_mib)
        try:
            name, descriptor = _attach(image)
        finally:
            os.close(image)
    except OSError as error:
        raise RunError(
            f"cannot make a loop device of {size_mib} MiB on a file in {DIRECTORY}: {error.strerror}",
            hint="name a disk that may be overwritten with --disk",
        ) from None
    if (DISKS / name / "loop" / "dio").read_text().strip() != "1":
        os.close(descriptor)
        raise RunError(
            f"the file system of {DIRECTORY} does not support direct I/O",
            hint="name a disk that may be overwritten with --disk",
        )
    return name, descriptor


def _image(size_mib: int) -> int:
    # A file without a name, written in full: what was never written would be read without any disk.
    image = os.open(DIRECTORY, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(image, 0, size_mib * _MIB)
        block = os.urandom(_MIB)
        for _ in range(size_mib):
            os.write(image, block)
        os.fsync(image)
    except OSError:
        os.close(image)
        raise
    return image


def _attach(image: int) -> tuple[str, int]:
    control = os.open("/dev/loop-control", os.O_RDWR | os.O_CLOEXEC)
    try:
        for attempt in range(_TRIES):
            name = f"loop{fcntl.ioctl(control, _GET_FREE)}"
            descriptor = os.open(f"/dev/{name}", os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.ioctl(descriptor, _CONFIGURE, _configuration(image))
            except OSError as error:
                os.close(descriptor)
                # Between finding a free device and taking it somebody else may take it.
                if error.errno != errno.EBUSY or attempt == _TRIES - 1:
                    raise
                continue
            return name, descriptor
    finally:
        os.close(control)
    raise AssertionError("the last attempt returns or raises")


def _configuration(image: int) -> bytes:
    # struct loop_config: the file, and in its loop_info64 flags and a name to be shown.
    info = (*[0] * 5, 0, 0, 0, _AUTOCLEAR | _DIRECT_IO, b"ajuste disk", b"", b"", 0, 0)
    return _CONFIG.pack(image, 0, *info, *[0] * 8)
