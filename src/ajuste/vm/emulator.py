"""Which QEMU runs a machine: the installed one, or one that Ajuste fetched."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from ajuste.home import Home
from ajuste.kernel.qemu import fetch_qemu
from ajuste.model.error import RequestError
from ajuste.model.results import Clock
from ajuste.target.target import Say

PROGRAM = "qemu-system-x86_64"

_OLDEST = (7, 2)
_OLDEST_FOR_SEVERAL_CPUS: dict[Clock, tuple[int, int]] = {"virtual": (10, 0), "wall": (8, 1)}


class Emulator(BaseModel):
    """A QEMU on this disk. ``firmware`` and ``libraries`` are directories of a fetched one, ``None`` for an installed
    one.
    """

    model_config = ConfigDict(frozen=True)
    binary: Path
    version: str
    firmware: Path | None = None
    libraries: Path | None = None

    @property
    def release(self) -> tuple[int, int]:
        """Major and minor version."""
        return _release(self.version)

    @property
    def environment(self) -> dict[str, str]:
        """The whole environment that it is started with."""
        return {"LD_LIBRARY_PATH": str(self.libraries)} if self.libraries else {}


def choose_emulator(
    clock: Clock, cpus: int, home: Home, say: Say, environment: Mapping[str, str] = os.environ
) -> Emulator:
    """The QEMU for such a machine: ``AJUSTE_QEMU`` if that is set, else the installed one if it is new enough, else a
    fetched one.

    Several CPUs under the virtual clock need QEMU 10: older ones never get to user space. By the wall clock they need
    8.1: where one CPU changes code while another one's is translated, older ones keep the old translation, and a guest
    whose kernel patches itself can hang for good (QEMU's commit deba78709ae8, "Always lock pages before translation").
    """
    oldest = _OLDEST_FOR_SEVERAL_CPUS[clock] if cpus > 1 else _OLDEST
    chosen = environment.get("AJUSTE_QEMU")
    if chosen:
        emulator = installed_emulator(Path(chosen).expanduser().absolute())
        if emulator.release < oldest:
            raise RequestError(
                f"AJUSTE_QEMU is QEMU {emulator.version}; {cpus} CPUs under the {clock} clock need "
                f"{oldest[0]}.{oldest[1]} or later"
            )
        return emulator
    found = shutil.which(PROGRAM)
    if found:
        emulator = installed_emulator(Path(found))
        if emulator.release >= oldest:
            return emulator
    fetched = fetch_qemu(home, say)
    return Emulator(
        binary=fetched.binary, version=fetched.version, firmware=fetched.firmware, libraries=fetched.libraries
    )


def installed_emulator(binary: Path) -> Emulator:
    """The QEMU at ``binary``. Raises RequestError if that is none."""
    try:
        said = subprocess.run([binary, "--version"], capture_output=True, text=True, check=False, timeout=60).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RequestError(f"{binary} cannot be started: {error}") from error
    match = re.search(r"QEMU emulator version (\d+\.\d+[.\d]*)", said)
    if not match:
        raise RequestError(f"{binary} is no QEMU: it does not say its version")
    return Emulator(binary=binary, version=match[1])


def _release(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)
