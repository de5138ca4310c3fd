"""The choice of QEMU for a machine, installed or fetched by Ajuste, and its command line."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from pydantic import Field, ValidationError

from ajuste.machine.files import make_directory, read_kept, replace_file
from ajuste.machine.home import Home
from ajuste.machine.session import boot_id
from ajuste.model.base import BaseModel
from ajuste.model.error import AjusteError, RequestError, RunError
from ajuste.model.plan import MemoryNode, find_problem, nodes_in_words
from ajuste.model.results import DEFAULT_INSTRUCTION_NS, Clock, InstructionNs, TurnUs
from ajuste.model.topology import Topology
from ajuste.model.wording import Say
from ajuste_guest.executor.initramfs import EVENT_PORT
from ajuste_guest.kernel.qemu import fetch_qemu

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
        """Return the major and minor version."""
        major, minor = self.version.split(".")[:2]
        return int(major), int(minor)

    @property
    def environment(self) -> dict[str, str]:
        """Return the whole environment that it is started with."""
        return {"LD_LIBRARY_PATH": str(self.libraries)} if self.libraries else {}


def require_guests() -> None:
    """Raise RequestError on a machine whose agent cannot run in a guest: the kernels are those of x86_64."""
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
    paced: bool = False,
    perturbed: bool = False,
) -> Emulator:
    """Return the QEMU for such a machine: ``AJUSTE_QEMU``, the installed one if new enough, else a fetched one.

    Several CPUs under the virtual clock need QEMU 10: older ones never get to user space. By the wall clock they need
    8.1: where one CPU changes code while another one's is translated, older ones keep the old translation, and a guest
    whose kernel patches itself can hang for good (QEMU's commit deba78709ae8, "Always lock pages before translation").
    Who shares a cache can be chosen since 9.2; a ``topology`` is tested with 10.0. A guest that is ``paced`` by a
    modelled machine, or ``perturbed``, needs what several CPUs need.
    """
    require_guests()
    oldest = _OLDEST_FOR_SEVERAL_CPUS[clock] if cpus > 1 or paced or perturbed else _OLDEST
    if topology is not None:
        oldest = max(oldest, _OLDEST_FOR_A_TOPOLOGY)
    chosen = environment.get("AJUSTE_QEMU")
    if chosen:
        emulator = installed_emulator(Path(chosen).expanduser().absolute())
        if emulator.release < oldest:
            needs = f"{cpus} CPUs under the {clock} clock require"
            if paced or perturbed:
                needs = "modelled time requires" if paced else "a perturbation requires"
            if topology is not None:
                needs = "a topology requires"
            raise RequestError(
                f"AJUSTE_QEMU is QEMU {emulator.version}; {needs} {oldest[0]}.{oldest[1]} or later",
                hint="unset AJUSTE_QEMU to fetch one that fits",
            )
        return emulator
    installed = shutil.which(PROGRAM)
    if installed:
        emulator = installed_emulator(Path(installed))
        if emulator.release >= oldest:
            return emulator
    try:
        fetched = fetch_qemu(home, say)
    except AjusteError as failure:
        lacking = f"is {emulator.version}, older than {oldest[0]}.{oldest[1]}" if installed else "was not found"
        raise type(failure)(f"QEMU {lacking}, and {failure.message}", hint=failure.hint) from failure
    return Emulator(
        binary=fetched.binary, version=fetched.version, firmware=fetched.firmware, libraries=fetched.libraries
    )


def installed_emulator(binary: Path) -> Emulator:
    """Return the QEMU at ``binary``. Raises RequestError if that is none."""
    try:
        output = subprocess.run([binary, "--version"], capture_output=True, text=True, check=False, timeout=60).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RequestError(f"cannot start {binary}: {getattr(error, 'strerror', None) or error}", hint=_HINT) from error
    match = re.search(r"QEMU emulator version (\d+\.\d+[.\d]*)", output)
    if not match:
        raise RequestError(f"{binary} is not QEMU: --version prints no version of it", hint=_HINT)
    return Emulator(binary=binary, version=match[1])


# KVM is used only if a real kernel was seen to boot with it.
#
# ``/dev/kvm`` can exist, open and create machines and still not run a kernel (on nested hosts, for example).


DEVICE = Path("/dev/kvm")


class Accelerator(BaseModel):
    """``reason`` says to people why it is this one."""

    name: Literal["tcg", "kvm"]
    reason: str


class _Answer(BaseModel):
    # The result of a probe, valid for one boot of this machine, one QEMU and one kernel.
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
    """Return KVM if ``boots`` says that a trial boot with it succeeded, else emulation (TCG).

    ``boots`` boots a machine with KVM within a time limit and returns an empty text, or what went wrong. Its answer is
    kept until the next boot of this machine, for this version of QEMU (``emulator``) and this ``kernel`` (SHA-256).
    ``AJUSTE_ACCELERATOR=tcg`` skips all that. Raises RequestError for any other value of it.
    """
    choice = environment.get("AJUSTE_ACCELERATOR", "")
    if choice not in ("", "tcg"):
        raise RequestError(f"AJUSTE_ACCELERATOR is {choice!r}; expected tcg, or nothing")
    if choice == "tcg":
        return Accelerator(name="tcg", reason="AJUSTE_ACCELERATOR=tcg")
    if not DEVICE.exists():
        return Accelerator(name="tcg", reason=f"this machine has no {DEVICE}")
    if not os.access(DEVICE, os.R_OK | os.W_OK):
        return Accelerator(name="tcg", reason=f"this user may not use {DEVICE}")
    boot = boot_id()
    stored = home.state / "accelerator.json"
    with suppress(OSError, ValidationError):
        known = _Answer.model_validate_json(read_kept(stored))
        if (known.boot, known.emulator, known.kernel) == (boot, emulator, kernel):
            return known.accelerator
    accelerator = _probe(boots)
    answer = _Answer(boot=boot, emulator=emulator, kernel=kernel, accelerator=accelerator)
    make_directory(stored.parent)
    replace_file(stored, answer.model_dump_json().encode() + b"\n", mode=0o600)
    return accelerator


def _probe(boots: Callable[[], str]) -> Accelerator:
    try:
        failure = boots()
    except RunError as error:
        failure = error.message
    if failure:
        return Accelerator(name="tcg", reason=f"a trial boot with KVM failed: {failure.splitlines()[0]}")
    return Accelerator(name="kvm", reason="a trial boot with KVM succeeded")


# QEMU's command line for a machine, as a pure function.
#
# Source: qemu(1); docs/explanation/determinism.md says why each of the options of the virtual clock is needed.


PLAN_ITEM = "opt/ajuste/plan"
"""The name under which the agent finds its plan in the firmware configuration device (fw_cfg)."""

# COMMAND_LINE_SIZE of x86 without the final zero (arch/x86/include/asm/setup.h).
_LONGEST_KERNEL_LINE = 2047


class GuestMachine(BaseModel):
    """A machine to be. ``seed`` is QEMU's own; ``kernel_arguments`` are added to the kernel's command line.

    ``instruction_ns`` is how long every instruction takes under the virtual clock: a power of two. ``nodes``, if any,
    share out its CPUs and memory; a ``topology``, if any, says where its CPUs are. With ``quantum_us`` its CPUs run at
    once, and wait for each other every so many µs; else a turn of all CPUs takes ``turn_us`` µs at most. ``lens`` is
    the plugin of QEMU that keeps the clock where there are several CPUs, or QEMU cannot record. ``paced_by`` names the
    modelled machine whose time it has from its gate on, if any.
    """

    emulator: Emulator
    kernel: Path
    initramfs: Path
    clock: Clock
    accelerator: Literal["tcg", "kvm"] = "tcg"
    cpus: int = Field(default=1, ge=1, le=64)
    memory_mib: int = Field(default=256, ge=64, le=1 << 20)
    seed: int = Field(default=1, ge=0, lt=2**63)
    instruction_ns: InstructionNs = DEFAULT_INSTRUCTION_NS
    kernel_arguments: tuple[str, ...] = ()
    nodes: tuple[MemoryNode, ...] = ()
    turn_us: TurnUs | None = None
    quantum_us: TurnUs | None = None
    topology: Topology | None = None
    lens: Path | None = None
    paced_by: str = ""

    @property
    def in_words(self) -> dict[str, str]:
        """Return what a report says of it."""
        virtual = f"virtual, {self.instruction_ns} ns for each instruction"
        if self.paced_by:
            virtual = f"virtual, the time of the modelled machine {self.paced_by}"
        cpus_run = "in turns, on one clock" + (f"; all take one turn in {self.turn_us} µs" if self.turn_us else "")
        if self.quantum_us:
            cpus_run = f"at once, in quanta of {self.quantum_us} µs"
        return {
            "clock": virtual if self.clock == "virtual" else self.clock,
            "CPUs": str(self.cpus),
            **({"topology": self.topology.in_words} if self.topology else {}),
            "memory": f"{self.memory_mib} MiB",
            **({"CPUs run": cpus_run} if self.cpus > 1 and self.clock == "virtual" else {}),
            **({"nodes": nodes_in_words(self.nodes)} if self.nodes else {}),
            "machine seed": str(self.seed),
        }


@dataclass(frozen=True)
class Lens:
    """The plugin of QEMU that counts instructions: its ``library``, how deep it looks, the kernel's ``symbols``, and
    whether it writes down what the scheduler decides, and the description of the ``machine`` that is modelled, if any.
    With ``shares`` it also writes down when tasks access memory that they share.
    """

    library: Path
    depth: str
    symbols: Path
    decides: bool = False
    machine: Path | None = None
    shares: bool = False


@dataclass(frozen=True)
class Channels:
    """The files that one QEMU reads its plan from and writes to, and the inherited socket of its monitor. With a
    ``lens`` it counts, and writes the ``costs`` and perhaps the ``decisions``. ``pauses`` has when CPUs stand still,
    ``places`` at which instructions they may.
    """

    plan: Path
    console: Path
    events: Path
    monitor: int
    lens: Lens | None = None
    pauses: Path | None = None
    places: Path | None = None
    costs: Path = Path("costs")
    decisions: Path = Path("decisions")
    shared: Path = Path("shared")


def command_line(machine: GuestMachine, channels: Channels, *, restored: bool) -> list[str]:
    """Return the arguments, program first. With ``restored`` QEMU waits for a snapshot instead of booting."""
    firmware, topology = machine.emulator.firmware, machine.topology
    board = "pc"
    if topology is not None and topology.groups_of_die > 1:
        board += ",smp-cache.0.cache=l3,smp-cache.0.topology=module"  # else a die has one LLC
    return [
        str(machine.emulator.binary),
        *(("-L", str(firmware)) if firmware else ()),
        *("-M", board, "-nodefaults", "-display", "none", "-nic", "none", "-no-reboot"),
        *("-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny"),
        *_clock(machine, restored=restored),
        *("-smp", _cpus(machine), "-m", str(machine.memory_mib), "-seed", str(machine.seed)),
        *node_options(machine.nodes),
        *("-chardev", f"file,id=console,path={_escaped(channels.console)}", "-serial", "chardev:console"),
        *("-chardev", f"file,id=events,path={_escaped(channels.events)}"),
        *("-device", f"isa-debugcon,iobase={EVENT_PORT:#x},chardev=events"),
        *("-device", "pvpanic", "-device", "ib700", "-action", "panic=pause,watchdog=pause"),
        *("-fw_cfg", f"name={PLAN_ITEM},file={_escaped(channels.plan)}"),
        *("-chardev", f"socket,id=monitor,fd={channels.monitor}", "-mon", "chardev=monitor,mode=control"),
        *("-kernel", str(machine.kernel), "-initrd", str(machine.initramfs), "-append", kernel_line(machine)),
        *(("-incoming", "defer") if restored else ()),
        *_plugin(machine, channels),
    ]


def _plugin(machine: GuestMachine, channels: Channels) -> tuple[str, ...]:
    lens = channels.lens
    turn = (f"turn={machine.turn_us * 1000}",) if machine.turn_us else ()
    turn = (f"parallel={machine.quantum_us * 1000}",) if machine.quantum_us else turn
    agents = {"events": channels.events, "plan": channels.plan}
    stills = {name: file for name, file in (("pauses", channels.pauses), ("places", channels.places)) if file}
    if lens is None:
        files = agents | stills if stills else {}
        options = (f"{name}={_escaped(file)}" for name, file in files.items())
        return ("-plugin", ",".join((_escaped(machine.lens), "depth=halts", *options, *turn))) if machine.lens else ()
    files = agents | {"symbols": lens.symbols, "costs": channels.costs}
    files |= stills
    files |= {"decisions": channels.decisions} if lens.decides else {}
    files |= {"shared": channels.shared} if lens.shares else {}
    if lens.machine:
        files["machine"] = lens.machine
    options = (f"{name}={_escaped(file)}" for name, file in files.items())
    return "-plugin", ",".join((_escaped(lens.library), f"depth={lens.depth}", *options, *turn))


def kernel_line(machine: GuestMachine) -> str:
    """Return the kernel's command line. Raises RequestError for an argument that cannot be passed, or too many."""
    for argument in machine.kernel_arguments:
        if not argument or not argument.isascii() or not argument.isprintable() or " " in argument:
            raise RequestError(f"kernel argument {argument!r}: expected one word such as isolcpus=1")
    # An emulated CPU's time stamp counter is exact; with several CPUs the kernel would not believe that.
    emulated = ("tsc=reliable", *(_FOR_INTEL if machine.topology else ()))
    clock = () if machine.accelerator == "kvm" else emulated
    # Tests of ciphers that no trial uses would be a quarter of the boot.
    words = ("console=ttyS0", "quiet", "panic=-1", "nokaslr", "cryptomgr.notests", *clock, *machine.kernel_arguments)
    line = " ".join(words)
    if len(line) > _LONGEST_KERNEL_LINE:
        raise RequestError(
            f"the kernel's command line has {len(line)} characters; Linux supports at most {_LONGEST_KERNEL_LINE}"
        )
    return line


def _clock(machine: GuestMachine, *, restored: bool) -> tuple[str, ...]:
    # A real time of day would be an input from the host; so would the CPU's random numbers. Emulation carries out a
    # "fast" string instruction byte by byte, each of them counted: without those the kernel copies words.
    date = ("-rtc", "base=2020-01-01T00:00:00,clock=vm")
    emulated = ("-cpu", "max,-rdrand,-rdseed,-erms,-fsrm" + (_SHOWING_ITS_PLACE if machine.topology else ""))
    if machine.clock == "virtual":
        # QEMU's main thread moves the clock on when the CPU halts, and may see that before the last instructions are
        # counted. While QEMU records, the two wait for each other; the recording itself is of no use here. A machine
        # that records cannot be saved, nor have several CPUs (accel/tcg/icount-common.c, replay/replay-internal.c), nor
        # have carried out 2^31 instructions before. The lens does the same for those, and more slowly.
        recording = ",rr=record,rrfile=/dev/null" if restored and machine.cpus == 1 and machine.lens is None else ""
        icount = f"shift={machine.instruction_ns.bit_length() - 1},sleep=off{recording}"
        return ("-accel", "tcg,thread=single", *emulated, "-icount", icount, *date)
    if machine.accelerator == "kvm":
        return ("-accel", "kvm", "-cpu", "host", *date)
    return ("-accel", "tcg,thread=multi", *emulated, *date)


def _escaped(path: Path) -> str:
    # A value inside an option: QEMU takes a comma as the end of it, and two as one.
    return str(path).replace(",", ",,")


# Options of QEMU for a machine with several nodes of memory.
#
# Source: qemu(1), -numa; ACPI's tables SRAT and SLIT are what the guest's kernel reads of it.


def node_options(nodes: Sequence[MemoryNode]) -> Iterator[str]:
    """Return arguments for ``nodes``, whose CPUs are numbered in their order; none for a machine without."""
    first_cpu = 0
    for number, node in enumerate(nodes):
        yield from ("-object", f"memory-backend-ram,id=node{number},size={node.memory_mib}M")
        cpus = f",cpus={first_cpu}-{first_cpu + node.cpus - 1}" if node.cpus else ""
        yield from ("-numa", f"node,nodeid={number}{cpus},memdev=node{number}")
        first_cpu += node.cpus
    for number, node in enumerate(nodes):
        for other, distance in enumerate(node.distances):
            if other != number:
                yield from ("-numa", f"dist,src={number},dst={other},val={distance}")


@dataclass(frozen=True)
class GuestLayout:
    """A guest's memory, how its ``nodes`` share it, if it has any, and where its CPUs are, if the study sets that."""

    memory_mib: int
    nodes: tuple[MemoryNode, ...] = ()
    topology: Topology | None = None


def checked_layout(layout: GuestLayout, cpus: int) -> GuestLayout:
    """Return ``layout``, if it is one of a machine with so many CPUs. Raises RequestError."""
    problem = layout.topology.problem_with(cpus, layout.nodes) if layout.topology else ""
    if problem := problem or find_problem(layout.nodes, cpus, layout.memory_mib):
        raise RequestError(problem)
    return layout


# Options of QEMU for a machine whose topology is given.
#
# Among emulated CPUs only those of Intel show threads, dies, and who shares a cache (CPUID leaves 4 and 0x1f;
# target/i386/cpu.c). ``level`` is above all leaves that it has: what asks for one that is not there, as the firmware
# does, is given the highest, and QEMU 10.0 ends itself where that is 0x1f. As an Intel CPU it would wait for
# interrupts by MWAIT, which emulation never ends, and be taken for one with the flaw Meltdown: the kernel would empty
# the TLBs at each system call.


_SHOWING_ITS_PLACE: Final = ",-monitor,vendor=GenuineIntel,family=6,model=85,stepping=4,level=32"
_FOR_INTEL: Final = ("pti=off",)


def _cpus(machine: GuestMachine) -> str:
    topology = machine.topology
    if topology is None:
        return str(machine.cpus)
    sizes = {"sockets": topology.sockets, "dies": topology.dies}
    if topology.groups_of_die > 1:
        sizes["modules"] = topology.groups_of_die
    sizes |= {"cores": topology.cores_of_group, "threads": topology.threads}
    return ",".join((str(machine.cpus), *(f"{name}={size}" for name, size in sizes.items())))
