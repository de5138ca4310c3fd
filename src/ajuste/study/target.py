"""The table of a study file on where it is measured."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, StringConstraints, TypeAdapter, ValidationError, model_validator

from ajuste.model.plan import CpuPause, MemoryNode, Perturbation, find_problem
from ajuste.model.results import DEFAULT_INSTRUCTION_NS, Clock, InstructionNs, Time, TurnUs
from ajuste.model.topology import MOST_CPUS, Topology
from ajuste.study.job import Argument, Claimed, StudyTable, Whole

PACKAGE_PATTERN: Final = r"^[a-z0-9][a-z0-9+.-]{1,90}(/[a-z]{1,30})?$"
# A package of a distribution, and after a slash its release, if one is given.
PackageName = Annotated[str, StringConstraints(pattern=PACKAGE_PATTERN)]
# Default memory of a guest with packages: the files of a guest are in its memory.
MEMORY_WITH_PACKAGES_MIB: Final = 512


class MachineTable(StudyTable):
    """A machine to model: what its caches, TLBs and branch predictor would make of the guest."""

    model: str = Field(
        min_length=1, description="zen4-8c, skylake-server, textbook, or a TOML file beside the study: ./mine.toml."
    )


class PerturbationTable(StudyTable):
    """The same chance in every trial, instead of another one in each block: what `ajuste hunt` found."""

    entropy: Whole = Field(default=0, ge=0, lt=2**64, description="Mixed into the kernel's random pool.")
    environment_bytes: Whole = Field(
        default=0, ge=0, le=65536, description="The size of a variable that is added to the environment of programs."
    )
    start_delay_ns: Whole = Field(
        default=0, ge=0, le=10**10, description="How long a trial waits before its start, in ns."
    )
    kernel_sha256: str = Field(
        default="",
        pattern="^([0-9a-f]{64})?$",
        exclude_if=lambda digest: not digest,
        description="The kernel whose moments the pauses are, by the SHA-256 of its image: another one is refused.",
    )
    pauses: tuple[CpuPause, ...] = Field(
        default=(), alias="pause", max_length=10_000, description="When CPUs of the guest stand still."
    )

    @property
    def of_trials(self) -> Perturbation:
        """Return what a plan has of it: pauses are the machine's."""
        return Perturbation(
            entropy=self.entropy, environment_bytes=self.environment_bytes, start_delay_ns=self.start_delay_ns
        )


