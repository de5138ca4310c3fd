"""Resolved studies: every configuration on given kernels, with all that it writes and runs."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Mapping
from typing import NamedTuple

from pydantic import Field

from ajuste.model.base import BaseModel
from ajuste.model.boot import BootState
from ajuste.model.explained import Explained
from ajuste.model.live import LiveDesign
from ajuste.model.metric import Metric, PredictionRule
from ajuste.model.modelled import ModelledMachine
from ajuste.model.plan import Command, Ready, ReadySettled, Sampler, Scratch, Write
from ajuste.model.search import Leg, Search
from ajuste.model.trial import Configuration, Factor
from ajuste.outputs.pattern import Pattern, Pointer
from ajuste.outputs.timeline_metrics import Timeline
from ajuste.study.metrics import wants_instructions, wants_modelled
from ajuste.study.schema import Study


class Load(BaseModel):
    """The background load of a command, by its number in the study (from 1), whether it is ``endless``: must not
    end by itself, and when it is ``ready``.
    """

    number: int
    endless: bool
    ready: Ready = ReadySettled()


class Service(BaseModel):
    """A service of a trial: its ``command`` as it is run, and when it is ``ready``, as ``ajuste-service`` reads it."""

    name: str
    command: Command
    ready: str


class Machine(NamedTuple):
    """The machine of a configuration: a kernel by its spec (empty on a host), with words for its command line besides
    the study's.
    """

    kernel: str
    arguments: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Return the machine's name for people."""
        kernel = self.kernel or "host"
        return f"{kernel} with {' '.join(self.arguments)}" if self.arguments else kernel


class ResolvedConfiguration(BaseModel):
    """A configuration as it is carried out: ``kernel`` is the spec to boot (empty on the host) with
    ``kernel_arguments`` more than the study's, ``writes`` in the factors' order. ``before`` and ``after`` run in every
    trial and are not measured; they also start and stop ``services``. ``loads`` tells of each command of ``background``
    where it comes from. ``modules`` are kernel modules of Ajuste's own that its machine needs, ``scheduler`` is the BPF
    scheduler (sched_ext) that is loaded before the workload, empty for the kernel's own. ``boot`` is what this machine
    boots for it, where it reboots.
    """

    configuration: Configuration
    kernel: str
    writes: tuple[Write, ...] = ()
    workload: Command
    background: tuple[Command, ...] = ()
    loads: tuple[Load, ...] = ()
    kernel_arguments: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    scheduler: str = ""
    scratch: Scratch | None = None
    before: tuple[Command, ...] = ()
    after: tuple[Command, ...] = ()
    services: tuple[Service, ...] = Field(default=(), exclude_if=lambda services: not services)
    boot: BootState | None = Field(default=None, exclude_if=lambda boot: boot is None)

    @property
    def machine(self) -> Machine:
        """Return the machine that carries it out."""
        return Machine(self.kernel, self.kernel_arguments)


