"""The lens: QEMU counts the instructions of a trial, by a plugin of Ajuste's own that changes nothing in the guest.

What the plugin writes is believed no more than anything else that a guest can have a hand in.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import re
import subprocess
import threading
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeVar

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection, SymbolTableSection
from pydantic import ValidationError

from ajuste.machine.files import replace_file
from ajuste.machine.home import AGENT, LENS, SERVICE, WORKLOADS, Home, native_program, require_c_library
from ajuste.model.base import BaseModel, first_problem
from ajuste.model.cost import CostCode, CostFunction, Costs, CostTask, NamedCosts, Space
from ajuste.model.decision import KINDS, Decisions, NamedDecisions
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelImage
from ajuste.model.modelled import ModelledCache, ModelledMachine, OuterCache, Translations
from ajuste.model.plan import node_distances
from ajuste_guest.analysis.costs import Namer, function_costs, named_costs
from ajuste_guest.executor.machine import RunningMachine
from ajuste_guest.executor.qemu import Emulator, GuestLayout, Lens
from ajuste_guest.executor.tree import read_archive
from ajuste_guest.kernel.symbols import NO_ELF, KernelSymbol, function_names, kernel_symbols

LARGEST_BYTES: Final = 64 << 20
"""Maximum size in bytes that is read of the lens's output."""

_Document = TypeVar("_Document", bound=BaseModel)
_KERNEL_SPACE: Final = 1 << 63
_LOAD_SECONDS: Final = 60
# Cycles of a PAUSE on Intel CPUs since Skylake; on those of AMD it takes about half.
_PAUSE_CYCLES: Final = 140


@dataclass(frozen=True)
class Counting:
    """A lens, and the machine that it models, if any."""

    lens: Lens
    machine: ModelledMachine | None


class GuestNames:
    """The functions of a guest's kernel and programs. They are read once, when a thread first needs them."""

    def __init__(self, image: KernelImage, home: Home, initramfs: Path) -> None:
        self._image = image
        self._home = home
        self._initramfs = initramfs
        self._reading = threading.RLock()
        self._symbols: tuple[KernelSymbol, ...] | None = None
        self._kernel: dict[int, str] | None = None
        self._programs: tuple[Program, ...] | None = None

    @property
    def symbols(self) -> tuple[KernelSymbol, ...]:
        """Return the kernel's symbols. Raises RequestError where it has none."""
        with self._reading:
            if self._symbols is None:
                self._symbols = kernel_symbols(self._image, self._home)
            return self._symbols

    @property
    def kernel(self) -> Mapping[int, str]:
        """Return the kernel's functions by address. Raises RequestError where it has none."""
        with self._reading:
            if self._kernel is None:
                self._kernel = function_names(self.symbols)
            return self._kernel

    @property
    def programs(self) -> tuple[Program, ...]:
        """Return the programs in the guest's initramfs."""
        with self._reading:
            if self._programs is None:
                lists = tuple(native_program(name).with_name(f"{name}.symbols") for name in (AGENT, WORKLOADS, SERVICE))
                self._programs = read_programs(read_archive(self._initramfs.read_bytes()), lists)
            return self._programs


def lens_for(
    depth: str,
    names: GuestNames,
    directory: Path,
    machine: ModelledMachine | None,
    layout: GuestLayout,
    quantum_ns: int | None = None,
) -> Lens:
    """Return the lens for guests with those ``names``, of which it has its files in ``directory``, and which models
    ``machine``, if any; with ``quantum_ns`` the guest has that machine's time. Raises RequestError where a part is
    missing.
    """
    decides = depth == "decisions"
    deep = "functions" if decides else depth
    symbols = directory / "symbols"
    if not symbols.exists():
        functions = (symbol for symbol in names.symbols if symbol.is_text and symbol.address >= _KERNEL_SPACE)
        _put(symbols, "".join(f"{symbol.address:x} {symbol.name}\n" for symbol in functions))
    description = None
    if machine is not None:
        description = directory / f"machine-{machine.name}.json"
        _put(description, machine_text(machine, layout, quantum_ns))
    return Lens(_library(), depth=deep, symbols=symbols, decides=decides, machine=description)


def _put(file: Path, text: str) -> None:
    # Several threads may write at once.
    replace_file(file, text.encode("ascii", errors="replace"))


