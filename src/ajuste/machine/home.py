"""Home of Ajuste: its kind of installation, and the directories of its files.

Under ``AJUSTE_HOME``, or else in the XDG directories; the store where ``AJUSTE_STORE`` says.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import pwd
import re
import shlex
import shutil
import struct
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

from ajuste.machine.files import require_trusted, user_name
from ajuste.model.caller import calling_ids
from ajuste.model.error import RequestError
from ajuste.model.plugins import Group, load_plugin, plugins
from ajuste.model.wording import shell_line

# How this Ajuste was installed: from where it runs, what its build recorded, and what mends or completes it.


PACKAGE: Final = Path(__file__).parents[1]
TREE: Final = PACKAGE.parent.parent
"""The source tree, where the package is part of one."""
NATIVE: Final = PACKAGE / "native"
"""The part of a wheel that is not Python: programs, and the record of the build."""
RECORD: Final = NATIVE / "build.json"
OPT: Final = Path("/opt/ajuste")
"""The environment of the Debian package."""
FOR_USER: Final = (".local", "lib", "ajuste")
"""The environment of setup/install for one user: the last directories of its path."""
FOR_ALL: Final = Path("/usr/local/lib/ajuste")
"""The environment of setup/install as root, for all users."""

_REINSTALL: Final = "sudo apt-get install --reinstall ./ajuste_VERSION_ARCHITECTURE.deb"

SUDO_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The search path of sudo on Debian (``secure_path`` of sudoers(5))."""

Way = Literal["tree", "deb", "pipx", "uv", "pip", "setup/install"]

BOOT_STATE: Final = "state.json"
"""The file in ``Home.reboots`` that is there until an experiment across reboots has ended."""

EXTRAS: Final = MappingProxyType(
    {
        "advise": ("ajuste_advise",),
        "analyse": ("ajuste_analyse",),
        "boots": ("ajuste_boots",),
        "ci": ("ajuste_ci",),
        "cluster": ("ajuste_fleet", "cryptography", "distributed"),
        "course": ("ajuste_course", "babel", "nbformat", "typst"),
        "doctor": ("ajuste_doctor",),
        "guest": ("ajuste_guest", "debian", "elftools", "pysequoia", "qemu"),
        "hunt": ("ajuste_hunt",),
        "kernels": ("ajuste_kernels", "kconfiglib"),
        "live": ("ajuste_live",),
        "mcp": ("ajuste_lab", "mcp"),
        "notebook": ("pandas", "polars"),
        "perfetto": ("ajuste_guest", "perfetto"),
        "pictures": ("ajuste_share", "matplotlib"),
        "postgresql": ("psycopg",),
        "profiles": ("ajuste_profiles",),
        "programs": ("ajuste_programs",),
        "search": ("ajuste_search", "cmaes", "optuna", "pydoe", "sklearn"),
        "serve": ("ajuste_lab", "starlette", "uvicorn"),
        "share": ("ajuste_share",),
    }
)
"""The optional parts, with the modules that only they have."""

KINDS: Final = MappingProxyType({"ablation": "search", "live": "live", "refine": "search", "search": "search"})
"""The kinds of experiments that other packages have, with the optional part that each belongs to."""

