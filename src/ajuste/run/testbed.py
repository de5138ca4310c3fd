"""Testbeds: resolve a study on its machines, prepare what it needs, and make executors.

This machine is one; other packages add guests and the machines of a cluster (``ajuste.model.plugins``).
"""

from __future__ import annotations

import logging
import platform
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypeAlias, cast

from ajuste.catalogue.loader import Catalogue
from ajuste.executor.executor import Executor
from ajuste.executor.host.adoption import adopted_from
from ajuste.executor.host.availability import current_values, of_this_machine
from ajuste.executor.host.caller import host_site, user_here
from ajuste.executor.host.host import HostExecutor, prepared_for
from ajuste.executor.host.rights import require_possible, risks
from ajuste.kernel.spec import KernelToBuild
from ajuste.machine.files import file_sha256
from ajuste.machine.home import AGENT, SERVICE, WORKLOADS, Home, find_program, native_program, plugin_of
from ajuste.machine.session import machine_marks
from ajuste.model.base import BaseModel
from ajuste.model.capability import Asked, asked_here
from ajuste.model.kernel import KernelImage, KernelVersion, Proof
from ajuste.model.plugins import plugins
from ajuste.model.wording import Say
from ajuste.study.resolve import HOST_KERNEL, FindProgram, Resolver
from ajuste.study.resolved import Machine, ResolvedStudy, fingerprint
from ajuste.study.schema import Study
from ajuste.study.site import Site
from ajuste.study.target import TargetTable

if TYPE_CHECKING:
    from ajuste.model.cluster import Cluster
    from ajuste.model.fleet import FleetPlan
    from ajuste.report.plan import PlannedStudy
    from ajuste.run.experiment import Anew
    from ajuste.run.machine_order import MachineOrder
    from ajuste.run.relevance import ActivityObserver

_LOG: Final = logging.getLogger(__name__)
_EXTRAS: Final = MappingProxyType({"guest": "guest", "cluster": "cluster", "machines": "cluster", "reboots": "boots"})
"""The optional part that each testbed of Ajuste's other packages belongs to."""


class BootSession(Protocol):
    """An experiment across reboots of this machine that began; on the disk it records its run, which it resumes."""

    @property
    def run(self) -> str:
        """Return the id of its run; empty before there is one."""

    def keep_run(self, run: str) -> None:
        """Record which run it is. Raises OSError."""


@dataclass(frozen=True)
class RunOptions:
    """The options of carrying out an experiment. None changes what is measured under the virtual clock.

    ``dry``: only plan, and fetch no packages. ``reboots``: a session across reboots that began; before that,
    ``reboots_allowed`` permits them, by the boot ``loader`` if one is chosen. ``fleet``: the order in which machines of
    a ``cluster`` begin. ``wait_s``: seconds to wait for another experiment on this machine. ``rights``: those of the
    asker. ``say`` takes progress messages, ``warn`` what a person should read at any time.
    """

    home: Home
    jobs: int | None = None
    snapshot: bool = True
    accept_risk: bool = False
    say: Say = field(default=lambda _: None)
    warn: Say = field(default=lambda _: None)
    cluster: Cluster | None = None
    fleet: FleetPlan | None = None
    dry: bool = False
    reboots: BootSession | None = None
    reboots_allowed: bool = False
    loader: str = ""
    wait_s: float = 0
    rights: Asked = field(default_factory=asked_here)


@dataclass(frozen=True)
class Experiment:
    """A resolved study, prepared to run; a testbed may have its own kind. ``images`` are the kernels that it boots, by
    spec; ``environment`` are facts to store with the run.

    ``fingerprint`` covers everything that determines what is measured: experiments with equal ones share trials. With
    a ``resolver`` it is a search, which makes its configurations as it goes.
    """

    resolved: ResolvedStudy
    fingerprint: str
    images: dict[str, KernelImage] = field(default_factory=dict)
    resolver: Resolver | None = None
    environment: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Contained:
    """A ``study`` with its contents in the cache. ``notes`` list what differs from the file, so that digests cannot be
    compared.
    """

    study: Study
    notes: tuple[str, ...] = ()


Surroundings: TypeAlias = tuple[Study, Catalogue, dict[str, KernelVersion], FindProgram, Site]
"""The arguments of ``study.resolve``."""


