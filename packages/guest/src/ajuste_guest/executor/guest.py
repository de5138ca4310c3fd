"""The target ``vm``: a real kernel in QEMU. Every plan starts from the same machine, a snapshot taken after boot."""

from __future__ import annotations

import os
import shlex
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Self, TypedDict

import psutil

from ajuste.executor.executor import NOTES, Depth, Executor
from ajuste.executor.stream import new_key, read_trial, with_key
from ajuste.machine.home import Home
from ajuste.model.cost import Costs, NamedCosts
from ajuste.model.decision import Decisions, NamedDecisions
from ajuste.model.error import RequestError
from ajuste.model.event import Hello
from ajuste.model.kernel import KernelImage
from ajuste.model.modelled import ModelledMachine
from ajuste.model.plan import CpuPause, MemoryNode, Plan
from ajuste.model.results import (
    DEFAULT_INSTRUCTION_NS,
    DEFAULT_QUANTUM_US,
    PACED_QUANTUM_NS,
    Clock,
    InstructionNs,
    TurnUs,
)
from ajuste.model.topology import MOST_CPUS, Topology
from ajuste.model.trial import Observation
from ajuste.model.wording import Say
from ajuste_guest.executor import snapshot as booted
from ajuste_guest.executor.initramfs import GuestFiles, Initramfs, build_initramfs
from ajuste_guest.executor.lens import (
    Counting,
    GuestNames,
    function_at,
    lens_for,
    lens_of_turns,
    name_costs,
    name_decisions,
    read_counted,
    read_numbers,
    require_fit,
    require_plugins,
    why_not_at_once,
)
from ajuste_guest.executor.machine import DidNotStart, MachineLimit, Places, RunningMachine, hold, require_intact
from ajuste_guest.executor.qemu import (
    Accelerator,
    Emulator,
    GuestLayout,
    GuestMachine,
    Lens,
    checked_layout,
    choose_accelerator,
    choose_emulator,
)
from ajuste_guest.executor.snapshot import Booted, BootFailure, Damaged, NotRestored, Snapshot, restore
from ajuste_guest.session import MachineSession

_BOOT_PLAN = Plan(id="boot")
_PACED = ("with the time of a modelled machine", 'time = "modelled"')
_PAUSED = ("with a perturbation", "perturbation")
_PROBE_LIMIT = MachineLimit(host_s=30)
_MEMORY_OF_QEMU_MIB = 150
# QEMU records no machine that has carried out 2^31 instructions: unpacking takes about 2.2 for each byte.
_MOST_RECORDED_BYTES = 192 << 20


@dataclass(frozen=True)
class _Ready:
    # The resources of an entered guest. `kept_as` is the name of the snapshot in the cache, if it came from there.
    session: MachineSession
    machine: GuestMachine
    initramfs: Initramfs
    hello: Hello
    snapshot: Snapshot | None
    kept_as: str
    environment: dict[str, str]
    parallel: int
    names: GuestNames


class GuestOptions(TypedDict):
    """The options of ``GuestExecutor`` that do not depend on the machine that runs the guest."""

    clock: Clock
    cpus: int
    memory_mib: int
    seed: int
    instruction_ns: InstructionNs
    home: Home
    snapshot: bool
    kernel_arguments: tuple[str, ...]
    nodes: tuple[MemoryNode, ...]
    turn_us: TurnUs | None
    parallel: bool | None
    topology: Topology | None
    pauses: tuple[CpuPause, ...] | None
    paced_by: ModelledMachine | None
    say: Say