# `e_machine` of an ELF file (elf.h), as uname(2) names the machine.
_MACHINES: Final = MappingProxyType({3: "i386", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv64"})

_LOG: Final = logging.getLogger(__name__)
_SQLITE: Final = "sqlite:///"
_ANOTHER: Final = "set AJUSTE_HOME to another directory; under sudo: sudo AJUSTE_HOME=DIRECTORY ajuste …"
AGENT = "ajuste-agent"
WORKLOADS = "ajuste-workloads"
SERVICE = "ajuste-service"
WATCH = "ajuste-watch"

LENS = "libajuste_lens.so"
"""A library of QEMU's, which is found like a program."""

_BUILT = TREE / "target" / "x86_64-unknown-linux-gnu" / "release"


def ajuste_version() -> str:
    """Return the installed version; ``unknown`` in a bare tree."""
    from importlib.metadata import PackageNotFoundError, version  # It takes long to load, and few commands say it.

    try:
        return version("ajuste")
    except PackageNotFoundError:
        return "unknown"


def in_tree() -> bool:
    """Return whether it runs from its source tree."""
    return (TREE / "Cargo.toml").is_file()


def way() -> Way:
    """Return which program manages the environment that it runs in."""
    prefix = Path(sys.prefix)
    if in_tree():
        return "tree"
    if prefix == OPT:
        return "deb"
    if (prefix / "pipx_metadata.json").is_file():
        return "pipx"
    if prefix == FOR_ALL or prefix.parts[-3:] == FOR_USER:
        return "setup/install"
    return "uv" if find_spec("pip") is None else "pip"


def command_to_add(extra: str) -> str:
    """Return the command that installs an optional part, without a package index for Ajuste itself."""
    wanted = shlex.quote(f"ajuste[{extra}]")
    return {
        "tree": "make setup",
        "deb": _REINSTALL,
        "pipx": f"pipx runpip ajuste install {wanted}",
        "uv": f"uv pip install --python {shlex.quote(sys.prefix)} {wanted}",
        "pip": f"{shlex.quote(sys.executable)} -I -m pip install {wanted}",
        "setup/install": f"sh install 'WHEEL[{extra}]'",
    }[way()]


def how_to_mend() -> str:
    """Return the hint for a missing or damaged part of the installation, with the command."""
    if in_tree():
        return "build it with: make setup"
    return (
        "install Ajuste again: "
        + {
            "deb": _REINSTALL,
            "pipx": "pipx install --force WHEEL",
            "uv": f"uv pip install --python {shlex.quote(sys.prefix)} --reinstall WHEEL",
            "pip": f"{shlex.quote(sys.executable)} -I -m pip install --force-reinstall WHEEL",
            "setup/install": "sh install WHEEL",
        }[way()]
    )


def as_root(words: Sequence[str] | None = None, path: str = SUDO_PATH) -> str:
    """Return the command line that runs ``ajuste`` with ``words`` as root; without them, this very command.

    The program's whole path is given where sudo does not find it by name; sudo passes no environment on.
    """
    program = Path(shutil.which(sys.argv[0]) or sys.argv[0]).absolute()
    by_name = shutil.which("ajuste", path=path)
    name = "ajuste" if by_name is not None and Path(by_name).resolve() == program.resolve() else str(program)
    variables = [f"{key}={os.environ[key]}" for key in ("AJUSTE_HOME", "AJUSTE_NATIVE") if key in os.environ]
    command = shlex.join([*variables, name, *(sys.argv[1:] if words is None else words)])
    return shell_line(f"su -c {shlex.quote(command)}" if shutil.which("sudo") is None else f"sudo {command}")


def require_extra(extra: str) -> None:
    """Raise RequestError if an optional part is not installed, without loading any of it."""
    for module in EXTRAS[extra]:
        if find_spec(module) is None:
            raise _lacking(module, extra)


def plugin_of(extra: str, group: Group, name: str) -> Any:
    """Return the plug-in that an optional part of Ajuste has. Raises RequestError with the command that installs it."""
    if name not in plugins(group):
        require_extra(extra)
    return load_plugin(group, name)


def lacking(error: ModuleNotFoundError) -> RequestError | None:
    """Return the message for a module that could not be loaded, ``None`` for a fault in the source tree."""
    module = (error.name or "").partition(".")[0]
    extra = next((extra for extra, modules in EXTRAS.items() if module in modules), None)
    if extra is not None and find_spec(module) is None:
        return _lacking(module, extra)
    if in_tree() and module.partition("_")[0] in ("", "ajuste"):
        return None
    return RequestError(f"Python module {error.name or error} not found; Ajuste requires it", hint=how_to_mend())


def _lacking(module: str, extra: str) -> RequestError:
    message = f"{module} is not installed; it belongs to the optional part {extra} of Ajuste"
    return RequestError(message, hint=f"install it: {command_to_add(extra)}")


def recorded() -> dict[str, Any]:
    """Return what the wheel's build recorded: commit, and SHA-256 of native programs; empty in a source tree."""
    try:
        record = json.loads(RECORD.read_bytes())
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def require_runnable(program: Path) -> None:
    """Raise RequestError for a program of another kind of machine, and for a file that is no whole program."""
    try:
        with program.open("rb") as file:
            head = file.read(20)
    except OSError as error:
        raise RequestError(f"{program}: {error.strerror}", hint=how_to_mend()) from error
    if head[:2] == b"#!":
        return
    if head[:4] != b"\x7fELF" or len(head) < 20:
        raise RequestError(f"{program} is not a program of Linux", hint=how_to_mend())
    (number,) = struct.unpack(">H" if head[5] == 2 else "<H", head[18:20])
    expected, actual = platform.machine(), _MACHINES.get(number, f"another machine (ELF {number})")
    if actual != expected:
        raise RequestError(
            f"{program} is a program for {actual}; expected one for {expected}, this machine",
            hint=f"install the wheel for {expected}: ajuste-VERSION-py3-none-manylinux_2_17_{expected}.whl",
        )


def c_library() -> str | None:
    """Return the name and version of this machine's C library, such as ``glibc 2.36``, ``None`` if unknown."""
    try:
        return os.confstr("CS_GNU_LIBC_VERSION")
    except (ValueError, OSError):
        return None


def require_c_library(library: Path) -> None:
    """Raise RequestError where a shared ``library`` needs a newer C library than this machine has. All programs are
    static: only what QEMU loads has such a need.
    """
    needed = max(_versions(rb"GLIBC_(\d+)\.(\d+)", library.read_bytes()), default=(0, 0))
    here = c_library()
    if needed > max(_versions(rb"^glibc (\d+)\.(\d+)", (here or "").encode()), default=(0, 0)):
        raise RequestError(
            f"{library.name}, which QEMU loads, requires glibc {needed[0]}.{needed[1]} or later; this machine has "
            f"{here or 'another C library'}",
            hint="name metrics that do not count instructions, or use a newer release of the distribution",
        )


def _versions(pattern: bytes, content: bytes) -> list[tuple[int, int]]:
    return [(int(major), int(minor)) for major, minor in re.findall(pattern, content)]


@dataclass(frozen=True)
class Home:
    """``data`` is worth keeping (the store, reports), ``cache`` can be fetched or made again, ``state`` is of this
    machine.

    Under sudo ``data`` is the caller's; cache and state are root's, because root carries out what is in them.
    Directories are made on the first write, with ``machine.files.make_directory``.
    """

    data: Path
    cache: Path
    state: Path
    shared_store: str = ""
    """The URL of a store elsewhere, if one is used."""
    callers_state: Path | None = None
    """Under sudo, where the caller without root looks for ``state``."""

    @property
    def store_url(self) -> str:
        """Return the URL of the store."""
        return self.shared_store or f"sqlite:///{self.data / 'store.sqlite'}"

    @property
    def reports(self) -> Path:
        return self.data / "reports"

    @property
    def kernels(self) -> Path:
        return self.cache / "kernels"

    @property
    def booted(self) -> Path:
        """Machines that have booted."""
        return self.cache / "booted"

    @property
    def followed(self) -> Path:
        """State that a person follows, also without root: nothing is carried out because of it."""
        return self.callers_state or self.state

    @property
    def journals(self) -> Path:
        """Return what undoes the changes of experiments on this machine, as long as these go on."""
        return self.state / "journals"

    @property
    def reboots(self) -> Path:
        """Return the state of an experiment across reboots of this machine."""
        return self.state / "reboots"

    @property
    def cluster_keys(self) -> Path:
        """Return the default directory of a cluster's keys."""
        return self.data / "cluster-keys"

    @property
    def sessions(self) -> Path:
        """Temporary directories of running machines: one for each, removed whatever happens."""
        return self.state / "sessions"


def home(environment: Mapping[str, str] = os.environ) -> Home:
    """Return the home that ``environment`` names.

    Under sudo, runs and reports are kept in the caller's home. Root with the HOME of another user and without sudo uses
    its own. Raises RequestError for one that another user owns or can change. Source: XDG Base Directory Specification
    0.8 for the defaults.
    """
    paths = _named_by(environment)
    named = [Path(root)] if (root := environment.get("AJUSTE_HOME")) else []
    roots = [paths.data / "store.sqlite", paths.reports, paths.cluster_keys, paths.followed / "live"]
    if paths.shared_store.startswith(_SQLITE):
        roots.append(Path(paths.shared_store.removeprefix(_SQLITE)))
    shared = roots if os.geteuid() == 0 else []  # Root writes nothing where another user leads it.
    for directory in (*named, paths.data, paths.cache, paths.state, paths.journals, paths.sessions, *shared):
        require_trusted(directory.expanduser(), environment)
    where = {name: str(getattr(paths, name)) for name in ("data", "cache", "state")}
    _LOG.info("configuration read", extra=where | {"shared_store": bool(paths.shared_store)})
    return paths


def _named_by(environment: Mapping[str, str]) -> Home:
    root, store = environment.get("AJUSTE_HOME"), environment.get("AJUSTE_STORE", "")
    if root:
        base = Path(root).expanduser().absolute()
        return Home(base / "data", base / "cache", base / "state", store)
    paths = _of_user(os.geteuid(), environment, store)
    caller = calling_ids(environment) if os.geteuid() == 0 else None
    if caller is None or caller[0] == 0:
        return paths
    callers = _of_user(caller[0], environment, store)
    # Links are followed here once: what they lead to is the caller's, or refused.
    data, state = callers.data.resolve(), callers.state.resolve()
    for directory in (data, state):
        there = next(parent for parent in (directory, *directory.parents) if parent.exists())
        why = "" if _owner_uid(there) == caller[0] else f"does not belong to {user_name(caller[0])}, who called sudo"
        if why or not os.access(there, os.W_OK):
            raise RequestError(
                f"cannot store files in {directory}: {there} {why or 'is closed to root'}", hint=_ANOTHER
            )
    return replace(paths, data=data, callers_state=state)


def _of_user(uid: int, environment: Mapping[str, str], store: str) -> Home:
    # As root, HOME and the XDG variables count only for the owner of that HOME: sudo may keep them.
    named = Path(environment["HOME"]) if environment.get("HOME") else None
    counts = named is not None and (os.geteuid() != 0 or _owner_uid(named) == uid)
    user = named if named is not None and counts else _user_home(uid)

    def xdg(name: str, default: str) -> Path:
        value = environment.get(name, "") if counts else ""
        return (Path(value) if Path(value).is_absolute() else user / default) / "ajuste"

    return Home(
        xdg("XDG_DATA_HOME", ".local/share"),
        xdg("XDG_CACHE_HOME", ".cache"),
        xdg("XDG_STATE_HOME", ".local/state"),
        store,
    )


def _user_home(uid: int) -> Path:
    try:
        folder = Path(pwd.getpwuid(uid).pw_dir)
    except KeyError:
        folder = None
    if folder is None or not folder.is_dir():
        raise RequestError(f"home directory of {user_name(uid)} not found; cannot store results", hint=_ANOTHER)
    return folder


def _owner_uid(directory: Path) -> int:
    # A directory that does not exist yet will be ours; -1 stands for an unknown owner.
    try:
        return directory.stat().st_uid
    except FileNotFoundError:
        return os.geteuid()
    except OSError:
        return -1


# The native programs: where they are on this machine.


def native_program(name: str, environment: Mapping[str, str] = os.environ) -> Path:
    """Return the absolute path of a native program: in the directory ``AJUSTE_NATIVE`` (only there, if it is set), the
    installed package or the build directory of a source tree. Raises RequestError where it is missing, or cannot run on
    this machine.
    """
    chosen = environment.get("AJUSTE_NATIVE")
    defaults = [NATIVE, _BUILT] if in_tree() else [NATIVE]
    places = [Path(chosen).expanduser().absolute()] if chosen else defaults
    for place in places:
        program = place / name
        if program.is_file() and os.access(program, os.X_OK):
            require_runnable(program)
            return program
    searched = ", ".join(str(place) for place in places)
    raise RequestError(
        f"program {name} not found in {searched}",
        hint="set AJUSTE_NATIVE to its directory" if chosen else how_to_mend(),
    )


# Programs of this machine, and the shared libraries that they load by themselves.


def is_library(file: Path) -> bool:
    """Return whether it is such as ``libc.so.6``: loaded, not started, and so not executable as a rule."""
    return ".so" in file.suffixes


def find_program(name: str) -> str | None:
    """Return the absolute path of a program as ``shutil.which``, of a library the path that names it."""
    file = Path(name)
    if file.is_absolute() and is_library(file):
        return name if file.is_file() else None
    return shutil.which(name)
