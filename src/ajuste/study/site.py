"""The site where commands are run: what they find there, and whose they are.

The study's own files lie beside the study file, and are taken along under ``/study``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Final, Literal

from ajuste.model.error import RequestError
from ajuste.model.plan import Scratch, User
from ajuste.study.job import Argv, ScratchTable
from ajuste.study.problem import KeyPath as Keys
from ajuste.study.problem import Problem
from ajuste.study.schema import Study

# Directory where a guest has the study's own files; also the working directory then.
GUEST_DIRECTORY = "/study"

# Directory where a guest has the programs of BPF schedulers (sched_ext).
SCHEDULERS = "/ajuste/schedulers"

# User of the processes of a guest, unless the study says `as_root`.
GUEST_USER = User(uid=1000, gid=1000)

# Directory in which that user may write everywhere: the home, and the working directory where the study has no files of
# its own.
GUEST_HOME = "/tmp"  # noqa: S108 - of a guest

SERVICE = "ajuste-service"

# Directory where the trial sees it: one experiment is carried out at a time, and nobody else sees the mount.
MOUNT_POINT: Final = "/run/ajuste/scratch"

PREFIX: Final = "fs."

# Function from a level to arguments of mkfs.
Arguments = Callable[[str], tuple[str, ...]]

_EXT: Final = ("ext2", "ext3", "ext4")
_JOURNALLING_EXT: Final = ("ext3", "ext4")

# Options of mkfs for each type that is known: without a word, and whatever is on the device.
QUIETLY: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {**dict.fromkeys(_EXT, ("-q", "-F")), "xfs": ("-q", "-f"), "btrfs": ("-q", "-f"), "f2fs": ("-q", "-f")}
)

# Arguments of mkfs, by attribute and type of file system.
MAKE: Final[Mapping[tuple[str, str], Arguments]] = MappingProxyType(
    {
        **{("block_size", ext): lambda level: ("-b", level) for ext in _EXT},
        ("block_size", "xfs"): lambda level: ("-b", f"size={level}"),
        ("block_size", "btrfs"): lambda level: ("-s", level),
        **{("inode_size", ext): lambda level: ("-I", level) for ext in _EXT},
        ("inode_size", "xfs"): lambda level: ("-i", f"size={level}"),
        ("journal", "ext4"): lambda level: ("-O", "has_journal" if level == "1" else "^has_journal"),
        **{("journal_size_mib", ext): lambda level: ("-J", f"size={level}") for ext in _JOURNALLING_EXT},
        ("journal_size_mib", "xfs"): lambda level: ("-l", f"size={level}m"),
        ("lazy_init", "ext4"): lambda level: ("-E", f"lazy_itable_init={level},lazy_journal_init={level}"),
    }
)

# Mount options, by attribute and type of file system.
MOUNT: Final[Mapping[tuple[str, str], Callable[[str], str]]] = MappingProxyType(
    {
        **{("data", ext): lambda level: f"data={level}" for ext in _JOURNALLING_EXT},
        **{("commit_s", kind): lambda level: f"commit={level}" for kind in (*_JOURNALLING_EXT, "btrfs")},
        **{("barrier", ext): lambda level: f"barrier={level}" for ext in _JOURNALLING_EXT},
        **{("barrier", kind): lambda level: "barrier" if level == "1" else "nobarrier" for kind in ("btrfs", "f2fs")},
        ("delalloc", "ext4"): lambda level: "delalloc" if level == "1" else "nodelalloc",
        **{("atime", kind): str for kind in QUIETLY},
        **{
            ("discard", kind): lambda level: "discard" if level == "1" else "nodiscard"
            for kind in ("ext4", "xfs", "btrfs", "f2fs")
        },
    }
)


def study_files(study: Study) -> dict[str, Path]:
    """Return the files a study brings, by their name relative to the study file: those listed and its own programs."""
    directory = study_directory(study)
    return {name: directory / name for name in dict.fromkeys(name for _, name in _named(study))}


def study_directory(study: Study) -> Path:
    """Return the directory of the study's file; the current one if it has none."""
    return study.source.directory if study.source else Path()


def is_study_file(program: str) -> bool:
    """Return whether a program is a file of the study: it has a slash and is not absolute, as a shell would have it."""
    return "/" in program and not program.startswith("/")


def normal_name(name: str) -> str:
    """Return one name for ``./job`` and ``job``."""
    return str(PurePosixPath(name))


def check_files(study: Study) -> list[Problem]:
    """Yield files that are missing, or not below the study file's directory."""
    directory = study_directory(study)
    problems = [(path, _path_problem(directory, name, "file")) for path, name in _named(study)]
    for index, variant in enumerate(study.workload.variants):
        if variant.directory is not None:
            path = ("workload", "variant", index, "directory")
            problems.append((path, _path_problem(directory, variant.directory, "directory")))
    return [Problem(path, problem) for path, problem in problems if problem]


