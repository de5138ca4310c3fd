"""The disk of a study on this machine: one that the user names, or a loop device made for the run."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from ajuste.machine.home import as_root
from ajuste.model.error import RequestError, RunError

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
    # struct loop_config: the file, and in its loop_info64 flags and a name to be shown.
    info = (*[0] * 5, 0, 0, 0, _AUTOCLEAR | _DIRECT_IO, b"ajuste disk", b"", b"", 0, 0)
    configuration = _CONFIG.pack(image, 0, *info, *[0] * 8)
    control = os.open("/dev/loop-control", os.O_RDWR | os.O_CLOEXEC)
    try:
        for attempt in range(_TRIES):
            name = f"loop{fcntl.ioctl(control, _GET_FREE)}"
            descriptor = os.open(f"/dev/{name}", os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.ioctl(descriptor, _CONFIGURE, configuration)
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
