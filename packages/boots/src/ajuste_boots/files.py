"""The files of a boot: written whole or not at all, on file systems that are mounted before anything is booted."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from ajuste.machine.files import sync_to_disk
from ajuste.machine.units import DIRECTORY, unit_assignment, unit_path, unit_word
from ajuste.model.error import RequestError

_IN_MEMORY: Final = ("tmpfs", "ramfs", "overlay", "squashfs", "9p", "virtiofs")

# File systems in whose files GRUB cannot write: it could not take its one boot back.
_READ_BY_GRUB_ONLY: Final = ("btrfs", "zfs", "zfs_member", "bcachefs")

LEAST_FREE: Final = 1 << 20
"""Bytes that /boot must have free."""

MARK: Final = "ajuste.boot"
"""The word of the command line that identifies a boot of an experiment. The kernel ignores it."""

CAME_UP: Final = "came-up"
"""The file that says, before anything else starts, that a kernel of the experiment came up."""

RESUMED: Final = "run/ajuste-resumed"
"""The file that says that the experiment goes on in this boot."""

DEADLINE: Final = "15min"
"""A boot of the experiment in which it does not go on by then is given up."""

_RESUME: Final = "ajuste-reboots.service"
_EARLY: Final = "ajuste-reboots-came-up.service"
_TIMER: Final = "ajuste-reboots-deadline.timer"
_DEADLINE: Final = "ajuste-reboots-deadline.service"
_WANTED: Final = {_RESUME: "multi-user.target", _EARLY: "sysinit.target", _TIMER: "sysinit.target"}


def write_durably(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Write ``path`` through a file beside it that takes its place, both on the disk. Raises OSError."""
    beside = path.with_name(f".{path.name}.ajuste")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise
    sync_to_disk(path.parent)


def remove_durably(path: Path) -> None:
    """Remove ``path``, if it is there. Raises OSError."""
    with suppress(FileNotFoundError):
        path.unlink()
        sync_to_disk(path.parent)


def read_content(path: Path) -> bytes | None:
    """Return the content, ``None`` where the file is missing. Raises OSError for anything else."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


class MountPoint(NamedTuple):
    """A line of /proc/mounts (proc_pid_mounts(5))."""

    source: str
    place: str
    kind: str
    options: tuple[str, ...]


def find_mount(path: Path, root: Path = Path("/")) -> MountPoint | None:
    """Return the file system that ``path`` is on, as the machine below ``root`` sees it."""
    try:
        lines = (root / "proc/mounts").read_text().splitlines()
    except OSError:
        return None
    inside = "/" + str(path.resolve().relative_to(root.resolve())) if path.is_relative_to(root) else str(path)
    mount: MountPoint | None = None
    for words in map(str.split, lines):
        if len(words) < 4:
            continue
        place = words[1].encode().decode("unicode_escape")
        if (inside == place or inside.startswith(f"{place.rstrip('/')}/")) and (
            mount is None or len(place) >= len(mount.place)
        ):
            mount = MountPoint(words[0], place, words[2], tuple(words[3].split(",")))
    return mount


def why_not_written_by_grub(directory: Path, root: Path = Path("/")) -> str:
    """Return why GRUB cannot write to a file of ``directory``, empty if it can. Source: GRUB manual 2.06, 15.2 "The
    GRUB environment block": no diskfilter (LVM, RAID), no ZFS or btrfs.
    """
    mount = find_mount(directory, root)
    if mount is None:
        return ""
    if mount.kind in _READ_BY_GRUB_ONLY:
        return f"it cannot write to the file system of {mount.place} ({mount.kind})"
    if mount.source.startswith(("/dev/mapper/", "/dev/dm-", "/dev/md")):
        return f"it cannot write to {mount.source}"
    return ""


def require_lasting(directory: Path, what: str, root: Path = Path("/")) -> None:
    """Raise RequestError if what is written to ``directory`` is gone after a reboot."""
    there = next(parent for parent in (directory, *directory.parents) if parent.exists())
    mount = find_mount(there, root)
    if mount is not None and mount.kind in _IN_MEMORY:
        raise RequestError(
            f"{what} is in {directory}, on {mount.kind}, which a reboot may lose",
            hint="set AJUSTE_HOME to a directory on a disk",
        )
    _require_writable(there, what, mount)


def require_room(directory: Path, what: str, root: Path = Path("/")) -> None:
    """Raise RequestError if no file can be added to ``directory``."""
    _require_writable(directory, what, find_mount(directory, root))
    free = os.statvfs(directory)
    if free.f_bavail * free.f_frsize < LEAST_FREE or (free.f_files and not free.f_favail):
        raise RequestError(
            f"{directory} is full: {free.f_bavail * free.f_frsize >> 10} KiB are free; expected at least 1 MiB",
            hint="remove old kernels, for example with: apt-get autoremove --purge",
        )


def _require_writable(directory: Path, what: str, mount: MountPoint | None) -> None:
    read_only = os.statvfs(directory).f_flag & os.ST_RDONLY
    if read_only or (mount is not None and "ro" in mount.options):
        raise RequestError(
            f"{what}: {directory} is on a read-only file system",
            hint=f"mount it writable: mount -o remount,rw {directory}",
        )


# The systemd units of an experiment: one goes on with it after each boot, two watch over boots of its own.
#
# They are written and linked as ``systemctl enable`` does it, and removed at the end.


def install_units(root: Path, state_directory: Path, command: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Write and link the units; ``state_directory`` is that of the experiment, ``command`` continues it with that
    ``environment``. Return whether anything changed. May be done twice. Raises OSError.
    """
    directory, changed = root / DIRECTORY, False
    for name, text in _texts(state_directory, command, environment).items():
        if read_content(directory / name) != text.encode():
            write_durably(directory / name, text.encode(), 0o644)
            changed = True
    for name, target in _WANTED.items():
        link = directory / f"{target}.wants" / name
        if not link.is_symlink():
            link.parent.mkdir(exist_ok=True)
            link.symlink_to(f"../{name}")
            sync_to_disk(link.parent)
            changed = True
    return changed


