"""The user who called Ajuste on this machine, who owns the processes of a trial, and their environment."""

from __future__ import annotations

import ctypes
import os
import pwd
import re
import shutil
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ajuste.catalogue.loader import Catalogue
from ajuste.executor.host.availability import HostMachine, files_in, why_not_writable
from ajuste.machine.home import WORKLOADS, as_root, native_program
from ajuste.machine.session import started_ticks
from ajuste.model.caller import SUDO_HINT, calling_ids, groups_of
from ajuste.model.capability import asked_here
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelVersion
from ajuste.model.plan import Command, Location, Plan, Ready, ReadyCommand, User, Write
from ajuste.model.tunable import Tunable
from ajuste.study.site import Site

SERVICES: Final = tuple(Path(f"/var/tmp/ajuste-services{n}") for n in ("", *(f".{n}" for n in range(1, 10))))  # noqa: S108
"""Directories of users' services, with the UID appended: each user has the first that nobody else has taken."""
ROOTS_SERVICES: Final = Path("/var/lib/ajuste-services/uid")
"""The directory of root's services, with the UID appended, in which only root can make one."""
_INTERNAL = (b"AJUSTE_", b"SUDO_")
# Ports of clients begin here (net.ipv4.ip_local_port_range).
_LAST_PORT = 32768
# A byte that is not UTF-8 is this plus its value in a plan.
_BYTES = 0x10FF00


AGENTS: Final = Path("/var/tmp/ajuste-agent")  # noqa: S108 - made anew, or refused
"""The working directory of an agent's commands."""

_GROUP: Final = re.compile(r"ajuste-(?:session-(?P<owner>\d+)-(?P<ticks>\d+)|(?P<pid>\d+)-.+)")

LAST_LINES: Final = 15
"""Maximum number of lines of output that are shown of a failed build."""

_OF_AJUSTE: Final = ("AJUSTE_", "SUDO_")

# Variables that lead git to a certain repository (`git rev-parse --local-env-vars`): a hook that calls Ajuste has them,
# and a checkout must not land there.
_OF_A_REPOSITORY: Final = frozenset(
    (
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_COMMON_DIR",
        "GIT_CONFIG",
        "GIT_CONFIG_COUNT",
        "GIT_CONFIG_PARAMETERS",
        "GIT_DIR",
        "GIT_GRAFT_FILE",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_NAMESPACE",
        "GIT_NO_REPLACE_OBJECTS",
        "GIT_OBJECT_DIRECTORY",
        "GIT_PREFIX",
        "GIT_QUARANTINE_PATH",
        "GIT_REPLACE_REF_BASE",
        "GIT_SHALLOW_FILE",
        "GIT_WORK_TREE",
    )
)

_SUBREAPER: Final = 36
_ENDS_WITHIN_S: Final = 10.0


def host_site() -> Site:
    """Return this machine, as the user who calls Ajuste sees it."""
    return Site(
        bundled=str(native_program(WORKLOADS)),
        directory=str(AGENTS if works_for_agent() else Path.cwd()),
        in_place=True,
        user=invoking_user(),
        cpus=frozenset(os.sched_getaffinity(0)),
        uid=os.geteuid(),
        services=str(services_place()),
        free_port=free_port,
        find_user=user_here_called,
    )


def invoking_user(environment: Mapping[str, str] = os.environ) -> User | None:
    """Return whose commands are, if not ours: under sudo, the user who called it (``SUDO_UID``, ``SUDO_GID``; sudo(8)).

    ``None`` without root, without sudo, and where root called it. Commands of an agent are nobody's. Raises
    RequestError for anything else than two numbers of a user that the machine knows: a command that is not root's must
    never run as root.
    """
    if os.geteuid() != 0:
        return None
    if works_for_agent(environment):
        nobody = pwd.getpwnam("nobody")
        return User(uid=nobody.pw_uid, gid=nobody.pw_gid, groups=(nobody.pw_gid,))
    ids = calling_ids(environment)
    if ids is None or ids[0] == 0:
        return None
    uid, gid = ids
    try:
        return User(uid=uid, gid=gid, groups=groups_of(uid, gid))
    except KeyError:
        raise RequestError(
            f"SUDO_UID = {uid}: user not found; cannot run your commands with the user's groups",
            hint=SUDO_HINT,
        ) from None