def machine_text(machine: ModelledMachine, layout: GuestLayout, quantum_ns: int | None = None) -> str:
    """Return what the lens has to know of a machine (native/lens/src/machine.rs): times only where the guest has them,
    and its CPUs wait for each other every ``quantum_ns``.
    """

    def cache(level: ModelledCache) -> dict[str, Any]:
        return {"sets": level.sets(machine.line_bytes), "ways": level.ways}

    cores = machine.cores_of_caches(layout.topology)

    def outer(name: str, level: OuterCache | None) -> dict[str, Any] | None:
        return None if level is None else {**cache(level), "contents": level.contents, "cores": cores[name]}

    def pages(level: Translations | None) -> dict[str, Any] | None:
        return None if level is None else {"sets": level.sets, "ways": level.in_a_set}

    return json.dumps(
        {
            "line_bytes": machine.line_bytes,
            "memory_bytes": layout.memory_mib << 20,
            "threads": layout.topology.threads if layout.topology else 1,
            "l1i": cache(machine.l1i),
            "l1d": cache(machine.l1d),
            "l2": outer("l2", machine.l2),
            "llc": outer("llc", machine.llc),
            "streams": machine.prefetcher.streams if machine.prefetcher else None,
            "itlb": pages(machine.itlb),
            "dtlb": pages(machine.dtlb),
            "large_itlb": pages(machine.large_itlb),
            "large_dtlb": pages(machine.large_dtlb),
            "l2_itlb": pages(machine.l2_itlb),
            "l2_dtlb": pages(machine.l2_dtlb),
            "l2_tlb": pages(machine.l2_tlb),
            "history_bits": machine.branches.history_bits if machine.branches else None,
            "nodes": [{"cpus": node.cpus, "memory_bytes": node.memory_mib << 20} for node in layout.nodes],
            "distances": node_distances(layout.nodes),
            **({"times": _times(machine, quantum_ns)} if quantum_ns else {}),
        }
    )


def _times(machine: ModelledMachine, quantum_ns: int) -> dict[str, int]:
    def femtoseconds(cycles: float) -> int:
        return round(cycles * 1e9 / machine.frequency_mhz)

    return {
        "quantum_ns": quantum_ns,
        "pause_ns": femtoseconds(_PAUSE_CYCLES) // 10**6,
        "instruction_fs": femtoseconds(1 / machine.instructions_per_cycle),
        "second_fs": femtoseconds(machine.l2.latency_cycles if machine.l2 else 0),
        "last_fs": femtoseconds(machine.llc.latency_cycles if machine.llc else 0),
        "memory_fs": round(machine.memory_ns * 10**6),
        "translation_fs": femtoseconds(machine.translation_cycles),
        "walk_fs": femtoseconds(machine.walk_cycles),
        "branch_fs": femtoseconds(machine.branches.miss_cycles if machine.branches else 0),
    }


def require_fit(machine: ModelledMachine, cpus: int, layout: GuestLayout) -> None:
    """Raise RequestError for a guest that the modelled machine cannot be."""
    problem = machine.problem_with(cpus, layout.nodes, layout.topology)
    if problem:
        raise RequestError(
            f"the modelled machine {machine.name} does not fit the guest: {problem}",
            hint="use another machine or another guest",
        )


@functools.cache
def read_numbers(file: Path) -> Iterator[tuple[int, int, int]]:
    """Yield the lines of three numbers that the lens has written: CPU, ns since the workload's start, and the address
    of an instruction, or how long the CPU stood still. None without a file.
    """
    if not file.is_file() or file.stat().st_size > LARGEST_BYTES:
        return
    for line in file.read_text().splitlines():
        first, second, third = map(int, line.split())
        yield first, second, third


def require_plugins(emulator: Emulator) -> None:
    """Raise RequestError where this QEMU does not take plugins."""
    command = [emulator.binary, *(("-L", emulator.firmware) if emulator.firmware else ()), "-plugin", "help"]
    process = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=_LOAD_SECONDS, env=emulator.environment
    )
    if "invalid option" in process.stderr:
        raise RequestError(
            f"QEMU {emulator.version} ({emulator.binary}) was built without plugins, so it cannot count instructions",
            hint="install a QEMU with plugins, such as Debian's; or name other metrics",
        )


