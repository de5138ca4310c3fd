"""Which QEMU runs a machine: the installed one, or one that Ajuste fetched."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from ajuste.kernel.qemu import fetch_qemu
from ajuste.machine.files import make_directory, read_kept, replace_file
from ajuste.machine.home import Home
from ajuste.machine.session import boot_id
from ajuste.model.base import BaseModel
from ajuste.model.error import AjusteError, RequestError, RunError
from ajuste.model.results import Clock
from ajuste.model.topology import Topology
from ajuste.model.wording import Say

PROGRAM = "qemu-system-x86_64"

_HINT = "install QEMU again, or set AJUSTE_QEMU to another qemu-system-x86_64"
_OLDEST = (7, 2)
_OLDEST_FOR_SEVERAL_CPUS: dict[Clock, tuple[int, int]] = {"virtual": (10, 0), "wall": (8, 1)}
_OLDEST_FOR_A_TOPOLOGY = (10, 0)


class Emulator(BaseModel):
    """A QEMU on this disk. ``firmware`` and ``libraries`` are directories of a fetched one, ``None`` for an installed
    one.
    """

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


def require_guests() -> None:
    """Raises RequestError on a machine whose agent cannot run in a guest: the kernels are those of x86_64."""
    machine = platform.machine()
    if machine != "x86_64":
        raise RequestError(
            f"guests are supported only on x86_64; this machine is {machine}",
            hint="measure on this machine: add --target host, or omit --vm and --kernel; or use x86_64",
        )


def choose_emulator(
    clock: Clock,
    cpus: int,
    home: Home,
    say: Say,
    environment: Mapping[str, str] = os.environ,
    *,
    topology: Topology | None = None,
) -> Emulator:
    """The QEMU for such a machine: ``AJUSTE_QEMU`` if that is set, else the installed one if it is new enough, else a
    fetched one.

    Several CPUs under the virtual clock need QEMU 10: older ones never get to user space. By the wall clock they need
    8.1: where one CPU changes code while another one's is translated, older ones keep the old translation, and a guest
    whose kernel patches itself can hang for good (QEMU's commit deba78709ae8, "Always lock pages before translation").
    Who shares a cache can be chosen since 9.2; a ``topology`` is tested with 10.0.
    """
    require_guests()
    oldest = _OLDEST_FOR_SEVERAL_CPUS[clock] if cpus > 1 else _OLDEST
    if topology is not None:
        oldest = max(oldest, _OLDEST_FOR_A_TOPOLOGY)
    chosen = environment.get("AJUSTE_QEMU")
    if chosen:
        emulator = installed_emulator(Path(chosen).expanduser().absolute())
        if emulator.release < oldest:
            raise RequestError(
                f"AJUSTE_QEMU is QEMU {emulator.version}; {_said(clock, cpus, topology)} "
                f"{oldest[0]}.{oldest[1]} or later",
                hint="unset AJUSTE_QEMU to fetch one that fits",
            )
        return emulator
    found = shutil.which(PROGRAM)
    if found:
        emulator = installed_emulator(Path(found))
        if emulator.release >= oldest:
            return emulator
    try:
        fetched = fetch_qemu(home, say)
    except AjusteError as failure:
        lacking = f"is {emulator.version}, older than {oldest[0]}.{oldest[1]}" if found else "was not found"
        raise type(failure)(f"QEMU {lacking}, and {failure.message}", hint=failure.hint) from failure
    return Emulator(
        binary=fetched.binary, version=fetched.version, firmware=fetched.firmware, libraries=fetched.libraries
    )


def _said(clock: Clock, cpus: int, topology: Topology | None) -> str:
    return f"{cpus} CPUs under the {clock} clock require" if topology is None else "a topology requires"


def installed_emulator(binary: Path) -> Emulator:
    """The QEMU at ``binary``. Raises RequestError if that is none."""
    try:
        said = subprocess.run([binary, "--version"], capture_output=True, text=True, check=False, timeout=60).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RequestError(f"cannot start {binary}: {getattr(error, 'strerror', None) or error}", hint=_HINT) from error
    match = re.search(r"QEMU emulator version (\d+\.\d+[.\d]*)", said)
    if not match:
        raise RequestError(f"{binary} is not QEMU: --version prints no version of it", hint=_HINT)
    return Emulator(binary=binary, version=match[1])


def _release(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


# Whether KVM can be used here: only if a real kernel was seen to boot with it.
#
# ``/dev/kvm`` can exist, open and create machines and still not run a kernel (on nested hosts, for example).


DEVICE = Path("/dev/kvm")


class Accelerator(BaseModel):
    """``reason`` says to people why it is this one."""

    name: Literal["tcg", "kvm"]
    reason: str


class _Answer(BaseModel):
    """A probe's result, good for one boot of this machine, one QEMU and one kernel."""

    boot: str
    emulator: str
    kernel: str
    accelerator: Accelerator


def choose_accelerator(
    home: Home,
    emulator: str,
    kernel: str,
    boots: Callable[[], str],
    environment: Mapping[str, str] = os.environ,
) -> Accelerator:
    """KVM if ``boots`` says that a trial boot with it succeeded, else emulation (TCG).

    ``boots`` boots a machine with KVM within a time limit and returns an empty text, or what went wrong. Its answer
    is kept until the next boot of this machine, for this version of QEMU (``emulator``) and this ``kernel`` (SHA-256).
    ``AJUSTE_ACCELERATOR=tcg`` skips all that. Raises RequestError for any other value of it.
    """
    asked = environment.get("AJUSTE_ACCELERATOR", "")
    if asked not in ("", "tcg"):
        raise RequestError(f"AJUSTE_ACCELERATOR is {asked!r}; expected tcg, or nothing")
    if asked == "tcg":
        return Accelerator(name="tcg", reason="AJUSTE_ACCELERATOR=tcg")
    if not DEVICE.exists():
        return Accelerator(name="tcg", reason=f"this machine has no {DEVICE}")
    if not os.access(DEVICE, os.R_OK | os.W_OK):
        return Accelerator(name="tcg", reason=f"this user may not use {DEVICE}")
    boot = boot_id()
    kept = home.state / "accelerator.json"
    known = _read(kept)
    if known is not None and (known.boot, known.emulator, known.kernel) == (boot, emulator, kernel):
        return known.accelerator
    found = _probe(boots)
    answer = _Answer(boot=boot, emulator=emulator, kernel=kernel, accelerator=found)
    make_directory(kept.parent)
    replace_file(kept, answer.model_dump_json().encode() + b"\n", mode=0o600)
    return found


def _probe(boots: Callable[[], str]) -> Accelerator:
    try:
        failure = boots()
    except RunError as error:
        failure = error.message
    if failure:
        return Accelerator(name="tcg", reason=f"a trial boot with KVM failed: {failure.splitlines()[0]}")
    return Accelerator(name="kvm", reason="a trial boot with KVM succeeded")


def _read(kept: Path) -> _Answer | None:
    try:
        return _Answer.model_validate_json(read_kept(kept))
    except (OSError, ValidationError):
        return None