def works_for_agent(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether this process carries out what an agent asked for."""
    return asked_here(environment=environment).asker == "agent"


@contextmanager
def agents_directory(place: Path = AGENTS) -> Iterator[None]:
    """Make an empty directory of the user nobody for an agent's commands, and remove it at the end.

    Raises:
        RequestError: Another user made the directory.
    """
    user = invoking_user() if works_for_agent() else None
    if user is None:
        yield
        return
    try:
        if place.lstat().st_uid in (0, user.uid):
            _removed(place) if _is_user_directory(place, place.lstat().st_uid) else place.unlink()
        place.mkdir(mode=0o700)
    except FileNotFoundError:
        place.mkdir(mode=0o700)
    except FileExistsError:
        raise RequestError(f"{place} belongs to another user", hint=f"remove it: rm -r {place}") from None
    os.chown(place, user.uid, user.gid, follow_symlinks=False)
    try:
        yield
    finally:
        shutil.rmtree(place, ignore_errors=True)


def user_here_called(name: str) -> User | None:
    """Return the user of this machine called ``name``, if not the agent's. Raises RequestError for an unknown one, or
    whose processes this user may not start.
    """
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        raise RequestError(
            f'user "{name}" not found on this machine', hint="choose a user of `getent passwd`"
        ) from None
    if entry.pw_uid == os.geteuid():
        return None
    if os.geteuid() != 0:
        raise RequestError(f'running a service as "{name}" needs root on this machine', hint=f"run {as_root()}")
    return User(uid=entry.pw_uid, gid=entry.pw_gid, groups=groups_of(entry.pw_uid, entry.pw_gid))


def free_port(first: int) -> int:
    """Return the first TCP port from ``first`` on that nobody listens to. Raises RequestError where all are in use."""
    for port in range(first, _LAST_PORT):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with suppress(OSError):
                probe.bind(("127.0.0.1", port))
                return port
    raise RequestError(
        f"no free port between {first} and {_LAST_PORT - 1}",
        hint="free one of them, or write the number of another port",
    )


def user_here() -> str:
    """Return who Ajuste itself is, in words."""
    uid = os.geteuid()
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def callers_environment(user: User | None, block: bytes | None = None) -> dict[str, str]:
    """Return the environment of commands of ``user``, as a plan has it: that of Ajuste's start, in its order.

    Without Ajuste's own variables and those of sudo; ``block`` is as the kernel keeps it. ``os.environ`` is not asked:
    the interpreter and the libraries that Ajuste imports set variables there.
    """
    return {plan_text(name): plan_text(value) for name, value in callers_variables(user, block).items()}


def callers_variables(user: User | None, block: bytes | None = None) -> dict[bytes, bytes]:
    """Return ``callers_environment`` as the system has it, for programs that Ajuste itself starts."""
    if block is None:
        try:
            block = Path("/proc/self/environ").read_bytes()
        except OSError:
            block = b"".join(name + b"=" + value + b"\0" for name, value in os.environb.items())
    variables = _variables(block)
    inherited = {name: value for name, value in variables.items() if not name.startswith(_INTERNAL)}
    if works_for_agent():
        path = inherited.get(b"PATH", os.fsencode(os.defpath))
        return {b"HOME": os.fsencode(AGENTS), b"LANG": b"C.UTF-8", b"PATH": path}
    if user is None:
        return inherited
    try:
        entry = pwd.getpwuid(user.uid)
    except KeyError:
        return inherited
    name = os.fsencode(entry.pw_name)
    return inherited | {b"HOME": os.fsencode(entry.pw_dir), b"USER": name, b"LOGNAME": name}


def plan_text(text: bytes) -> str:
    """Bytes as a text of a plan's environment (see ``model.plan.Command``). A text that has such characters itself is
    distinguished from them: theirs are bytes like any other.
    """
    decoded = text.decode("utf-8", "surrogateescape")
    if decoded.isascii():
        return decoded
    return "".join(map(_plan_character, decoded))


def _plan_character(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return chr(_BYTES + (code & 0xFF))
    if code >= _BYTES + 0x80:
        return "".join(chr(_BYTES + byte) for byte in character.encode())
    return character


def _variables(block: bytes) -> dict[bytes, bytes]:
    variables: dict[bytes, bytes] = {}
    for variable in block.split(b"\0"):
        name, equals, value = variable.partition(b"=")
        if name and equals:
            variables.setdefault(name, value)
    return variables


# Additions to a plan for this machine that only its execution has, and no record: the caller's environment, and the
# values that the kernel changes along with a tunable.


class Completion:
    """The completion of plans for this machine with a kernel of ``version``; facts are cached, so that it is quick."""

    def __init__(self, catalogue: Catalogue, version: KernelVersion) -> None:
        self._catalogue = catalogue
        self._version = version
        self._machine = HostMachine()
        self._companions: dict[str, tuple[Location, ...]] = {}
        self._environments: dict[User | None, dict[str, str]] = {}

    def complete(self, plan: Plan) -> Plan:
        return plan.model_copy(
            update={
                "writes": tuple(map(self.completed, plan.writes)),
                "before": tuple(map(self._command, plan.before)),
                "background": tuple(map(self._command, plan.background)),
                "ready": tuple(map(self._ready, plan.ready)),
                "workload": self._command(plan.workload) if plan.workload is not None else None,
                "after": tuple(map(self._command, plan.after)),
            }
        )

    def _ready(self, ready: Ready) -> Ready:
        return ReadyCommand(command=self._command(ready.command)) if isinstance(ready, ReadyCommand) else ready

    def _command(self, command: Command) -> Command:
        user = command.user
        if user not in self._environments:
            self._environments[user] = callers_environment(user)
        return command.model_copy(update={"environment": self._environments[user] | command.environment})

    def completed(self, write: Write) -> Write:
        """Return ``write`` with everything that the kernel changes along."""
        if write.tunable not in self._companions:
            try:
                tunable = self._catalogue.find_tunable(write.tunable)
            except RequestError:
                more: tuple[Location, ...] = ()
            else:
                more = self._catalogue.companions(tunable, self._version, files_in, self._can_change)
            self._companions[write.tunable] = more
        more = self._companions[write.tunable]
        return write.model_copy(update={"companions": tuple(dict.fromkeys((*write.companions, *more)))})

    def _can_change(self, tunable: Tunable) -> bool:
        return not why_not_writable(self._catalogue, tunable, self._machine)


def services_place(places: Sequence[Path] = SERVICES) -> Path:
    """Return where services have their directories, without the number of their user."""
    uid = os.geteuid()
    if uid == 0:
        return ROOTS_SERVICES
    directories = {place: Path(f"{place}-{uid}") for place in places}
    free = (p for p, path in directories.items() if _is_user_directory(path, uid) or not os.path.lexists(path))
    return next(free, places[0])


@contextmanager
def services_directories(users: Iterable[User | None], place: Path = ROOTS_SERVICES) -> Iterator[None]:
    """Make a directory for each of ``users`` beside those of root's services, where users cannot make one."""
    owners = {user.uid: user.gid for user in (owner or User(uid=0, gid=0) for owner in users)}
    if not owners or os.geteuid() != 0:
        yield
        return
    place.parent.mkdir(exist_ok=True)
    place.parent.chmod(0o711)
    for uid, gid in owners.items():
        directory = Path(f"{place}-{uid}")
        directory.mkdir(mode=0o700, exist_ok=True)
        os.chown(directory, uid, gid)
    try:
        yield
    finally:
        for directory in (*(Path(f"{place}-{uid}") for uid in owners), place.parent):
            with suppress(OSError):  # It is gone, or not empty.
                directory.rmdir()


def remove_left_services(places: Sequence[Path] = (*SERVICES, ROOTS_SERVICES)) -> tuple[Path, ...]:
    """Remove what services of experiments that were killed left: our directory, and as root those of all users. Call it
    only while no experiment runs. A directory that is not its user's own is left alone.
    """
    mine = os.geteuid()
    return tuple(
        directory
        for place in places
        for directory in place.parent.glob(f"{place.name}-*")
        if (uid := re.fullmatch(r"\d{1,10}", directory.name.removeprefix(f"{place.name}-")))
        and mine in (0, int(uid[0]))
        and _is_user_directory(directory, int(uid[0]))
        and _removed(directory)
    )


def remove_left_groups(root: Path = Path("/sys/fs/cgroup")) -> None:
    """Remove control groups of sessions that have ended, with all processes in them and in the groups that a root
    workload made there. Call it only while no agent of ours is at work. Sessions of containers go on: their agents
    have other numbers there.
    """
    groups = [(Path(place) / name, name) for place, names, _ in os.walk(root) for name in names]
    matches = [(group, match) for group, name in groups if (match := _GROUP.fullmatch(name))]
    alive = _owners() if matches else frozenset()
    left = [group for group, match in matches if not _goes_on(match, alive)]
    for group in left:
        inner = [Path(place) for place, _, _ in os.walk(group, topdown=False)]
        for nested in inner:
            _end_members(nested)
        for nested in inner:
            with suppress(OSError):
                nested.rmdir()


def _owners() -> frozenset[tuple[int, int]]:
    owners = set()
    for place in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError):
            numbers = re.search(r"^NSpid:(.*)$", place.read_text(), re.MULTILINE)
            ticks = started_ticks(int(place.parent.name))
            owners |= {(int(number), ticks) for number in (numbers[1].split() if numbers else ()) if ticks}
    return frozenset(owners)


