"""Where Ajuste keeps things: under ``AJUSTE_HOME``, or else in the XDG directories; the store where ``AJUSTE_STORE``
says.
"""

from __future__ import annotations

import logging
import os
import pwd
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ajuste.machine.files import require_trusted, user_name
from ajuste.machine.installation import NATIVE, TREE, how_to_mend, in_tree, require_runnable
from ajuste.model.caller import calling_ids
from ajuste.model.error import RequestError

_LOG: Final = logging.getLogger(__name__)
_SQLITE: Final = "sqlite:///"
_ANOTHER: Final = "set AJUSTE_HOME to another directory; under sudo: sudo AJUSTE_HOME=DIRECTORY ajuste …"


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
        """Return where the keys of a cluster are, if nothing else is said."""
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


# The native programs, and the sources of kernel modules: where they are on this machine.


AGENT = "ajuste-agent"
WORKLOADS = "ajuste-workloads"
SERVICE = "ajuste-service"
WATCH = "ajuste-watch"
LENS = "libajuste_lens.so"
"""A library of QEMU's, which is found like a program."""
_MODULES = {"ajuste_linpack": "linpack"}

_BUILT = TREE / "target" / "x86_64-unknown-linux-gnu" / "release"


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


def module_source(name: str) -> Path:
    """Return the source directory of a bundled kernel module. Raises RequestError where it is missing."""
    places = [parent / "module" / _MODULES[name] for parent in (NATIVE, TREE / "native")]
    folder = next((place for place in places if (place / "Kbuild").is_file()), None)
    if folder is None:
        raise RequestError(f"sources of the kernel module {name} not found in {places[in_tree()]}", hint=how_to_mend())
    return folder


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
