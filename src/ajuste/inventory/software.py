"""The software that measures and is measured: distribution, C library, Python, QEMU."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess

from ajuste.inventory.section import Section
from ajuste.inventory.source import Reading, Source
from ajuste.version import ajuste_version

_QEMU = "qemu-system-x86_64"
_LONGEST_S = 10


class Software(Section):
    """``qemu`` takes a moment to ask for; it is left out of what is kept with every study, where a guest's own QEMU is
    named beside the guest.
    """

    system: str | None = None
    c_library: str | None = None
    python: str = ""
    ajuste: str = ""
    qemu: str | None = None


def take_software(source: Source, *, programs: bool) -> Software:
    """Of the system below the source's root; C library and Python are those that run now. ``programs`` are started
    only if asked for.
    """
    reading = Reading(source)
    return Software(
        system=_system(source) or reading.lacks("system", "/etc/os-release does not say"),
        c_library=_c_library() or reading.lacks("c_library", "not the GNU C library"),
        python=platform.python_version(),
        ajuste=ajuste_version(),
        qemu=_qemu(reading) if programs and source.is_this_machine else reading.lacks("qemu", "not asked for"),
        unknown=reading.unknown,
    )


def _system(source: Source) -> str | None:
    """os-release(5)."""
    for path in ("/etc/os-release", "/usr/lib/os-release"):
        for line in source.lines(path):
            match = re.fullmatch(r"PRETTY_NAME=(.{1,200})", line)
            if match:
                return match[1].strip("\"'") or None
    return None


def _c_library() -> str | None:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION")
    except (ValueError, OSError):
        return None


def _qemu(reading: Reading) -> str | None:
    program = shutil.which(_QEMU)
    if program is None:
        return reading.lacks("qemu", "not installed")
    try:
        done = subprocess.run(
            [program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_LONGEST_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return reading.lacks("qemu", "does not answer")
    match = re.search(rb"version ([0-9][0-9.]{0,20})", done.stdout)
    return match[1].decode() if match else reading.lacks("qemu", "does not say its version")
