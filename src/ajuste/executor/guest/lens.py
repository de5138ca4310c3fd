"""The lens: QEMU counts the instructions of a trial, by a plugin of Ajuste's own that changes nothing in the guest.

What the plugin writes is believed no more than anything else that a guest can have a hand in.
"""

from __future__ import annotations

import functools
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from ajuste.executor.guest.command_line import GuestLayout, Lens
from ajuste.executor.guest.emulator import Emulator
from ajuste.executor.guest.machine import RunningMachine
from ajuste.kernel.symbols import kernel_symbols
from ajuste.machine.files import replace_file
from ajuste.machine.home import LENS, Home, native_program
from ajuste.machine.installation import require_c_library
from ajuste.model.base import BaseModel, first_problem
from ajuste.model.cost import Costs
from ajuste.model.decision import Decisions
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelImage
from ajuste.model.modelled import ModelledCache, ModelledMachine, OuterCache, Translations
from ajuste.model.plan import distances_of

LARGEST_BYTES: Final = 64 << 20
"""As much is read of what the lens has written."""

_Document = TypeVar("_Document", bound=BaseModel)
_KERNEL_SPACE: Final = 1 << 63
_LOAD_SECONDS: Final = 60


@dataclass(frozen=True)
class Counting:
    """A lens, and the machine that it models, if any."""

    lens: Lens
    machine: ModelledMachine | None


def lens_for(
    depth: str, image: KernelImage, home: Home, directory: Path, machine: ModelledMachine | None, layout: GuestLayout
) -> Lens:
    """The lens for guests with that kernel, whose symbols are put into ``directory``, and which models ``machine``, if
    any. Raises RequestError where a part of it is missing.
    """
    decides = depth == "decisions"
    deep = "functions" if decides else depth
    symbols = directory / "symbols"
    if not symbols.exists():
        _put(symbols, _symbols(image, home))
    description = None
    if machine is not None:
        description = directory / f"machine-{machine.name}.json"
        _put(description, machine_text(machine, layout))
    return Lens(_library(), depth=deep, symbols=symbols, decides=decides, machine=description)


def _put(file: Path, text: str) -> None:
    """All at once: several threads may do so."""
    replace_file(file, text.encode("ascii", errors="replace"))


def machine_text(machine: ModelledMachine, layout: GuestLayout) -> str:
    """What the lens has to know of a machine (native/lens/src/machine.rs): no times."""

    def cache(one: ModelledCache) -> dict[str, Any]:
        return {"sets": one.sets(machine.line_bytes), "ways": one.ways}

    cores = machine.cores_of_caches(layout.topology)

    def outer(name: str, one: OuterCache | None) -> dict[str, Any] | None:
        return None if one is None else {**cache(one), "contents": one.contents, "cores": cores[name]}

    def pages(one: Translations | None) -> dict[str, Any] | None:
        return None if one is None else {"sets": one.sets, "ways": one.in_a_set}

    return json.dumps(
        {
            "line_bytes": machine.line_bytes,
            "memory_bytes": layout.memory_mib << 20,
            "threads": layout.topology.threads if layout.topology else 1,
            "l1i": cache(machine.l1i),
            "l1d": cache(machine.l1d),
            "l2": outer("l2", machine.l2),
            "llc": outer("llc", machine.llc),
            "itlb": pages(machine.itlb),
            "dtlb": pages(machine.dtlb),
            "l2_itlb": pages(machine.l2_itlb),
            "l2_dtlb": pages(machine.l2_dtlb),
            "l2_tlb": pages(machine.l2_tlb),
            "history_bits": machine.branches.history_bits if machine.branches else None,
            "nodes": [{"cpus": node.cpus, "memory_bytes": node.memory_mib << 20} for node in layout.nodes],
            "distances": distances_of(layout.nodes),
        }
    )


def _symbols(image: KernelImage, home: Home) -> str:
    """The addresses and names of the kernel's functions, as the lens reads them. Raises RequestError."""
    functions = (one for one in kernel_symbols(image, home) if one.is_text and one.address >= _KERNEL_SPACE)
    return "".join(f"{one.address:x} {one.name}\n" for one in functions)


def require_fit(machine: ModelledMachine, cpus: int, layout: GuestLayout) -> None:
    """Raises RequestError for a guest that the modelled machine cannot be."""
    problem = machine.problem_with(cpus, layout.nodes, layout.topology)
    if problem:
        raise RequestError(
            f"the modelled machine {machine.name} does not fit the guest: {problem}",
            hint="use another machine or another guest",
        )


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


def _library() -> Path:
    library = native_program(LENS)
    require_c_library(library)
    return library


_CLOCK_OF_CPUS: Final = (
    *("bql_locked", "cpu_exec_end", "cpu_exec_start", "cpu_thread_is_idle", "cpus_get_accel", "current_cpu"),
    *("icount_get", "icount_get_raw", "icount_handle_interrupt", "icount_to_ns", "icount_update"),
    *("qemu_add_vm_change_state_handler", "qemu_clock_deadline_ns_all", "qemu_get_cpu", "rr_kick_vcpu_thread"),
    "timers_state",
)
"""What the lens needs of QEMU to give each CPU a clock (native/lens/src/parallel.rs)."""


@functools.cache
def why_not_at_once(emulator: Emulator) -> str:
    """Why the CPUs of a guest have to share one clock under this QEMU; empty if they need not."""
    content = emulator.binary.read_bytes()
    lacking = [name for name in _CLOCK_OF_CPUS if b"\0" + name.encode() + b"\0" not in content]
    return f"QEMU {emulator.version} ({emulator.binary}) exports no {lacking[0]}" if lacking else ""


def lens_of_turns(emulator: Emulator, turn_us: int | None) -> Path | None:
    """The lens for guests with several CPUs, which without it halt a few nanoseconds early or late now and then
    (native/lens/src/halts.rs); ``None`` where there is none, or QEMU takes none. Raises RequestError where it is
    needed for short turns.
    """
    try:
        require_plugins(emulator)
        return _library()
    except RequestError:
        if turn_us is not None:
            raise
        return None


def read_counted(running: RunningMachine, counting: Counting) -> tuple[Costs | None, Decisions | None, str]:
    """What the lens of a trial has written, and what is wrong with it, if anything."""
    complaint = running.complaint()
    costs, problem = read_costs(running.costs, counting.lens.depth, complaint, counting.machine)
    decisions = None
    if counting.lens.decides and not problem:
        decisions, problem = read_decisions(running.decisions, complaint)
    return costs, decisions, problem


def read_costs(
    file: Path, depth: str, complaint: str = "", machine: ModelledMachine | None = None
) -> tuple[Costs | None, str]:
    """What the lens has written, which modelled ``machine``, or what is wrong with it in one line. ``complaint`` is
    what QEMU and the lens said.
    """
    costs, problem = _read(Costs, "costs", file, complaint)
    if costs is None:
        return None, problem
    if costs.depth != depth:
        return None, f"the lens counted {costs.depth}, not {depth}"
    if any((task.modelled is None) != (machine is None) for task in costs.tasks):
        return None, "the lens modelled " + ("no machine" if machine else "a machine that nobody asked for")
    return costs.model_copy(update={"machine": machine}), ""


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
        return None, f"what the lens wrote is malformed ({first_problem(error)})"