class TargetTable(StudyTable):
    """The target: where it is measured."""

    kind: Literal["vm", "host"] = Field(
        default="vm", description="vm: a virtual machine; host: this machine, with its kernel, CPUs and clock."
    )
    kernel: str | None = Field(
        default=None,
        description="debian:5.10, debian:6.12/rt, build:debian:6.1+NUMA=n, path:VMLINUZ …; conflicts with a factor "
        "kernel.",
    )
    clock: Clock = Field(
        default="virtual", description="virtual: instructions counted, bit-exact; wall: the host's time."
    )
    instruction_ns: InstructionNs = Field(
        default=DEFAULT_INSTRUCTION_NS,
        description="Nanoseconds per instruction under the virtual clock: 1, 2, 4, 8 or 16. A slower guest CPU makes "
        "trials faster.",
    )
    time: Time = Field(
        default="instructions",
        exclude_if=lambda time: time == "instructions",
        description="What takes time under the virtual clock. instructions: each takes instruction_ns; modelled: each "
        "takes what it takes on the machine to model, with its frequency, caches and memory.",
    )
    cpus: Whole = Field(default=1, ge=1, le=MOST_CPUS, description="CPUs of the machine.")
    memory_mib: Whole = Field(default=256, ge=64, le=1048576, description="Memory of the machine, in MiB.")
    nodes: tuple[MemoryNode, ...] = Field(
        default=(),
        alias="node",
        max_length=16,
        description="Nodes of memory (NUMA), which share out the machine's cpus and memory_mib; these are then sums.",
    )
    turn_us: TurnUs | None = Field(
        default=None,
        exclude_if=lambda turn: turn is None,
        description="CPUs that run at once wait for each other every so many µs (default: 2). With parallel = false "
        "all take one turn in at most so many µs (default: until the next timer).",
    )
    parallel: bool | None = Field(
        default=None,
        exclude_if=lambda parallel: parallel is None,
        description="Whether several CPUs run at once, each with a clock of its own (default: if QEMU supports it). "
        "With false they take turns on one clock.",
    )
    modules: tuple[Argument, ...] = Field(
        default=(),
        description="Kernel modules to load before the trials, with parameters if need be: 'null_blk memory_backed=1'.",
    )
    packages: tuple[PackageName, ...] = Field(
        default=(),
        exclude_if=lambda packages: not packages,
        description="Debian packages that the guest has, with all that they require: redis-server; redis-server/trixie "
        "for another release than bookworm. memory_mib is then 512 by default.",
    )
    prove: tuple[Claimed, ...] = Field(
        default=(),
        description="Features to prove of every kernel before measuring (ajuste kernel prove): numa; no-numa for "
        "absence; hz=250 for a value.",
    )
    kernel_arguments: tuple[Argument, ...] = Field(default=(), description="More words for the kernel's command line.")
    machine: MachineTable | None = Field(
        default=None,
        exclude_if=lambda machine: machine is None,
        description="A machine to model. Unless time is modelled, it changes nothing in the guest and no other metric.",
    )
    topology: Topology | None = Field(
        default=None,
        exclude_if=lambda topology: topology is None,
        description="Where the CPUs of the guest are. The guest has it, and a machine to model uses it.",
    )
    perturbation: PerturbationTable | None = Field(
        default=None,
        exclude_if=lambda perturbation: perturbation is None,
        description="The chance that all trials have alike.",
    )

    @property
    def on_host(self) -> bool:
        """Return whether this machine itself is measured, not a guest."""
        return self.kind == "host"

    @model_validator(mode="before")
    @classmethod
    def _clock_of_host(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("kind") == "host":
            return {"clock": "wall", **data}
        return data

    @model_validator(mode="before")
    @classmethod
    def _size_of_its_parts(cls, data: Any) -> Any:
        # The machine's CPUs and memory are those of its nodes, and its CPUs those of its topology, where the study does
        # not say them as well.
        if not isinstance(data, dict):
            return data
        memory = {"memory_mib": MEMORY_WITH_PACKAGES_MIB} if data.get("packages") else {}
        return {**memory, **_size_of_nodes(data), **_size_of_topology(data), **data}

    @model_validator(mode="after")
    def _parts_make_up_the_machine(self) -> Self:
        if problem := self.topology.problem_with(self.cpus, self.nodes) if self.topology else "":
            raise ValueError(problem)
        if problem := find_problem(self.nodes, self.cpus, self.memory_mib):
            raise ValueError(problem)
        return self

    @model_validator(mode="after")
    def _clock_suits_the_machine(self) -> Self:
        if self.kind == "host" and self.clock != "wall":
            raise ValueError('the virtual clock is not supported on the host; use kind = "vm"')
        if self.turn_us is not None and (self.clock != "virtual" or self.cpus < 2):
            raise ValueError("turn_us requires the virtual clock and at least 2 cpus")
        if self.parallel is not None and (self.clock != "virtual" or self.cpus < 2):
            raise ValueError("parallel requires the virtual clock and at least 2 cpus")
        if self.perturbation is not None:
            self._check_perturbation(self.perturbation)
        if self.time == "modelled" and (self.clock != "virtual" or self.machine is None):
            raise ValueError('time = "modelled" requires the virtual clock and a machine to model ([target.machine])')
        if self.time == "modelled" and self.parallel is False:
            raise ValueError('time = "modelled" conflicts with parallel = false: each CPU has a clock of its own')
        return self

    def _check_perturbation(self, perturbation: PerturbationTable) -> None:
        if self.clock != "virtual":
            raise ValueError("perturbation requires the virtual clock")
        if self.parallel is False and perturbation.pauses:
            raise ValueError("pauses conflict with parallel = false: each CPU needs a clock of its own")
        if beyond := [pause.cpu for pause in perturbation.pauses if pause.cpu >= self.cpus]:
            raise ValueError(f"CPU {beyond[0]} has a pause; expected CPUs from 0 to {self.cpus - 1}")


def _size_of_nodes(target: dict[str, Any]) -> dict[str, int]:
    if not (nodes := target.get("node", target.get("nodes"))):
        return {}
    try:
        checked = TypeAdapter(tuple[MemoryNode, ...]).validate_python(nodes)
    except ValidationError:  # The field itself reports it.
        return {}
    cpus = max(1, sum(node.cpus for node in checked))
    return {"cpus": cpus, "memory_mib": sum(node.memory_mib for node in checked)}


def _size_of_topology(target: dict[str, Any]) -> dict[str, int]:
    if (topology := target.get("topology")) is None:
        return {}
    try:
        return {"cpus": Topology.model_validate(topology).cpus}
    except ValidationError:
        return {}
