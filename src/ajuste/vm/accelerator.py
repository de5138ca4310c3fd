"""Whether KVM can be used here: only if a real kernel was seen to boot with it.

``/dev/kvm`` can exist, open and create machines and still not run a kernel (on nested hosts, for example).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from ajuste.checksum import read_kept
from ajuste.home import Home
from ajuste.model.error import RequestError, RunError
from ajuste.ownership import make_directory
from ajuste.this_boot import boot_id

DEVICE = Path("/dev/kvm")


class Accelerator(BaseModel):
    """``reason`` says to people why it is this one."""

    model_config = ConfigDict(frozen=True)
    name: Literal["tcg", "kvm"]
    reason: str


class _Answer(BaseModel):
    """A probe's result, good for one boot of this machine, one QEMU and one kernel."""

    model_config = ConfigDict(frozen=True)
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
    temporary = kept.with_suffix(f".{os.getpid()}")
    temporary.write_text(answer.model_dump_json() + "\n")
    temporary.replace(kept)
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