class Testbed(ABC):
    """The machines of a study."""

    explains = True
    """True if trials can be recorded on these machines."""

    def __init__(self, options: RunOptions) -> None:
        self.options = options
        self.connected: AbstractContextManager[object] = nullcontext()
        """Entered while there are executors."""

    @abstractmethod
    def surroundings(self, study: Study, catalogue: Catalogue) -> Surroundings:
        """Return the arguments for resolving the study. A kernel is fetched only if its spec has no version."""

    @abstractmethod
    def planned(self, resolved: ResolvedStudy, catalogue: Catalogue) -> PlannedStudy:
        """Return every write, command and trial of the study. Nothing is fetched or changed. Raises RequestError."""

    @abstractmethod
    def prepared(self, resolved: ResolvedStudy, catalogue: Catalogue) -> Experiment:
        """Return the study with everything it needs. Nothing is booted or changed. Raises RequestError."""

    @abstractmethod
    def executor(self, experiment: Experiment, machine: Machine, first: Callable[[Executor], None]) -> Executor:
        """Return the executor for ``machine``, not yet entered. On a host, ``first`` is called before any change."""

    def proof(self, experiment: Experiment, machine: Machine) -> Proof | None:
        """Return evidence that the kernel has the claimed features, if any. Raises RunError if it does not."""
        return None

    def observer(self, experiment: Experiment, catalogue: Catalogue) -> ActivityObserver | None:
        """Return an observer of whether the factors can matter; None if these machines cannot show it."""
        return None

    def order(
        self,
        resolved: ResolvedStudy,
        present: Callable[[], Sequence[str]],
        keep: Callable[[BaseModel], None],
        say: Say,
    ) -> MachineOrder | None:
        """Return the order in which several machines, those ``present``, measure the study; None if it has none.
        ``keep`` stores how far it came.
        """
        return None


@dataclass(frozen=True)
class UnpackedPackage:
    """A package of a distribution, unpacked below ``root``. ``package`` has its version, ``suite`` is its suite."""

    root: Path
    package: str
    suite: str = ""


class KernelTestbed(Testbed):
    """Machines that boot kernels of a study's choice: guests."""

    @abstractmethod
    def kernel_version(self, spec: str) -> KernelVersion:
        """Return the version of a kernel, which is fetched only if its spec has none. Raises RequestError, RunError."""

    @abstractmethod
    def bare(self, target: TargetTable) -> Executor:
        """Return a machine like ``target`` without any study's files, not yet entered: to read its settings."""

    @abstractmethod
    def require_buildable(self, resolved: ResolvedStudy, wanted: Mapping[str, KernelToBuild]) -> None:
        """Raise RequestError if the study claims or needs what kernels to build cannot have, before any is built."""

    @abstractmethod
    def with_patches(self, study: Study) -> Study:
        """Return ``study`` with its kernels' patches as files. Raises RequestError for one that it does not contain."""

    @abstractmethod
    def with_schedulers(self, study: Study, paths: Sequence[Path] = (), within: Path | None = None) -> Contained:
        """Return ``study`` with its BPF schedulers in the cache: from ``paths`` (in the directory ``within``), from the
        study's own directory, or built.

        Raises RequestError for a program that may not be built, is not found or has another hash, RunError if building
        fails.
        """

    @abstractmethod
    def tuned(self, suite: str) -> UnpackedPackage:
        """Return tuned of a ``suite``, or the newest if empty, from the distribution. Raises RequestError, RunError."""


