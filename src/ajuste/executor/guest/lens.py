"""The lens: QEMU counts the instructions of a trial, by a plugin of Ajuste's own that changes nothing in the guest.

What the plugin writes is believed no more than anything else that a guest can have a hand in.
"""

from __future__ import annotations

import functools
import subprocess
import threading
from pathlib import Path
from typing import Final, TypeVar

from pydantic import BaseModel, ValidationError

from ajuste.executor.guest.command_line import Lens
from ajuste.executor.guest.emulator import Emulator
from ajuste.kernel.symbols import kernel_symbols
from ajuste.machine.home import LENS, Home, native_program
from ajuste.model.cost import Costs
from ajuste.model.decision import Decisions
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelImage

LARGEST_BYTES: Final = 64 << 20
"""As much is read of what the lens has written."""

_Document = TypeVar("_Document", bound=BaseModel)
_KERNEL_SPACE: Final = 1 << 63
_LOAD_SECONDS: Final = 60


def lens_for(depth: str, image: KernelImage, home: Home, directory: Path) -> Lens:
    """The lens for guests with that kernel, whose symbols are put into ``directory``. Raises RequestError where a part
    of it is missing.
    """
    decides = depth == "decisions"
    deep = "functions" if decides else depth
    lens = Lens(library=native_program(LENS), depth=deep, symbols=directory / "symbols", decides=decides)
    if not lens.symbols.exists():
        new = directory / f"symbols.{threading.get_ident()}"
        new.write_text(_symbols(image, home), encoding="ascii", errors="replace")
        new.replace(lens.symbols)
    return lens


def _symbols(image: KernelImage, home: Home) -> str:
    """The addresses and names of the kernel's functions, as the lens reads them. Raises RequestError."""
    functions = (one for one in kernel_symbols(image, home) if one.is_text and one.address >= _KERNEL_SPACE)
    return "".join(f"{one.address:x} {one.name}\n" for one in functions)


@functools.cache
def require_plugins(emulator: Emulator) -> None:
    """Raises RequestError where this QEMU does not take plugins."""
    command = [emulator.binary, *(("-L", emulator.firmware) if emulator.firmware else ()), "-plugin", "help"]
    said = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=_LOAD_SECONDS, env=emulator.environment
    )
    if "invalid option" in said.stderr:
        raise RequestError(
            f"QEMU {emulator.version} ({emulator.binary}) was built without plugins, so it cannot count instructions",
            hint="install a QEMU with plugins, such as Debian's; or name other metrics",
        )


def read_costs(file: Path, depth: str, complaint: str = "") -> tuple[Costs | None, str]:
    """What the lens has written, or what is wrong with it in one line. ``complaint`` is what QEMU and the lens said."""
    costs, problem = _read(Costs, "costs", file, complaint)
    if costs is not None and costs.depth != depth:
        return None, f"the lens counted {costs.depth}, not {depth}"
    return costs, problem


def read_decisions(file: Path, complaint: str = "") -> tuple[Decisions | None, str]:
    """What the scheduler has decided, as the lens has written it, or what is wrong with that in one line."""
    return _read(Decisions, "decisions", file, complaint)


def _read(document: type[_Document], named: str, file: Path, complaint: str) -> tuple[_Document | None, str]:
    try:
        with file.open("rb") as opened:
            content = opened.read(LARGEST_BYTES + 1)
        if len(content) > LARGEST_BYTES:
            return None, f"the lens wrote more than {LARGEST_BYTES >> 20} MiB"
        return document.model_validate_json(content), ""
    except FileNotFoundError:
        said = [line.removeprefix("lens: ") for line in complaint.splitlines() if line.startswith("lens: ")]
        return None, f"the lens wrote no {named}: {(said or ['it did not see the workload start and end'])[-1]}"
    except OSError as error:
        return None, f"cannot read what the lens wrote: {error.strerror}"
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        return None, f"what the lens wrote is malformed ({f'{where}: ' if where else ''}{first['msg']})"
