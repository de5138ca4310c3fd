"""Where a study is carried out: what it is resolved with, what has to be there, and its executors.

What only guests need is imported when there are any: it takes long to load.
"""

from __future__ import annotations

import logging
import platform
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from ajuste.catalogue.loader import Catalogue
from ajuste.executor.executor import Executor
from ajuste.executor.host.availability import of_this_machine
from ajuste.executor.host.caller import host_site
from ajuste.executor.host.prepared import prepared_for, require_possible
from ajuste.kernel.spec import KernelToBuild, OwnKernel, PackagedKernel, parse_spec
from ajuste.machine.files import file_sha256
from ajuste.machine.home import AGENT, SERVICE, WORKLOADS, Home, find_program, native_program
from ajuste.machine.installation import ajuste_version
from ajuste.machine.session import machine_marks
from ajuste.model.capability import Asked, asked_here
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelImage, KernelVersion, Proof
from ajuste.model.wording import Say
from ajuste.study.resolve import HOST_KERNEL, FindProgram, Resolver
from ajuste.study.resolved import Machine, ResolvedStudy, fingerprint
from ajuste.study.schema import Study
from ajuste.study.settings import SCHED_EXT, varies
from ajuste.study.site import GUEST, Site, study_directory

if TYPE_CHECKING:
    from ajuste.executor.cluster.keys import Cluster
    from ajuste.executor.guest.guest import GuestOptions
    from ajuste.executor.guest.initramfs import GuestFiles
    from ajuste.executor.guest.root import GuestRoot
    from ajuste.machine.boot.session import BootSession
    from ajuste.model.fleet import FleetPlan
    from ajuste.run.relevance import ActivityObserver