def _goes_on(group: re.Match[str], alive: AbstractSet[tuple[int, int]]) -> bool:
    if group["ticks"]:
        return (int(group["owner"]), int(group["ticks"])) in alive
    return any(pid == int(group["pid"]) for pid, _ in alive)


def _end_members(group: Path) -> None:
    for _ in range(100):
        try:
            members = [int(pid) for pid in (group / "cgroup.procs").read_text().split()]
        except (OSError, ValueError):
            return
        if not members or 0 in members:  # 0 stands for a process outside of this container.
            return
        for pid in members:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def _is_user_directory(directory: Path, uid: int) -> bool:
    try:
        status = directory.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == uid


def _removed(directory: Path) -> bool:
    # Symbolic links are not followed.
    shutil.rmtree(directory, ignore_errors=True)
    return not directory.exists()


# Commands that the user who called Ajuste would run here by hand: git, and builds.


@dataclass(frozen=True)
class Caller:
    """The user who called Ajuste and who runs git and builds. ``user`` is ``None`` if Ajuste runs as that user."""

    user: User | None

    @property
    def environment(self) -> dict[str, str]:
        """Return the caller's environment, without what is Ajuste's, sudo's and of another repository."""
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(_OF_AJUSTE) and name not in _OF_A_REPOSITORY
        }
        if self.user is None:
            return inherited
        entry = pwd.getpwuid(self.user.uid)
        return inherited | {"HOME": entry.pw_dir, "USER": entry.pw_name, "LOGNAME": entry.pw_name}

    @property
    def options(self) -> dict[str, Any]:
        """Return the options for ``subprocess``."""
        if self.user is None:
            return {}
        return {"user": self.user.uid, "group": self.user.gid, "extra_groups": self.user.groups}

    def give(self, directory: Path) -> None:
        """Make the caller the owner of a new ``directory``."""
        if self.user is not None:
            os.chown(directory, self.user.uid, self.user.gid, follow_symlinks=False)