def _library() -> Path:
    library = native_program(LENS)
    require_c_library(library)
    return library


# Symbols of QEMU that the lens needs to give each CPU a clock (native/lens/src/parallel.rs).
_CLOCK_OF_CPUS: Final = (
    *("bql_locked", "cpu_exec_end", "cpu_exec_start", "cpu_thread_is_idle", "cpus_get_accel", "current_cpu"),
    *("icount_get", "icount_get_raw", "icount_handle_interrupt", "icount_to_ns", "icount_update"),
    *("qemu_add_vm_change_state_handler", "qemu_clock_deadline_ns_all", "qemu_get_cpu", "rr_kick_vcpu_thread"),
    "timers_state",
)


@functools.cache
def why_not_at_once(emulator: Emulator) -> str:
    """Return why the CPUs of a guest must share one clock under this QEMU, empty if they need not."""
    content = emulator.binary.read_bytes()
    lacking = [name for name in _CLOCK_OF_CPUS if b"\0" + name.encode() + b"\0" not in content]
    return f"QEMU {emulator.version} ({emulator.binary}) exports no {lacking[0]}" if lacking else ""


def lens_of_turns(emulator: Emulator, turn_us: int | None) -> Path | None:
    """Return the lens for guests with several CPUs, which without it halt a few nanoseconds early or late now and then
    (native/lens/src/halts.rs); ``None`` where there is none, or QEMU takes none. Raises RequestError where it is needed
    for short turns.
    """
    try:
        require_plugins(emulator)
        return _library()
    except RequestError:
        if turn_us is not None:
            raise
        return None


def read_counted(running: RunningMachine, counting: Counting) -> tuple[Costs | None, Decisions | None, str]:
    """Return what the lens of a trial has written, and what is wrong with it, if anything."""
    complaint = running.complaint()
    costs, problem = read_costs(running.costs, counting.lens.depth, complaint, counting.machine)
    decisions = None
    if counting.lens.decides and not problem:
        decisions, problem = read_decisions(running.decisions, complaint)
    return costs, decisions, problem


def read_costs(
    file: Path, depth: str, complaint: str = "", machine: ModelledMachine | None = None
) -> tuple[Costs | None, str]:
    """Return the costs that the lens has written, which modelled ``machine``, or what is wrong with them in one line.
    ``complaint`` is the output of QEMU and the lens.
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
    """Return the scheduler's decisions as the lens has written them, or what is wrong with them in one line."""
    return _read(Decisions, "decisions", file, complaint)


def _read(document: type[_Document], named: str, file: Path, complaint: str) -> tuple[_Document | None, str]:
    try:
        with file.open("rb") as opened:
            content = opened.read(LARGEST_BYTES + 1)
        if len(content) > LARGEST_BYTES:
            return None, f"the lens wrote more than {LARGEST_BYTES >> 20} MiB"
        return document.model_validate_json(content), ""
    except FileNotFoundError:
        messages = [line.removeprefix("lens: ") for line in complaint.splitlines() if line.startswith("lens: ")]
        return None, f"the lens wrote no {named}: {(messages or ['it did not see the workload start and end'])[-1]}"
    except OSError as error:
        return None, f"cannot read what the lens wrote: {error.strerror}"
    except ValidationError as error:
        return None, f"what the lens wrote is malformed ({first_problem(error)})"


# The names of the functions that a guest's costs tell by address: the kernel's, and those of its programs.
#
# A program or library may be anywhere in a task's memory. It is found by the bytes of its code that were seen there:
# a file is mapped by whole pages (mmap(2)), so they stand at the same place of a page as in the file.


_PAGE: Final = 4096
# Minimum number of equal bytes before a file is taken for the mapped one.
_LEAST_BYTES: Final = 8
_FUNCTIONS: Final = ("STT_FUNC", "STT_GNU_IFUNC")
# The directory of debug symbols by build ID (gdb's manual, Separate Debug Files).
_DEBUG: Final = Path("/usr/lib/debug/.build-id")


@dataclass(frozen=True)
class _Part:
    # A part of a file that holds code: `size` bytes from `offset`, at `address` before it is mapped.
    offset: int
    address: int
    size: int