class HostTestbed(Testbed):
    """Runs on this machine."""

    @property
    def release(self) -> str:
        """Return the release of the kernel by which studies are resolved."""
        return platform.release()

    @property
    def marks(self) -> dict[str, str]:
        """Return the facts on this machine that experiments with shared trials have in common."""
        return machine_marks()

    def surroundings(self, study: Study, catalogue: Catalogue) -> Surroundings:
        here = {HOST_KERNEL: KernelVersion.parse(self.release)}
        _LOG.info("kernel resolved", extra={"kernel": "host", "release": self.release})
        return study, of_this_machine(catalogue), here, find_program, host_site()

    def planned(self, resolved: ResolvedStudy, catalogue: Catalogue) -> PlannedStudy:
        from ajuste.run.planning import planned_study
        from ajuste.run.relevance import idle_from_the_start

        no_chance = idle_from_the_start(resolved, catalogue)
        now = _values_here(resolved, catalogue)
        accepted = [risk.what for risk in risks(resolved, catalogue)]
        user = "root" if resolved.study.workload.as_root else user_here()  # Without root it is refused.
        planned = planned_study(resolved, catalogue, now, user, no_chance, accepted)
        adopted = adopted_from(
            write.location for configuration in resolved.configurations for write in configuration.writes
        )
        return planned.model_copy(update={"notes": (*planned.notes, *map(str, adopted))})

    def prepared(self, resolved: ResolvedStudy, catalogue: Catalogue) -> Experiment:
        require_possible(resolved, catalogue, accept_risk=self.options.accept_risk, dry=self.options.dry)
        return Experiment(resolved, fingerprint(resolved, file_marks(resolved) | self.marks))

    def executor(self, experiment: Experiment, machine: Machine, first: Callable[[Executor], None]) -> Executor:
        return prepared_for(
            experiment.resolved, self.options.home, self.options.warn, first, wait_s=self.options.wait_s
        )

    def observer(self, experiment: Experiment, catalogue: Catalogue) -> ActivityObserver | None:
        from ajuste.run.relevance import HostObserver

        return HostObserver(experiment.resolved, catalogue)


class RebootingTestbed(HostTestbed):
    """Runs on this machine, which reboots for a study: ``options.reboots`` is the experiment once it began."""

    loaders: ClassVar[tuple[str, ...]]
    """Names of the boot loaders to choose from."""

    @abstractmethod
    def carry_out(
        self, study: Study, catalogue: Catalogue, fresh: Anew, measured: Callable[[RunOptions, Anew], int]
    ) -> int:
        """Start ``study``, or resume it in this boot, and return the exit code. ``measured`` measures until it needs
        another boot. Raises RequestError if this machine cannot reboot as it needs; then nothing was changed.
        """

    @abstractmethod
    def unfinished(self) -> tuple[str, ...] | None:
        """Return the files that an experiment which has not ended restores; None if there is none. Raises RunError."""

    @abstractmethod
    def end(self) -> None:
        """End that experiment: restore all files, and reboot if it booted this kernel. Raises OSError, RunError."""


def _values_here(resolved: ResolvedStudy, catalogue: Catalogue) -> dict[str, str]:
    # A tunable that cannot be read has the reason in place of its value.
    names = dict.fromkeys(write.tunable for configuration in resolved.configurations for write in configuration.writes)
    if not names:
        return {}
    with HostExecutor() as host:
        current = current_values(host, [catalogue.find_tunable(name) for name in names])
    return {name: current[name].problem if (value := current[name].value) is None else value for name in names}


def testbed_for(study: Study, options: RunOptions) -> Testbed:
    """Return the testbed of ``study``. Raises RequestError if the package that has it is not installed."""
    if study.target.on_host:
        if options.cluster is not None:
            return _load("machines", options)
        return rebooting_testbed(options) if study.across_boots else HostTestbed(options)
    return _load("guest" if options.cluster is None else "cluster", options)


def kernel_testbed(options: RunOptions) -> KernelTestbed:
    """Return guests of this machine. Raises RequestError if the package that has them is not installed."""
    return cast(KernelTestbed, _load("guest", options))


def rebooting_testbed(options: RunOptions) -> RebootingTestbed:
    """Return this machine as one that reboots. Raises RequestError if the package that does it is not installed."""
    return cast(RebootingTestbed, _load("reboots", options))


def has_testbed(name: str) -> bool:
    """Return whether an installed package has a testbed of that name."""
    return name in plugins("testbeds")


def _load(name: str, options: RunOptions) -> Testbed:
    testbed: Testbed = plugin_of(_EXTRAS[name], "testbeds", name)(options)
    return testbed


def file_marks(resolved: ResolvedStudy) -> dict[str, str]:
    """Return the hashes of all files that take part in trials."""
    programs = [native_program(AGENT), native_program(WORKLOADS)]
    programs += [native_program(SERVICE)] if resolved.study.workload.services else []
    files = map(Path, (*resolved.programs, *resolved.files.values()))
    return {f"file {path}": file_sha256(path) for path in (*programs, *files)}