def delete_units(root: Path) -> bool:
    """Remove the units; return whether there were any. May be done twice. Raises OSError."""
    directory = root / DIRECTORY
    links = [directory / f"{target}.wants" / name for name, target in _WANTED.items()]
    units = [
        file
        for file in [*links, *(directory / name for name in (_TIMER, _DEADLINE, _EARLY, _RESUME))]
        if file.is_symlink() or file.exists()
    ]
    for file in units:
        remove_durably(file)
    return bool(units)


def _texts(state_directory: Path, command: Sequence[str], environment: Mapping[str, str]) -> dict[str, str]:
    variables = "".join(f"Environment={unit_assignment(*item)}\n" for item in sorted(environment.items()))
    came_up = unit_word(str(state_directory / CAME_UP))
    return {
        _RESUME: f"""[Unit]
Description=Ajuste: go on with an experiment across reboots
Documentation=man:ajuste(1)
After=network.target local-fs.target systemd-user-sessions.service
RequiresMountsFor={unit_word(str(state_directory))}
StartLimitIntervalSec=1h
StartLimitBurst=5

[Service]
Type=exec
{variables}ExecStart={" ".join(map(unit_word, command))}
StandardOutput=append:{unit_path(str(state_directory / "log"))}
StandardError=inherit
Restart=on-failure
RestartSec=5
RestartPreventExitStatus=1 2 130

[Install]
WantedBy=multi-user.target
""",
        _EARLY: f"""[Unit]
Description=Ajuste: a kernel of an experiment came up
DefaultDependencies=no
ConditionKernelCommandLine={MARK}
After=systemd-remount-fs.service
Before=sysinit.target
RequiresMountsFor={unit_word(str(state_directory))}

[Service]
Type=oneshot
ExecStart=cp --no-preserve=all /proc/cmdline {came_up}
ExecStart=sync {came_up}

[Install]
WantedBy=sysinit.target
""",
        _TIMER: f"""[Unit]
Description=Ajuste: give up a boot of an experiment that does not get ready
DefaultDependencies=no
ConditionKernelCommandLine={MARK}
IgnoreOnIsolate=yes

[Timer]
OnBootSec={DEADLINE}
Unit={_DEADLINE}

[Install]
WantedBy=sysinit.target
""",
        _DEADLINE: f"""[Unit]
Description=Ajuste: reboot, because this boot did not get ready
DefaultDependencies=no
ConditionKernelCommandLine={MARK}
ConditionPathExists=!/{RESUMED}
IgnoreOnIsolate=yes

[Service]
Type=oneshot
ExecStart=systemctl --force reboot
""",
    }