class ResolvedStudy(BaseModel):
    """A study that can be run.

    ``deciding`` metrics get verdicts that decide when to stop, ``described`` ones are candidates: those that are
    measured are shown. ``counters`` are the perf events to ask for. ``parser`` reads the workload's output, or
    ``patterns`` and ``pointers`` do. ``shares`` asks for the shares of the CPU too; ``rule`` predicts metrics.
    ``programs`` are absolute paths of this machine to take along, ``files`` the study's own, by name below ``/study``,
    as absolute paths of this machine. ``setup`` and ``cleanup`` run once, before all trials and after them (on a host;
    in a guest they are part of every trial). ``samplers`` go on for the study's ``observe_s`` after the workload's end,
    and ``timelines`` are the metrics computed from what they read. With a ``search`` the ``configurations`` are those
    that were resolved so far, and ``legs`` say what each block is for. ``modelled`` is the
    machine that is modelled, if any. ``modules`` are those of the kernel that levels need. ``live`` is how slices of a
    running service are measured, where that is asked.
    """

    study: Study
    factors: tuple[Factor, ...]
    configurations: tuple[ResolvedConfiguration, ...]
    deciding: tuple[Metric, ...]
    described: tuple[Metric, ...]
    counters: tuple[str, ...]
    parser: str = ""
    patterns: tuple[Pattern, ...] = ()
    pointers: tuple[Pointer, ...] = ()
    shares: bool = False
    rule: PredictionRule | None = None
    setup: tuple[Command, ...] = ()
    cleanup: tuple[Command, ...] = ()
    samplers: tuple[Sampler, ...] = ()
    timelines: tuple[Timeline, ...] = ()
    programs: tuple[str, ...] = ()
    files: dict[str, str] = {}
    explained: tuple[Explained, ...] = ()
    notes: tuple[str, ...] = ()
    search: Search | None = None
    legs: tuple[Leg, ...] = ()
    modelled: ModelledMachine | None = Field(default=None, exclude_if=lambda machine: machine is None)
    modules: tuple[str, ...] = Field(default=(), exclude_if=lambda modules: not modules)
    live: LiveDesign | None = Field(default=None, exclude_if=lambda live: live is None)

    @property
    def live_design(self) -> LiveDesign:
        """Return how a live experiment measures its slices."""
        assert self.live is not None, "not an experiment on a running service"
        return self.live

    @property
    def kind(self) -> str:
        """Return the kind of experiment, if another package has it: ``live``, ``search`` or ``ablation``."""
        if self.live is not None:
            return "live"
        if self.search is not None:
            return "search"
        return "ablation" if self.study.design.combine == "ablation" else ""

    @property
    def counts_instructions(self) -> bool:
        """Return whether the lens counts the instructions of its trials."""
        return wants_instructions(self.study)

    @property
    def machine_of_trials(self) -> ModelledMachine | None:
        """Return the modelled machine, if trials need it; recordings have it in any case."""
        return self.modelled if self.paced_by or wants_modelled(self.study) else None

    @property
    def paced_by(self) -> ModelledMachine | None:
        """Return the modelled machine whose time the guest has, if any."""
        return self.modelled if self.study.target.time == "modelled" else None

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of all configurations, in order."""
        return tuple(c.configuration.name for c in self.configurations)

    @property
    def kernels_named(self) -> str:
        """Return the kernels for lists: their specs, or ``host``."""
        return ", ".join(self.study.kernels) or "host"

    @property
    def workload_named(self) -> str:
        """Return the workload for lists: its kind or command, or all its variants."""
        table = self.study.workload
        commands = [variant.command for variant in table.variants] or [table.command or ()]
        return table.kind or ", ".join(map(shlex.join, commands))

    @property
    def boots(self) -> tuple[BootState, ...]:
        """Return the states that this machine boots, each once; none where it does not reboot."""
        return tuple(
            dict.fromkeys(configuration.boot for configuration in self.configurations if configuration.boot is not None)
        )

    def schedulers_on(self, machine: Machine) -> tuple[str, ...]:
        """Return the BPF schedulers that configurations on ``machine`` have, each once."""
        there = (c.scheduler for c in self.configurations if c.machine == machine and c.scheduler)
        return tuple(dict.fromkeys(there))

    @property
    def writes(self) -> tuple[Write, ...]:
        """Return everything that any configuration writes, each once."""
        return tuple(dict.fromkeys(write for configuration in self.configurations for write in configuration.writes))

    @property
    def baseline(self) -> str:
        """Return the name of the configuration that the others are compared with."""
        return next(c.configuration.name for c in self.configurations if c.configuration.baseline)

    def find(self, name: str) -> ResolvedConfiguration:
        """Return the configuration of that name. Raises KeyError."""
        for resolved in self.configurations:
            if resolved.configuration.name == name:
                return resolved
        raise KeyError(name)


def fingerprint(resolved: ResolvedStudy, machine: Mapping[str, str] | None = None) -> str:
    """Return SHA-256 (hexadecimal) over everything that matters to what is measured: equal ones may share trials.

    Not over title, question, analysis or budget, which can change without measuring anew. ``machine`` adds what only
    the edge knows, such as checksums of kernels, programs and the study's files.
    """
    study = resolved.study
    document = {
        "configurations": [c.model_dump(mode="json") for c in resolved.configurations],
        "counters": resolved.counters,
        "parser": resolved.parser,
        "shares": resolved.shares,
        "patterns": [p.model_dump(mode="json") for p in (*resolved.patterns, *resolved.pointers)],
        "target": study.target.model_dump(mode="json", exclude={"kernel", "prove", "machine"}),
        "design": study.design.model_dump(mode="json"),
        "timeout_s": study.workload.timeout_s,
        "ignore_failure": study.workload.ignore_failure,
        "settle_s": study.workload.settle_s,
        "observe_s": study.workload.observe_s,
        "once": [c.model_dump(mode="json") for c in (*resolved.setup, *resolved.cleanup)],
        "samplers": [s.model_dump(mode="json") for s in resolved.samplers],
        "timelines": [t.model_dump(mode="json") for t in resolved.timelines],
        "programs": resolved.programs,
        "files": sorted(resolved.files),
        "machine": dict(machine or {}),
    }
    if study.workload.keep_output:  # What others have kept of the same trials is too little.
        document["keep_output"] = True
    if study.workload.console_failure:
        document["console_failure"] = study.workload.console_failure
    if resolved.counts_instructions:
        document["counts_instructions"] = True
    if resolved.modules:
        document["modules"] = resolved.modules
    if (modelled := resolved.machine_of_trials) is not None:
        document["modelled"] = modelled.model_dump(mode="json")
    if resolved.search is not None:
        document["search"] = resolved.search.model_dump(mode="json")
        document["levels"] = [factor.levels for factor in resolved.factors]
        document["enough"] = [study.budget.min_blocks, study.analysis.confidence, study.analysis.smallest_effect]
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()