class GuestExecutor(Executor):
    """A guest with the given kernel and files.

    ``clock`` ``virtual``: time is counted in instructions (``instruction_ns`` each), and everything is exact to the
    bit. ``wall``: the time of this machine. ``snapshot=False`` boots anew for every plan: under the virtual clock with
    the same result. ``files`` may be packed already, for this very kernel and clock. ``nodes`` share out its CPUs and
    memory; a ``topology`` says where the CPUs are. Several CPUs run at once under the virtual clock, in quanta of
    ``turn_us``, if QEMU supports that; with ``parallel=False`` they take turns. From the gate on the time of each CPU
    is that of the modelled machine ``paced_by``, if any; with ``pauses``, which may be none, even a single CPU has a
    clock of its own, by which it can stand still. ``jobs`` limits how many guests run at once. Entering raises
    RequestError for a kernel that does not boot, or files that it cannot be given.
    """

    def __init__(
        self,
        image: KernelImage,
        *,
        clock: Clock,
        cpus: int = 1,
        memory_mib: int = 256,
        seed: int = 1,
        instruction_ns: InstructionNs = DEFAULT_INSTRUCTION_NS,
        files: GuestFiles | Initramfs,
        home: Home,
        snapshot: bool = True,
        jobs: int | None = None,
        kernel_arguments: tuple[str, ...] = (),
        nodes: tuple[MemoryNode, ...] = (),
        turn_us: TurnUs | None = None,
        parallel: bool | None = None,
        topology: Topology | None = None,
        pauses: tuple[CpuPause, ...] | None = None,
        paced_by: ModelledMachine | None = None,
        say: Say = lambda _: None,
    ) -> None:
        self._image = image
        self._clock: Clock = clock
        self._cpus = _within(cpus, "CPUs", 1, MOST_CPUS)
        self._memory_mib = _within(memory_mib, "MiB of memory", 64, 1 << 20)
        self._seed = _within(seed, "as a seed", 0, 2**63 - 1)
        self._instruction_ns: InstructionNs = instruction_ns
        self._files = files
        self._home = home
        self._snapshot = snapshot
        self._jobs = jobs
        self._kernel_arguments = kernel_arguments
        self._turn_us = turn_us
        self._in_parallel = parallel
        self._layout = checked_layout(GuestLayout(memory_mib, nodes, topology), cpus)
        self._paced_by = paced_by
        self._pauses = pauses
        if not snapshot and (paced_by is not None or pauses is not None):
            # A trial after a boot in the same QEMU is another one than from a snapshot, which only repeats itself.
            what, field = _PACED if pauses is None else _PAUSED
            raise RequestError(
                f"a guest {what} starts every trial from a snapshot",
                hint=f"remove --no-snapshot, or {field} from [target]",
            )
        self._say = say
        self._stack = ExitStack()
        self._ready: _Ready | None = None
        self._renewing = threading.Lock()
        self._left = False
        self._notes: list[str] = []

    @property
    def hello(self) -> Hello:
        return self._entered.hello

    @property
    def environment(self) -> dict[str, str]:
        return self._entered.environment | ({NOTES: " ".join(self._notes)} if self._notes else {})

    @property
    def parallel(self) -> int:
        return self._entered.parallel

    @property
    def _entered(self) -> _Ready:
        assert self._ready is not None, "the target was not entered"
        return self._ready

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            emulator = choose_emulator(
                self._clock,
                self._cpus,
                self._home,
                self._say,
                topology=self._layout.topology,
                paced=self._paced_by is not None,
                perturbed=self._pauses is not None,
            )
            session = stack.enter_context(MachineSession(self._home))
            hold(stack, self._home, self._image.vmlinuz, emulator.binary)
            if isinstance(self._files, Initramfs):
                initramfs = self._files
            else:
                place, quiet_gate = session.directory / "initramfs", self._clock == "virtual"
                initramfs = build_initramfs(self._files, self._image, place, quiet_gate=quiet_gate)
            hold(stack, self._home, initramfs.path)
            if self._memory_mib < (least := initramfs.least_memory_mib):
                raise RequestError(
                    f"{self._memory_mib} MiB of memory are not enough; this guest's files require at least {least} MiB",
                    hint=f"set --memory {-(-least // 256) * 256}, or memory_mib of [target]",
                )
            accelerator = self._choose_accelerator(emulator, initramfs, session)
            machine = self._machine(emulator, initramfs, accelerator.name)
            self._ready = self._prepare(session, machine, initramfs, accelerator, stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._left = True
        self._stack.close()

    def run(self, plan: Plan) -> Observation:
        return self._run(plan, None)

    def run_paused(self, plan: Plan, pauses: Sequence[CpuPause], depth: Depth | None = None) -> Observation:
        """Carry out ``plan`` with these pauses instead of the guest's own, and count to that ``depth``, if any."""
        assert self._pauses is not None, "its CPUs have no clocks of their own"
        counting = None if depth is None else Counting(self._lens(depth, self._paced_by), self._paced_by)
        return self._run(plan, counting, pauses)

    def count(self, plan: Plan, depth: Depth, machine: ModelledMachine | None = None) -> Observation:
        if self._clock == "wall":
            return super().count(plan, depth, machine)
        machine, pacing = machine or self._paced_by, self._paced_by
        if pacing is not None and machine != pacing:
            raise RequestError(
                f"the guest has the time of the modelled machine {pacing.name}, so no other can be modelled",
                hint='name the same machine, or remove time = "modelled" from [target]',
            )
        return self._run(plan, Counting(self._lens(depth, machine), machine))

    def run_at_places(self, plan: Plan, places: Places) -> tuple[Observation, tuple[CpuPause, ...]]:
        """Carry out ``plan`` with pauses at ``places``, and return which there were: they repeat it."""
        made: list[tuple[int, int, int]] = []
        observation = self._run(plan, None, (), lambda running: made.extend(read_numbers(running.made)), places)
        pauses = (CpuPause(cpu=cpu, at_ns=at_ns, for_ns=for_ns) for cpu, at_ns, for_ns in made)
        return observation, tuple(pauses)

    def shared_accesses(self, plan: Plan, pauses: Sequence[CpuPause] = ()) -> tuple[tuple[int, int, int], ...]:
        """Return when tasks of user space have accessed memory that they share, in a trial with these pauses: the CPU,
        ns since the workload's start, and the instruction's address, in the order of time. A pause from that time on
        comes between it and the next instruction. Raises RequestError where the lens lacks something.
        """
        accesses: list[tuple[int, int, int]] = []
        lens = replace(self._lens("counts", self._paced_by), shares=True)
        self._run(
            plan, Counting(lens, self._paced_by), pauses, lambda running: accesses.extend(read_numbers(running.shared))
        )
        return tuple(accesses)

    def _lens(self, depth: Depth, machine: ModelledMachine | None) -> Lens:
        if machine is not None:
            require_fit(machine, self._cpus, self._layout)
        ready = self._entered
        require_plugins(ready.machine.emulator)
        quantum_ns = self._turn_us * 1000 if self._turn_us else PACED_QUANTUM_NS
        return lens_for(
            depth,
            ready.names,
            ready.session.directory,
            machine,
            self._layout,
            quantum_ns if self._paced_by else None,
        )

    def named(self, costs: Costs) -> NamedCosts:
        return name_costs(costs, self._entered.names)

    def function_at(self, costs: Costs, address: int) -> str:
        """Return the function of user space at ``address``, where ``costs`` are of a trial that carried it out."""
        return function_at(costs, self._entered.names.programs, address)

    def named_decisions(self, costs: Costs, decisions: Decisions) -> NamedDecisions:
        return name_decisions(decisions, costs, self._instruction_ns, self._entered.names)

    def _run(
        self,
        plan: Plan,
        counting: Counting | None,
        pauses: Sequence[CpuPause] | None = None,
        read: Callable[[RunningMachine], None] = lambda _: None,
        places: Places | None = None,
    ) -> Observation:
        ready, pauses = self._entered, (self._pauses or ()) if pauses is None else pauses
        try:
            return self._carry_out(plan, ready, counting, pauses, read, places)
        except NotRestored as error:
            return self._carry_out(plan, self._renewed(ready, error), counting, pauses, read, places)

    def _carry_out(
        self,
        plan: Plan,
        ready: _Ready,
        counting: Counting | None,
        pauses: Sequence[CpuPause],
        read: Callable[[RunningMachine], None],
        places: Places | None,
    ) -> Observation:
        began = time.monotonic()
        lens = counting.lens if counting else None
        if lens is None and self._paced_by is not None:
            lens = self._lens("counts", self._paced_by)
        if ready.snapshot is None:
            require_intact(self._checksums(ready.machine, ready.initramfs))
        restored = ready.snapshot is not None
        key = new_key()
        with RunningMachine(
            ready.machine,
            ready.session,
            with_key(plan, key),
            restored=restored,
            lens=lens,
            pauses=pauses,
            places=places,
        ) as running:
            before = b""
            if ready.snapshot is not None:
                restore(running, ready.snapshot)
            else:
                try:
                    booted.await_gate(running)
                except BootFailure as failure:
                    problem = f"the guest did not boot: {failure}"
                    return Observation(problem=problem, console=failure.console, host_seconds=time.monotonic() - began)
                before = running.events()
                running.let_monitor_rest()
            running.resume()
            outcome = running.wait(MachineLimit.of(plan, self._clock))
            stream = read_trial(running.events()[len(before) :], plan, key=key)
            console = running.console()
            read(running)
            problem = booted.what_went_wrong(running, outcome, console) or stream.problem
            costs, decisions = None, None
            if counting and plan.workload and not problem:
                costs, decisions, problem = read_counted(running, counting)
        return Observation(
            lines=stream.lines,
            events=stream.events,
            problem=problem,
            console=console,
            host_seconds=time.monotonic() - began,
            costs=costs,
            decisions=decisions,
        )

    def _checksums(self, machine: GuestMachine, initramfs: Initramfs) -> dict[Path, str]:
        return {machine.kernel: self._image.sha256, initramfs.path: initramfs.sha256}

    def _renewed(self, ready: _Ready, error: NotRestored) -> _Ready:
        # QEMU refused a cached snapshot, perhaps in several threads at once: only the first of them boots anew.
        with self._renewing:
            if self._entered is not ready:
                return self._entered
            if self._left or not ready.kept_as:
                raise error
            booted.drop(self._home, ready.kept_as)
            self._note_dropped(f"QEMU rejected it: {error.message}")
            at_gate, snapshot = self._boot(ready.session, ready.machine, ready.initramfs, saved=True)
            assert snapshot is not None, "it was to be saved"
            self._stack.enter_context(snapshot)
            booted.keep(self._home, ready.kept_as, at_gate, snapshot)
            self._ready = replace(ready, hello=at_gate.hello, snapshot=snapshot, kept_as="")
            return self._ready

    def _note_dropped(self, why: str) -> None:
        note = (
            f"The kept snapshot of {self._image.spec} could not be used ({why}). It was dropped, and the machine "
            "booted anew."
        )
        self._notes.append(note)
        self._say(note)

    def _choose_accelerator(self, emulator: Emulator, initramfs: Initramfs, session: MachineSession) -> Accelerator:
        if self._clock == "virtual":
            return Accelerator(name="tcg", reason="the virtual clock counts emulated instructions")

        def boots() -> str:
            self._say("trying KVM")
            machine = self._machine(emulator, initramfs, "kvm")
            with RunningMachine(machine, session, with_key(_BOOT_PLAN, new_key())) as running:
                try:
                    booted.await_gate(running, _PROBE_LIMIT)
                except BootFailure as failure:
                    return str(failure)
            return ""

        return choose_accelerator(self._home, emulator.version, self._image.sha256, boots)

    def _machine(self, emulator: Emulator, initramfs: Initramfs, accelerator: Literal["tcg", "kvm"]) -> GuestMachine:
        is_counted = self._clock == "virtual"
        has_clocks = self._cpus > 1 or self._paced_by is not None or self._pauses is not None
        unrecorded = has_clocks or initramfs.size_bytes > _MOST_RECORDED_BYTES
        lens = lens_of_turns(emulator, self._turn_us) if is_counted and unrecorded else None
        at_once = is_counted and has_clocks and self._runs_at_once(emulator, lens)
        return GuestMachine(
            emulator=emulator,
            kernel=self._image.vmlinuz.resolve(),
            initramfs=initramfs.path,
            clock=self._clock,
            accelerator=accelerator,
            cpus=self._cpus,
            memory_mib=self._memory_mib,
            seed=self._seed,
            instruction_ns=self._instruction_ns,
            kernel_arguments=self._kernel_arguments,
            nodes=self._layout.nodes,
            topology=self._layout.topology,
            turn_us=None if at_once else self._turn_us,
            quantum_us=self._turn_us or DEFAULT_QUANTUM_US if at_once else None,
            lens=lens,
            paced_by=self._paced_by.name if self._paced_by else "",
        )

    def _runs_at_once(self, emulator: Emulator, lens: Path | None) -> bool:
        if self._in_parallel is False:
            return False
        lacking = why_not_at_once(emulator) if lens else "the lens cannot be loaded"
        if lacking and (self._in_parallel or self._paced_by or self._pauses is not None):
            instead = 'remove time = "modelled" from' if self._paced_by else "set parallel = false in"
            instead = instead if self._pauses is None else "remove perturbation from"
            raise RequestError(
                f"CPUs of a guest cannot run at once here: {lacking}",
                hint=f"unset AJUSTE_QEMU to fetch a QEMU that fits; or {instead} [target]",
            )
        if lacking:
            self._notes.append(
                f"The {self._cpus} CPUs of the guest share one clock ({lacking}): what one executes takes time from "
                "the others. Trust placement and counts, not the time of parallel work."
            )
        return not lacking

    def _prepare(
        self,
        session: MachineSession,
        machine: GuestMachine,
        initramfs: Initramfs,
        accelerator: Accelerator,
        stack: ExitStack,
    ) -> _Ready:
        at_gate, snapshot, kept_as = self._at_gate(session, machine, initramfs)
        if snapshot is not None:
            stack.enter_context(snapshot)
        environment = {
            "kernel": at_gate.hello.kernel,
            "kernel build": at_gate.hello.build,
            "kernel package": self._image.package or str(self._image.vmlinuz),
            "QEMU": machine.emulator.version,
            "accelerator": f"{accelerator.name} ({accelerator.reason})",
            **machine.in_words,
            "command line": at_gate.command_line,
            "initramfs": f"sha256:{initramfs.sha256}",
            "snapshot": "yes" if snapshot else "no",
            "boot": f"{at_gate.gate.at_ns / 1e9:.3f} s of the guest's time",
        }
        at_once = 1
        if self._clock != "wall":
            by_cpus = self._jobs or len(os.sched_getaffinity(0))
            by_memory = psutil.virtual_memory().available // ((self._memory_mib + _MEMORY_OF_QEMU_MIB) << 20)
            at_once = max(1, min(by_cpus, by_memory))
        names = GuestNames(self._image, self._home, initramfs.path)
        return _Ready(session, machine, initramfs, at_gate.hello, snapshot, kept_as, environment, at_once, names)

    def _at_gate(
        self, session: MachineSession, machine: GuestMachine, initramfs: Initramfs
    ) -> tuple[Booted, Snapshot | None, str]:
        # Under the virtual clock equal machines boot to equal bytes: the snapshot is cached by a hash of all inputs.
        if not self._snapshot or self._clock == "wall":
            return *self._boot(session, machine, initramfs, saved=self._snapshot), ""
        name = booted.snapshot_name(machine, self._image.sha256, initramfs.sha256)
        try:
            stored = booted.find(self._home, name)
        except Damaged as damage:
            self._note_dropped(str(damage))
            stored = None
        if stored is not None:
            return *stored, name
        at_gate, snapshot = self._boot(session, machine, initramfs, saved=True)
        assert snapshot is not None, "it was to be saved"
        booted.keep(self._home, name, at_gate, snapshot)
        return at_gate, snapshot, ""

    def _boot(
        self, session: MachineSession, machine: GuestMachine, initramfs: Initramfs, *, saved: bool
    ) -> tuple[Booted, Snapshot | None]:
        require_intact(self._checksums(machine, initramfs))
        self._say(f"booting {self._image.spec}")
        try:
            with RunningMachine(machine, session, with_key(_BOOT_PLAN, new_key())) as running:
                arrival = booted.await_gate(running)
                snapshot = Snapshot.of_machine(running) if saved else None
                at_gate = Booted(
                    hello=arrival.hello,
                    gate=arrival.gate,
                    command_line=shlex.join(running.arguments).replace(str(session.directory), "SESSION"),
                    snapshot_sha256=snapshot.sha256 if snapshot else "",
                )
                return at_gate, snapshot
        except DidNotStart as error:
            raise RequestError(
                f"cannot boot {self._image.spec}: {error.message}", hint="change the guest's kernel, CPUs or memory"
            ) from error
        except BootFailure as failure:
            raise RequestError(
                f"{self._image.spec} ({self._image.release}) did not come up in a guest: {failure}. The last lines "
                f"of its console:\n{failure.last_lines or '(nothing was printed)'}",
                hint=booted.likely_causes(self._image.config, failure.console),
                of_candidate="No space left" not in str(failure),
            ) from failure


def _within(number: int, what: str, least: int, most: int) -> int:
    if not least <= number <= most:
        raise RequestError(f"a guest cannot have {number} {what}; expected {least} to {most}")
    return number