def _path_problem(directory: Path, name: str, what: Literal["file", "directory"]) -> str:
    there = directory / name
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts or (what == "file" and name == "."):
        return f'"{name}" is outside the directory of the study; expected a relative path without ".."'
    if not (there.is_file() if what == "file" else there.is_dir()):
        return f'{what} "{there}" not found'
    if not there.resolve().is_relative_to(directory.resolve()):
        return f'"{name}" leads outside the directory of the study; expected a {what} below it'
    return ""


def _named(study: Study) -> Iterator[tuple[Keys, str]]:
    for index, name in enumerate(study.workload.files):
        yield ("workload", "files", index), normal_name(name)
    workload = study.workload
    for place, service in enumerate(workload.services):
        for index, name in enumerate(service.files):
            yield ("workload", "service", place, "files", index), normal_name(name)
    commands: list[tuple[Keys, Argv | None]] = [
        (("workload", "command"), workload.command),
        *((("workload", "variant", n, "command"), variant.command) for n, variant in enumerate(workload.variants)),
        *((("workload", "background", n, "command"), load.command) for n, load in enumerate(workload.background)),
        *(
            (("workload", "service", n, field), words)
            for n, service in enumerate(workload.services)
            for field in ("command", "ready", "stop", "data")
            if isinstance(words := getattr(service, field), tuple)
        ),
        (("workload", "setup"), workload.setup),
        (("workload", "prepare"), workload.prepare),
        (("workload", "cleanup"), workload.cleanup),
    ]
    for path, command in commands:
        if command and is_study_file(command[0]):
            yield (*path, 0), normal_name(command[0])


def _user_of_guest(name: str) -> User | None:
    if name != "root":
        raise RequestError(f'user "{name}" not found in guests; expected root, or no user for an ordinary one')
    return None


@dataclass(frozen=True)
class Site:
    """A place where commands are run. ``bundled`` is the path of the program with Ajuste's own workloads. ``directory``
    is where a custom command works.

    ``in_place``: the study's own files are beside the study file, not in ``directory``; a command has the environment
    of the user who called Ajuste, so that none is written down. ``user`` owns the processes, if not the agent's.
    ``cpus`` are those that a process may run on, if the study does not say it itself. ``uid`` is the agent's.
    ``services`` is where services have their directories, with the number of their user after it. ``free_port`` gives
    the first port from one on that nobody uses, ``find_user`` who is called so, or raises RequestError. ``find_there``
    finds programs that are there without being brought, by name or path; ``None`` where there are none but what is
    brought.
    """

    bundled: str
    directory: str
    in_place: bool
    user: User | None = None
    cpus: frozenset[int] | None = None
    uid: int = 0
    services: str = f"{GUEST_HOME}/ajuste-services"
    free_port: Callable[[int], int] = int
    find_user: Callable[[str], User | None] = _user_of_guest
    find_there: Callable[[str], str | None] | None = None

    @property
    def service_program(self) -> str:
        """Return the path of the program that starts and stops services."""
        return str(PurePosixPath(self.bundled).with_name(SERVICE))


GUEST = Site(bundled="/ajuste/bin/ajuste-workloads", directory=GUEST_DIRECTORY, in_place=False, user=GUEST_USER)


# How the file system that is made for a trial is made and mounted: from the catalogue's fs.* tunables to mkfs and
# mount options.
#
# Sources: mke2fs(8), mkfs.xfs(8), mkfs.btrfs(8), mkfs.f2fs(8); mount(8), ext4(5), xfs(5), btrfs(5).


def scratch(table: ScratchTable, varied: Mapping[str, str], site: Site, program: Callable[[str], str]) -> Scratch:
    """Return the file system of a configuration that gives ``varied`` values, by attribute, to the ``table``'s options.

    ``program`` finds a program by its name, or raises RequestError. Raises RequestError for a type that is not known
    here, and for an option that it does not have.
    """
    options = {name.removeprefix(PREFIX): level for name, level in table.options.items()}
    values = {"type": table.filesystem, **options, **varied}
    kind = values.pop("type")
    if kind not in QUIETLY:
        raise RequestError(f'file system "{kind}" is not supported; expected one of {", ".join(QUIETLY)}')
    make = [program(f"mkfs.{kind}"), *QUIETLY[kind]]
    mount = [table.mount_options] if table.mount_options else []
    for attribute, level in values.items():
        if into_make := MAKE.get((attribute, kind)):
            make += into_make(level)
        elif into_mount := MOUNT.get((attribute, kind)):
            mount.append(into_mount(level))
        else:
            raise RequestError(f"{PREFIX}{attribute} is not supported by {kind}")
    return Scratch(
        filesystem=kind,
        make=(*make, *table.make_options),
        mount=MOUNT_POINT,
        options=",".join(mount),
        size_bytes=0 if table.device else table.size_mib << 20,
        directory="" if table.device else table.directory or (site.directory if site.in_place else GUEST_HOME),
        device=table.device or "",
        user=site.user,
    )