_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunOptions:
    """How an experiment is carried out; nothing of it changes what is measured under the virtual clock.

    One that is ``dry`` is only planned, and fetches no packages. ``reboots`` is an experiment across reboots that
    began; before it begins ``reboots_allowed`` says that the person wants them, by the boot ``loader`` of that name, if
    they chose one. ``fleet`` says in which order the machines of a ``cluster`` begin. Another experiment on this
    machine may go on for ``wait_s`` seconds. ``asked`` says who asks for it. ``say`` is told what happens now, ``warn``
    what a person should read at any time.
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
    asked: Asked = field(default_factory=asked_here)


@dataclass(frozen=True)
class Experiment:
    """``images`` by kernel spec. ``fingerprint`` is of all that decides what is measured: equal ones share trials.
    ``root`` has the Debian packages of its guests, if they have any.

    ``modules`` are files of kernel modules of Ajuste's own, by the machine that loads them.

    With a ``resolver`` it is a search, whose configurations are made as it goes.
    """

    resolved: ResolvedStudy
    images: dict[str, KernelImage]
    packages: dict[str, str]
    fingerprint: str
    resolver: Resolver | None = None
    modules: dict[Machine, tuple[Path, ...]] = field(default_factory=dict)
    root: GuestRoot | None = None


Surroundings: TypeAlias = tuple[Study, Catalogue, dict[str, KernelVersion], FindProgram, Site]
"""What ``study.resolve`` takes."""


class Testbed(ABC):
    """The machines that a study is for."""

    explains = True
    """Whether trials can be recorded on them."""

    def __init__(self, means: RunOptions) -> None:
        self.means = means
        self.connected: AbstractContextManager[object] = nullcontext()
        """Is entered as long as there are executors."""

    @abstractmethod
    def surroundings(self, study: Study, catalogue: Catalogue) -> Surroundings:
        """The study with what it is to run on. A kernel is fetched only if its spec does not say its version."""

    @abstractmethod
    def prepared(self, resolved: ResolvedStudy, catalogue: Catalogue) -> Experiment:
        """The study with all that it needs. Nothing is booted or changed. Raises RequestError."""

    @abstractmethod
    def executor(self, experiment: Experiment, machine: Machine, first: Callable[[Executor], None]) -> Executor:
        """That for ``machine``, not yet entered. ``first`` is called with this machine before anything on it is
        changed.
        """

    def proof(self, experiment: Experiment, machine: Machine) -> Proof | None:
        """Evidence that the kernel is what the study takes it for, if for anything. Raises RunError if it is not."""
        return None

    def observer(self, experiment: Experiment, catalogue: Catalogue) -> ActivityObserver | None:
        """What sees whether that which varies can matter; None where nothing can."""
        return None


class HostTestbed(Testbed):
    """This machine."""

    def surroundings(self, study: Study, catalogue: Catalogue) -> Surroundings:
        # Whatever is booted now: what is resolved in one boot must be the same in all.
        release = self.means.reboots.plan.kernel if self.means.reboots else platform.release()
        here = {HOST_KERNEL: KernelVersion.parse(release)}
        _LOG.info("kernel resolved", extra={"kernel": "host", "release": release})
        return study, of_this_machine(catalogue), here, find_program, host_site()

    def prepared(self, resolved: ResolvedStudy, catalogue: Catalogue) -> Experiment:
        require_possible(resolved, catalogue, accept_risk=self.means.accept_risk, dry=self.means.dry)
        if resolved.boots:
            _require_reboots(self.means)
        marks = self.means.reboots.plan.marks if self.means.reboots else machine_marks()
        return Experiment(resolved, {}, {}, fingerprint(resolved, _marks(resolved) | marks))

    def executor(self, experiment: Experiment, machine: Machine, first: Callable[[Executor], None]) -> Executor:
        host = prepared_for(experiment.resolved, self.means.home, self.means.warn, first, wait_s=self.means.wait_s)
        if self.means.reboots is None:
            return host
        from ajuste.executor.host.host import RebootingExecutor

        return RebootingExecutor(host, self.means.reboots)

    def observer(self, experiment: Experiment, catalogue: Catalogue) -> ActivityObserver | None:
        if self.means.reboots is not None:
            return None
        from ajuste.run.relevance import HostObserver

        return HostObserver(experiment.resolved, catalogue)


class BenchTestbed(HostTestbed):
    """Machines of a cluster as they are."""

    explains = False

    def __init__(self, means: RunOptions, cluster: Cluster) -> None:
        from ajuste.executor.cluster.connection import Connection

        super().__init__(means)
        self.connected = self._connection = Connection(cluster, means.say)

    def prepared(self, resolved: ResolvedStudy, catalogue: Catalogue) -> Experiment:
        """What is possible is each machine's own to say, and which they are may change."""
        if resolved.boots:
            raise RequestError("a study that reboots its machine is not supported on a cluster")
        marks = _marks(resolved) | {"machine": "those of a cluster"}
        return Experiment(resolved, {}, {}, fingerprint(resolved, marks))

    def executor(self, experiment: Experiment, machine: Machine, first: Callable[[Executor], None]) -> Executor:
        from ajuste.executor.cluster.cluster import BenchExecutor
        from ajuste.executor.cluster.messages import HostJob

        study = experiment.resolved.study
        job = HostJob(
            ajuste=ajuste_version(),
            agent=file_sha256(native_program(AGENT)),
            study=study.model_dump_json(),
            directory=str(study_directory(study).absolute()),
            accept_risk=self.means.accept_risk,
        )
        return BenchExecutor(self._connection, job, experiment.resolved, self.means.say)

    def observer(self, experiment: Experiment, catalogue: Catalogue) -> ActivityObserver | None:
        return None