@dataclass(frozen=True)
class _Function:
    # `end` is the address after the last byte.
    name: str
    end: int


@dataclass(frozen=True)
class Program:
    """An ELF file of a guest that has code. One that ``is_fixed`` is mapped where it says."""

    path: str
    content: bytes
    parts: tuple[_Part, ...]
    is_fixed: bool
    debug: Path = _DEBUG
    function_lists: tuple[Path, ...] = ()
    """Lists of functions of Ajuste's own programs."""

    @cached_property
    def _functions(self) -> dict[int, _Function]:
        functions = dict(_read_functions(self.content))
        if (with_all := _debug_file(self.content, self.debug)) is not None:
            functions |= dict(_read_functions(with_all))
        functions |= dict(_functions_listed(self.content, self.function_lists))
        return dict(sorted(functions.items()))

    @cached_property
    def _starts(self) -> list[int]:
        return list(self._functions)

    def function(self, address: int) -> str:
        """Return the name of the function at an address of the file, "" where it has none."""
        place = bisect_right(self._starts, address) - 1
        if place < 0:
            return ""
        start = self._starts[place]
        function = self._functions[start]
        return function.name if address == start or address < function.end else ""

    def bases(self, code: CostCode) -> Iterator[int]:
        """Return by how much the file can have been moved for ``code`` to stand where it was seen."""
        wanted = bytes.fromhex(code.bytes_)
        for part in self.parts:
            first = part.offset + (code.address - part.offset) % _PAGE
            for place in range(first, part.offset + part.size, _PAGE):
                if self.content.startswith(wanted, place):
                    yield code.address - (part.address + place - part.offset)


@dataclass(frozen=True)
class Mapped:
    """A program that was moved by ``base`` bytes."""

    program: Program
    base: int

    @property
    def places(self) -> range:
        """Return the range of addresses from the program's first code to its last."""
        parts = self.program.parts
        return range(
            self.base + min(part.address for part in parts), self.base + max(part.address + part.size for part in parts)
        )


def read_programs(files: Iterable[tuple[str, bytes]], lists: tuple[Path, ...] = ()) -> tuple[Program, ...]:
    """Return those of ``files`` (path, content) that are ELF files with code. ``lists`` are lists of the functions of
    Ajuste's own programs.
    """
    elves = ((path, content) for path, content in files if content.startswith(b"\x7fELF"))
    return tuple(filter(None, (_program(path, content, lists) for path, content in elves)))


def _program(path: str, content: bytes, lists: tuple[Path, ...]) -> Program | None:
    try:
        elf = ELFFile(io.BytesIO(content))
        loaded = [part.header for part in elf.iter_segments("PT_LOAD") if part["p_flags"] & 1]
        is_fixed = elf["e_type"] == "ET_EXEC"
    except NO_ELF:
        return None
    parts = tuple(_Part(segment["p_offset"], segment["p_vaddr"], segment["p_filesz"]) for segment in loaded)
    return Program(f"/{path.lstrip('/')}", content, parts, is_fixed, function_lists=lists) if parts else None


def _read_functions(content: bytes) -> Iterator[tuple[int, _Function]]:
    # Of several names at one address the plainest comes last: the caller's dictionary keeps that.
    functions: list[tuple[int, _Function]] = []
    try:
        for section in ELFFile(io.BytesIO(content)).iter_sections():
            if isinstance(section, SymbolTableSection):
                functions += [
                    (symbol["st_value"], _Function(symbol.name, symbol["st_value"] + symbol["st_size"]))
                    for symbol in section.iter_symbols()
                    if symbol["st_info"]["type"] in _FUNCTIONS and symbol["st_shndx"] != "SHN_UNDEF"
                ]
            elif section.name.startswith(".plt"):
                functions.append((section["sh_addr"], _Function("plt", section["sh_addr"] + section["sh_size"])))
    except NO_ELF:
        return
    yield from sorted(functions, key=lambda item: _plainness(item[1]), reverse=True)


def _functions_listed(content: bytes, lists: Iterable[Path]) -> Iterator[tuple[int, _Function]]:
    # A list belongs to the program whose SHA-256 it begins with: names of another build would be wrong (setup/symbols).
    digest = hashlib.sha256(content).hexdigest() if lists else ""
    for file in lists:
        try:
            program, *lines = file.read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError):
            continue
        words = (line.split(" ", 2) for line in lines if program == digest)
        functions = [(int(start, 16), _Function(name, int(start, 16) + int(size, 16))) for start, size, name in words]
        yield from sorted(functions, key=lambda item: _plainness(item[1]), reverse=True)