def finished(
    command: Sequence[str], there: Path, out: int, environment: Mapping[str, str], options: Mapping[str, Any]
) -> int:
    """Return the exit code of ``command``. What it started ends with it, also what has left its session."""
    with all_ended():
        return _code(command, there, out, environment, options)


@contextmanager
def all_ended() -> Iterator[None]:
    """Kill in the end what commands of the block have left running, wherever it went: orphans become children of this
    process (PR_SET_CHILD_SUBREAPER, prctl(2)), and those of another session are no children of ours.
    """
    libc = ctypes.CDLL(None)
    before = _children()
    libc.prctl(_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        until = time.monotonic() + _ENDS_WITHIN_S
        while (left := [pid for pid in _children() - before if _is_elsewhere(pid)]) and time.monotonic() < until:
            for pid in left:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, os.WNOHANG)
            time.sleep(0.002)
        libc.prctl(_SUBREAPER, 0, 0, 0, 0)


def _children() -> set[int]:
    # The kernel lists children by the thread that started them (proc_pid_task_tid_children(5)).
    pids: set[int] = set()
    for children in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            pids |= {int(pid) for pid in children.read_text().split()}
    return pids


def _is_elsewhere(pid: int) -> bool:
    try:
        return os.getsid(pid) != os.getsid(0)
    except OSError:
        return False


def _code(
    command: Sequence[str], there: Path, out: int, environment: Mapping[str, str], options: Mapping[str, Any]
) -> int:
    process = subprocess.Popen(
        command,
        cwd=there,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        **options,
    )
    try:
        return process.wait()
    except BaseException:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