class GuestTestbed(Testbed):
    """Guests of this machine."""

    def surroundings(self, study: Study, catalogue: Catalogue) -> Surroundings:
        if not self.means.dry:
            from ajuste.executor.guest.qemu import require_guests

            require_guests()
        # What may have to be fetched comes last: what is wrong with another kernel is told before.
        in_order = sorted(study.kernels, key=lambda spec: isinstance(parse_spec(spec), PackagedKernel))
        versions = {spec: self._version(spec, study) for spec in in_order}
        return study, catalogue, versions, find_program, self._site(study)

    def _site(self, study: Study) -> Site:
        # Guests with the programs of their packages. What is only planned is not fetched.
        if not study.target.packages:
            return GUEST
        from ajuste.executor.guest.root import fetch_root, plan_packages

        asked, home, say = study.target.packages, self.means.home, self.means.say
        if not self.means.dry:
            return replace(GUEST, find_there=fetch_root(asked, home, say).find)
        root = plan_packages(asked, home, say).root
        return replace(GUEST, find_there=root.find if root else _somewhere)

    def _version(self, spec: str, study: Study) -> KernelVersion:
        parsed = parse_spec(spec)
        known = parsed.version or parsed.release if isinstance(parsed, PackagedKernel) else ""
        if "." in known:
            return KernelVersion.parse(known)
        if isinstance(parsed, KernelToBuild):
            return _version_to_build(parsed, spec, study, self.means.home)
        from ajuste.executor.guest.initramfs import how_to_build
        from ajuste.kernel.fetch import fetch_kernel

        try:
            return fetch_kernel(spec, self.means.home, say=self.means.say).version
        except RequestError as failure:
            if isinstance(parsed, OwnKernel) and varies(study, SCHED_EXT):
                raise RequestError(failure.message, hint=how_to_build(spec)) from None
            raise

    def prepared(self, resolved: ResolvedStudy, catalogue: Catalogue) -> Experiment:
        study = resolved.study
        from ajuste.executor.guest.initramfs import scheduler_file
        from ajuste.executor.guest.qemu import choose_emulator
        from ajuste.kernel.fetch import fetch_kernel
        from ajuste.kernel.own_module import built_modules
        from ajuste.run.proofs.prove import check_claims

        check_claims(study)
        images = {spec: fetch_kernel(spec, self.means.home, say=self.means.say) for spec in study.kernels}
        if study.schedulers:
            from ajuste.run.contained import with_programs

            images = {spec: with_programs(image, study, self.means.home) for spec, image in images.items()}
        target, home = study.target, self.means.home
        emulator = choose_emulator(
            target.clock,
            target.cpus,
            home,
            self.means.say,
            topology=target.topology,
            paced=target.time == "modelled",
        )
        marks = _marks(resolved) | {f"kernel {spec}": image.sha256 for spec, image in images.items()}
        modules = built_modules(resolved, images, self.means.home, self.means.say)
        marks |= {
            f"module {file.stem} of {machine.name}": file_sha256(file)
            for machine in modules
            for file in modules[machine]
        }
        marks |= {
            f"scheduler {one.kernel} {one.scheduler}": file_sha256(scheduler_file(images[one.kernel], one.scheduler))
            for one in resolved.configurations
            if one.scheduler
        }
        packages = {kind.program: kind.package for kind in catalogue.workloads.values() if kind.package}
        root = _root_of(study, self.means)
        marks |= {"packages": root.sha256} if root else {}
        key = fingerprint(resolved, marks | {"QEMU": emulator.version})
        return Experiment(resolved, images, packages, key, modules=modules, root=root)

    def executor(self, experiment: Experiment, machine: Machine, first: Callable[[Executor], None]) -> Executor:
        from ajuste.executor.guest.guest import GuestExecutor

        image, files, options = self._guest(experiment, machine)
        return GuestExecutor(image, files=files, jobs=self.means.jobs, **options)

    def proof(self, experiment: Experiment, machine: Machine) -> Proof | None:
        from ajuste.run.proofs.prove import claims_on, prove, require
        from ajuste.run.proofs.topology import prove_topology

        study = experiment.resolved.study
        claims = claims_on(study, machine.kernel, experiment.images)
        proofs = []
        if claims:
            arguments = (*study.target.kernel_arguments, *machine.arguments)
            proofs.append(prove(experiment.images[machine.kernel], claims, self.means.home, self.means.say, arguments))
            require(proofs[0])
        if study.target.topology is not None:
            image, _, options = self._guest(experiment, machine)
            proofs.append(prove_topology(image, study.target.topology, options))
        features = tuple(feature for proof in proofs for feature in proof.features)
        return proofs[0].model_copy(update={"features": features}) if proofs else None

    def observer(self, experiment: Experiment, catalogue: Catalogue) -> ActivityObserver | None:
        from ajuste.kernel.symbols import kernel_symbols
        from ajuste.run.relevance import GuestObserver

        def names_of(machine: Machine) -> frozenset[str]:
            return frozenset(one.name for one in kernel_symbols(experiment.images[machine.kernel], self.means.home))

        return GuestObserver(experiment.resolved, catalogue, names_of)

    def _guest(self, experiment: Experiment, machine: Machine) -> tuple[KernelImage, GuestFiles, GuestOptions]:
        from ajuste.executor.guest.initramfs import GuestFiles
        from ajuste.executor.guest.root import root_arguments

        resolved, table = experiment.resolved, experiment.resolved.study.target
        files = GuestFiles(
            programs=tuple(map(Path, resolved.programs)),
            study_files={name: Path(path) for name, path in resolved.files.items()},
            modules=table.modules,
            bundled_modules=experiment.modules.get(machine, ()),
            schedulers=resolved.schedulers_on(machine),
            services=bool(resolved.study.workload.services),
            packages=experiment.packages,
            root=experiment.root,
        )
        options: GuestOptions = {
            "clock": table.clock,
            "cpus": table.cpus,
            "memory_mib": table.memory_mib,
            "seed": resolved.study.design.seed,
            "instruction_ns": table.instruction_ns,
            "home": self.means.home,
            "snapshot": self.means.snapshot,
            "kernel_arguments": (*root_arguments(experiment.root), *table.kernel_arguments, *machine.arguments),
            "nodes": table.nodes,
            "turn_us": table.turn_us,
            "parallel": table.parallel,
            "topology": table.topology,
            "paced_by": resolved.paced_by,
            "say": self.means.say,
        }
        return experiment.images[machine.kernel], files, options