def _plainness(function: _Function) -> tuple[int, int, str]:
    name = function.name
    return len(name) - len(name.lstrip("_")), len(name), name


def _debug_file(content: bytes, debug: Path) -> bytes | None:
    try:
        notes = [note for section in ELFFile(io.BytesIO(content)).iter_sections() if isinstance(section, NoteSection)
                 for note in section.iter_notes()]  # fmt: skip
        build = next((note["n_desc"] for note in notes if note["n_type"] == "NT_GNU_BUILD_ID"), "")
        return (debug / build[:2] / f"{build[2:]}.debug").read_bytes() if build else None
    except (*NO_ELF, OSError):
        return None


def locate(code: Sequence[CostCode], programs: Iterable[Program]) -> tuple[Mapped, ...]:
    """Return where ``programs`` were mapped, by the bytes seen: first those with the most bytes alike; none overlap."""
    alike: Counter[tuple[int, int]] = Counter()
    candidates = list(programs)
    for seen in code:
        for number, program in enumerate(candidates):
            for base in set(program.bases(seen)):
                if base == 0 if program.is_fixed else base >= 0:
                    alike[number, base] += len(seen.bytes_) // 2
    located: list[Mapped] = []
    for (number, base), weight in sorted(alike.items(), key=lambda item: (-item[1], item[0])):
        mapped = Mapped(candidates[number], base)
        if weight >= _LEAST_BYTES and not any(_overlap(mapped.places, other.places) for other in located):
            located.append(mapped)
    return tuple(located)


def _overlap(first: range, other: range) -> bool:
    return first.start < other.stop and other.start < first.stop


def name_costs(costs: Costs, names: GuestNames) -> NamedCosts:
    """Return ``costs`` of a guest with the names of their functions. Raises RequestError where its kernel has none."""
    return costs_by_name(costs, names.kernel, names.programs)


def costs_by_name(
    costs: Costs,
    kernel: Mapping[int, str],
    programs: Sequence[Program],
    find_package: Callable[[str], str] | None = None,
) -> NamedCosts:
    """Return ``costs`` with the names of their functions: of the ``kernel`` by address, and of the ``programs`` of the
    guest. ``find_package`` tells which package of this machine has a file ("" if none does); by default dpkg is asked.
    """
    namers: dict[tuple[CostCode, ...], Namer] = {}

    def find_namer(task: CostTask) -> Namer:
        if task.code not in namers:
            namers[task.code] = _namer(kernel, locate(task.code, programs))
        return namers[task.code]

    named = named_costs(costs, find_namer)
    return named.model_copy(update={"notes": tuple(_notes(named, find_package or _find_package))})


def name_decisions(decisions: Decisions, costs: Costs, instruction_ns: int, guest: GuestNames) -> NamedDecisions:
    """Return ``decisions`` of a guest with the names of functions and tasks; ``costs`` are of the same trial. Raises
    RequestError where its kernel has none.
    """
    names = guest.kernel
    called = programs_by_task(costs, guest.programs) | kernel_tasks(decisions, names)
    calls = decisions.calls
    addresses = sorted({address for path in (*decisions.paths, calls.functions) for address in path})
    places = {address: place for place, address in enumerate(addresses)}
    columns = decisions.model_dump(exclude={"version", "paths", "tasks", "calls"})
    return NamedDecisions(
        **columns,
        tasks=tuple(task.model_copy(update={"name": called.get(task.number, "")}) for task in decisions.tasks),
        instruction_ns=instruction_ns,
        functions=tuple(names.get(address, f"{address:#x}") for address in addresses),
        paths=tuple(tuple(places[address] for address in path) for path in decisions.paths),
        calls=calls.model_copy(update={"functions": tuple(places[address] for address in calls.functions)}),
    )


