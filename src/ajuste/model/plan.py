"""The plan: what one trial writes, runs and counts, as the agent is told it.

This module and ``native/agent/src/plan.rs`` describe the same JSON document. The files under ``contract/plan`` are
parsed, compared and written again by the tests of both sides, so that neither can drift from the other.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

CONTRACT_VERSION: Final = 1

Policy = Literal["other", "batch", "idle", "fifo", "rr"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class File(_Part):
    """A tunable that is a file of its own: a sysctl, a debugfs or sysfs file."""

    kind: Literal["file"] = "file"
    path: str


class Flag(_Part):
    """One word in a file of words, as in ``/sys/kernel/debug/sched/features``: ``NAME`` is on, ``NO_NAME`` is off.

    Its value is ``"1"`` or ``"0"``; the agent writes ``NAME`` or ``NO_NAME``.
    """

    kind: Literal["flag"] = "flag"
    path: str
    name: str


class Choice(_Part):
    """A file that lists its choices with the current one in brackets or parentheses: ``none (voluntary) full``."""

    kind: Literal["choice"] = "choice"
    path: str


Location = Annotated[File | Flag | Choice, Field(discriminator="kind")]


class Read(_Part):
    """A tunable whose value is reported before anything is written."""

    tunable: str
    location: Location


class Write(_Part):
    """A tunable that gets ``value``; what was there before and what is read back afterwards are reported."""

    tunable: str
    location: Location
    value: str


class Attributes(_Part):
    """How a process is run. ``None`` leaves what the kernel would do by itself.

    ``nice`` −20 … 19; ``priority`` 1 … 99, for ``fifo`` and ``rr`` only; ``affinity`` CPU numbers;
    ``cgroup_weight`` 1 … 10000, cgroup v2's ``cpu.weight`` of a group of the process's own.
    """

    nice: int | None = Field(default=None, ge=-20, le=19)
    policy: Policy | None = None
    priority: int | None = Field(default=None, ge=1, le=99)
    affinity: tuple[int, ...] | None = None
    cgroup_weight: int | None = Field(default=None, ge=1, le=10000)


class Command(_Part):
    """A program with its arguments (no shell), its whole environment, and how it is run."""

    argv: tuple[str, ...] = Field(min_length=1)
    environment: dict[str, str] = Field(default_factory=dict)
    directory: str = "/"
    attributes: Attributes = Attributes()


class Perturbation(_Part):
    """What a seed changes, so that replicates under the virtual clock are not one and the same trial.

    ``entropy`` is mixed into the kernel's random pool (other address-space layouts), ``environment_bytes`` pads the
    environment (other stack layouts; Mytkowicz et al., ASPLOS 2009), ``start_delay_ns`` moves the start against the
    timer tick.
    """

    entropy: int = Field(default=0, ge=0, lt=2**64)
    environment_bytes: int = Field(default=0, ge=0, le=65536)
    start_delay_ns: int = Field(default=0, ge=0)


class Plan(_Part):
    """One trial. Without a ``workload`` it only writes and reads.

    ``settle_ns`` passes between the start of the background load and that of the workload. ``timeout_ns`` is for the
    workload's whole process group. ``output_limit_bytes`` is kept of each output stream, the rest is counted.
    ``counters`` are names of perf events: ``task-clock``, ``context-switches``, ``cpu-migrations``, ``page-faults``,
    ``cycles``, ``instructions``, ``cache-references``, ``cache-misses``, ``branches``, ``branch-misses``.
    """

    version: Literal[1] = CONTRACT_VERSION
    id: str
    reads: tuple[Read, ...] = ()
    writes: tuple[Write, ...] = ()
    background: tuple[Command, ...] = ()
    settle_ns: int = Field(default=0, ge=0)
    workload: Command | None = None
    timeout_ns: int = Field(default=600_000_000_000, gt=0)
    output_limit_bytes: int = Field(default=1_048_576, ge=0)
    counters: tuple[str, ...] = ()
    perturbation: Perturbation = Perturbation()