class ClusterTestbed(GuestTestbed):
    """Guests on workers."""

    def __init__(self, means: RunOptions, cluster: Cluster) -> None:
        from ajuste.executor.cluster.connection import Connection

        super().__init__(means)
        self.connected = self._connection = Connection(cluster, means.say)

    def executor(self, experiment: Experiment, machine: Machine, first: Callable[[Executor], None]) -> Executor:
        from ajuste.executor.cluster.cluster import ClusterExecutor
        from ajuste.executor.cluster.messages import pack_guest

        guest = self._guest(experiment, machine)
        local = partial(super().executor, experiment, machine, first)
        return ClusterExecutor(self._connection, partial(pack_guest, *guest), local, self.means.say)

    def observer(self, experiment: Experiment, catalogue: Catalogue) -> ActivityObserver | None:
        return None


def _require_reboots(means: RunOptions) -> None:
    if means.reboots is None and not means.reboots_allowed:
        raise RequestError(
            "this study reboots this machine",
            hint="add --reboots to `ajuste run` or `ajuste compare`; `ajuste plan` and --dry-run show how often",
        )


def _root_of(study: Study, means: RunOptions) -> GuestRoot | None:
    if not study.target.packages:
        return None
    from ajuste.executor.guest.root import fetch_root

    return fetch_root(study.target.packages, means.home, means.say)


def _somewhere(program: str) -> str:
    # Where a program of packages that were not fetched yet will be, as far as that can be known.
    return find_program(program) or (program if "/" in program else f"/usr/bin/{program}")


def _version_to_build(parsed: KernelToBuild, spec: str, study: Study, home: Home) -> KernelVersion:
    from ajuste.kernel.building.build import version_to_build

    try:
        return version_to_build(parsed, home)
    except RequestError as failure:
        raise failure.at(study.kernel_place(spec)) from None


def testbed_for(study: Study, means: RunOptions) -> Testbed:
    """The one that ``study`` is for."""
    on_host, cluster = study.target.on_host, means.cluster
    if cluster is None:
        return HostTestbed(means) if on_host else GuestTestbed(means)
    return BenchTestbed(means, cluster) if on_host else ClusterTestbed(means, cluster)


def _marks(resolved: ResolvedStudy) -> dict[str, str]:
    # Of the files that every study takes along.
    own = [native_program(AGENT), native_program(WORKLOADS)]
    own += [native_program(SERVICE)] if resolved.study.workload.services else []
    files = map(Path, (*resolved.programs, *resolved.files.values()))
    return {f"file {path}": file_sha256(path) for path in (*own, *files)}