def programs_by_task(costs: Costs, programs: Sequence[Program]) -> dict[int, str]:
    """Return the name of each task's program, where its code was found in one."""
    names: dict[tuple[CostCode, ...], str] = {}
    for task in costs.tasks:
        if task.code not in names:
            files = (mapped.program.path.rpartition("/")[2] for mapped in locate(task.code, programs))
            names[task.code] = next((file for file in files if ".so" not in file), "")
    return {task.number: names[task.code] for task in costs.tasks if names[task.code]}


def function_at(costs: Costs, programs: Sequence[Program], address: int) -> str:
    """Return the function of user space at ``address`` and its place in the file, such as take (job+0x40179f), or "" if
    no program has it.
    """
    for code in dict.fromkeys(task.code for task in costs.tasks):
        for mapped in locate(code, programs):
            if address in mapped.places:
                place = address - mapped.base
                file = f"{mapped.program.path.rpartition('/')[2]}+{place:#x}"
                name = mapped.program.function(place)
                return f"{name} ({file})" if name else file
    return ""


def kernel_tasks(decisions: Decisions, names: Mapping[int, str]) -> dict[int, str]:
    """Return the main function of each kernel task's thread, where a switch showed that."""
    kernel_numbers = {task.number for task in decisions.tasks if task.role == "kernel"}
    counted: dict[int, Counter[str]] = {}
    for kind, running, way in zip(decisions.kinds, decisions.running, decisions.ways, strict=True):
        if running in kernel_numbers and KINDS[kind] == "switch" and way >= 0:
            outwards = (names.get(address, "") for address in decisions.paths[way])
            name = next(filter(_THREAD.fullmatch, outwards), "")
            counted.setdefault(running, Counter()).update([name] if name else [])
    return {task: counts.most_common(1)[0][0] for task, counts in counted.items() if counts}


# Main functions of the kernel's threads.
_THREAD: Final = re.compile(r"\w+_k?thread(_fn)?|kswapd|kcompactd|khugepaged")


def _namer(kernel: Mapping[int, str], located: Sequence[Mapped]) -> Namer:
    def name(space: Space, address: int) -> CostFunction:
        if address == 0:  # What a task did before the first call that was seen.
            return CostFunction(name="(start)", file="", space=space)
        if space == "kernel":
            return CostFunction(name=kernel.get(address, f"{address:#x}"), file="", space=space)
        for mapped in located:
            if address in mapped.places:
                function = mapped.program.function(address - mapped.base)
                return CostFunction(
                    name=function or f"{address - mapped.base:#x}", file=mapped.program.path, space=space
                )
        return CostFunction(name=f"{address:#x}", file="", space=space)

    return name


def _notes(costs: NamedCosts, find_package: Callable[[str], str]) -> Iterator[str]:
    nameless: Counter[tuple[Space, str]] = Counter()
    for function, cost in function_costs(costs).items():
        if function.name.startswith("0x"):
            nameless[function.space, function.file] += cost.itself
    for (space, file), instructions in nameless.most_common():
        if instructions < _LEAST_SHARE * costs.instructions:
            return
        yield _nameless_words(space, file, find_package)


_LEAST_SHARE: Final = 0.001
# Paths in a guest of Ajuste's programs, which are built without symbols: a list beside them has their names.
_BUNDLED: Final = ("/init", f"/ajuste/bin/{WORKLOADS}", f"/ajuste/bin/{SERVICE}")


def _nameless_words(space: Space, file: str, find_package: Callable[[str], str]) -> str:
    if space == "kernel":
        return "Functions of the kernel's modules, and of code that it made itself, are shown by address."
    if not file:
        return "Functions of no file, such as the vDSO's, are shown by address."
    if file in _BUNDLED:
        name = file.rpartition("/")[2]
        return f"Functions of Ajuste's own {name} are shown by address. Build it again to see their names."
    package = find_package(file)
    advice = f"Install {package} to see their names." if package else "Do not strip its symbols to see their names."
    return f"Functions of {file} without a name are shown by address. {advice}"


def _find_package(file: str) -> str:
    merged = (file, file.removeprefix("/usr") if file.startswith("/usr/") else f"/usr{file}")
    for path in merged:
        try:
            output = subprocess.run(["dpkg-query", "-S", path], capture_output=True, text=True, check=False).stdout
        except OSError:
            return ""
        name = output.partition(":")[0].strip()
        if name:
            return f"{name}-dbg" if name == "libc6" else f"{name}-dbgsym"
    return ""
