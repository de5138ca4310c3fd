"""Testbeds: resolve a study on its machines, prepare what it needs, and make executors.

Modules that only guests need are imported late: they take long to load.
"""

from __future__ import annotations

import logging
import platform
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from ajuste.catalogue.loader import Catalogue
from ajuste.executor.executor import Executor
from ajuste.executor.host.availability import of_this_machine
from ajuste.executor.host.caller import host_site
from ajuste.executor.host.host import prepared_for
from ajuste.executor.host.rights import require_possible
from ajuste.kernel.spec import KernelToBuild, OwnKernel, PackagedKernel, parse_spec
from ajuste.machine.files import file_sha256
from ajuste.machine.home import AGENT, SERVICE, WORKLOADS, Home, find_program, native_program, require_extra
from ajuste.machine.session import machine_marks
from ajuste.model.base import BaseModel
from ajuste.model.capability import Asked, asked_here
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelImage, KernelVersion, Proof
from ajuste.model.plugins import load_plugin, plugins
from ajuste.model.wording import Say
from ajuste.study.factors import SCHED_EXT, varies
from ajuste.study.resolve import HOST_KERNEL, FindProgram, Resolver
from ajuste.study.resolved import Machine, ResolvedStudy, fingerprint
from ajuste.study.schema import Study
from ajuste.study.site import GUEST, Site

if TYPE_CHECKING:
    from ajuste.executor.guest.guest import GuestOptions
    from ajuste.executor.guest.initramfs import GuestFiles
    from ajuste.executor.guest.root import GuestRoot
    from ajuste.machine.boot.session import BootSession
    from ajuste.model.cluster import Cluster
    from ajuste.model.fleet import FleetPlan
    from ajuste.run.machine_order import MachineOrder
    from ajuste.run.relevance import ActivityObserver

_LOG: Final = logging.getLogger(__name__)
_EXTRAS: Final = MappingProxyType({"cluster": "cluster", "machines": "cluster"})
"""The optional part that each testbed of Ajuste's other packages belongs to."""


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
    """A resolved study, prepared to run. ``images`` are by kernel spec, ``modules`` are Ajuste's kernel modules by the
    machine that loads them, ``root`` has the guests' Debian packages.

    ``fingerprint`` covers everything that determines what is measured: experiments with equal ones share trials. With
    a ``resolver`` it is a search, which makes its configurations as it goes.
    """

    resolved: ResolvedStudy
    images: dict[str, KernelImage]
    packages: dict[str, str]
    fingerprint: str
    resolver: Resolver | None = None
    modules: dict[Machine, tuple[Path, ...]] = field(default_factory=dict)
    root: GuestRoot | None = None


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


class HostTestbed(Testbed):
    """Runs on this machine."""

    def surroundings(self, study: Study, catalogue: Catalogue) -> Surroundings:
        # Across reboots the study must be resolved alike in each boot, so the first kernel counts.
        release = self.options.reboots.plan.kernel if self.options.reboots else platform.release()
        here = {HOST_KERNEL: KernelVersion.parse(release)}
        _LOG.info("kernel resolved", extra={"kernel": "host", "release": release})
        return study, of_this_machine(catalogue), here, find_program, host_site()

    def prepared(self, resolved: ResolvedStudy, catalogue: Catalogue) -> Experiment:
        require_possible(resolved, catalogue, accept_risk=self.options.accept_risk, dry=self.options.dry)
        if resolved.boots and self.options.reboots is None and not self.options.reboots_allowed:
            raise RequestError(
                "this study reboots this machine",
                hint="add --reboots to `ajuste run` or `ajuste compare`; `ajuste plan` and --dry-run show how often",
            )
        marks = self.options.reboots.plan.marks if self.options.reboots else machine_marks()
        return Experiment(resolved, {}, {}, fingerprint(resolved, file_marks(resolved) | marks))

    def executor(self, experiment: Experiment, machine: Machine, first: Callable[[Executor], None]) -> Executor:
        host = prepared_for(
            experiment.resolved, self.options.home, self.options.warn, first, wait_s=self.options.wait_s
        )
        if self.options.reboots is None:
            return host
        from ajuste.executor.host.host import RebootingExecutor

        return RebootingExecutor(host, self.options.reboots)

    def observer(self, experiment: Experiment, catalogue: Catalogue) -> ActivityObserver | None:
        if self.options.reboots is not None:
            return None
        from ajuste.run.relevance import HostObserver

        return HostObserver(experiment.resolved, catalogue)


class GuestTestbed(Testbed):
    """Runs in guests of this machine."""

    def surroundings(self, study: Study, catalogue: Catalogue) -> Surroundings:
        if not self.options.dry:
            from ajuste.executor.guest.qemu import require_guests

            require_guests()
        # Fetching comes last, so errors of other kernels come before any download.
        in_order = sorted(study.kernels, key=lambda spec: isinstance(parse_spec(spec), PackagedKernel))
        versions = {spec: self._version(spec, study) for spec in in_order}
        return study, catalogue, versions, find_program, self._site(study)

    def _site(self, study: Study) -> Site:
        # A plan fetches no packages.
        if not study.target.packages:
            return GUEST
        from ajuste.executor.guest.root import fetch_root, plan_packages

        names, home, say = study.target.packages, self.options.home, self.options.say
        if not self.options.dry:
            return replace(GUEST, find_there=fetch_root(names, home, say).find)
        root = plan_packages(names, home, say).root
        return replace(GUEST, find_there=root.find if root else _somewhere)

    def _version(self, spec: str, study: Study) -> KernelVersion:
        parsed = parse_spec(spec)
        known = parsed.version or parsed.release if isinstance(parsed, PackagedKernel) else ""
        if "." in known:
            return KernelVersion.parse(known)
        if isinstance(parsed, KernelToBuild):
            return _version_to_build(parsed, spec, study, self.options.home)
        from ajuste.executor.guest.initramfs import how_to_build
        from ajuste.kernel.fetch import fetch_kernel

        try:
            return fetch_kernel(spec, self.options.home, say=self.options.say).version
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
        images = {spec: fetch_kernel(spec, self.options.home, say=self.options.say) for spec in study.kernels}
        if study.schedulers:
            from ajuste.run.contained import with_programs

            images = {spec: with_programs(image, study, self.options.home) for spec, image in images.items()}
        target, home = study.target, self.options.home
        emulator = choose_emulator(
            target.clock,
            target.cpus,
            home,
            self.options.say,
            topology=target.topology,
            paced=target.time == "modelled",
        )
        marks = file_marks(resolved) | {f"kernel {spec}": image.sha256 for spec, image in images.items()}
        modules = built_modules(resolved, images, self.options.home, self.options.say)
        marks |= {
            f"module {file.stem} of {machine.name}": file_sha256(file)
            for machine in modules
            for file in modules[machine]
        }
        marks |= {
            f"scheduler {configuration.kernel} {configuration.scheduler}": file_sha256(
                scheduler_file(images[configuration.kernel], configuration.scheduler)
            )
            for configuration in resolved.configurations
            if configuration.scheduler
        }
        packages = {kind.program: kind.package for kind in catalogue.workloads.values() if kind.package}
        root = None
        if target.packages:
            from ajuste.executor.guest.root import fetch_root

            root = fetch_root(target.packages, home, self.options.say)
            marks["packages"] = root.sha256
        # Under another version of QEMU a guest may run otherwise.
        key = fingerprint(resolved, marks | {"QEMU": emulator.version})
        return Experiment(resolved, images, packages, key, modules=modules, root=root)

    def executor(self, experiment: Experiment, machine: Machine, first: Callable[[Executor], None]) -> Executor:
        from ajuste.executor.guest.guest import GuestExecutor

        image, files, options = self._guest(experiment, machine)
        return GuestExecutor(image, files=files, jobs=self.options.jobs, **options)

    def proof(self, experiment: Experiment, machine: Machine) -> Proof | None:
        from ajuste.run.proofs.prove import claims_on, prove, require
        from ajuste.run.proofs.topology import prove_topology

        study = experiment.resolved.study
        claims = claims_on(study, machine.kernel, experiment.images)
        proofs = []
        if claims:
            arguments = (*study.target.kernel_arguments, *machine.arguments)
            proofs.append(
                prove(experiment.images[machine.kernel], claims, self.options.home, self.options.say, arguments)
            )
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
            return frozenset(
                symbol.name for symbol in kernel_symbols(experiment.images[machine.kernel], self.options.home)
            )

        return GuestObserver(experiment.resolved, catalogue, names_of)

    def _guest(self, experiment: Experiment, machine: Machine) -> tuple[KernelImage, GuestFiles, GuestOptions]:
        from ajuste.executor.guest.initramfs import GuestFiles
        from ajuste.executor.guest.root import root_arguments

        resolved, table = experiment.resolved, experiment.resolved.study.target
        image = experiment.images[machine.kernel]
        files = GuestFiles(
            programs=tuple(map(Path, resolved.programs)),
            study_files={name: Path(path) for name, path in resolved.files.items()},
            # Without files of modules all that the kernel has is built in.
            modules=(*table.modules, *(resolved.modules if image.modules is not None else ())),
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
            "home": self.options.home,
            "snapshot": self.options.snapshot,
            "kernel_arguments": (*root_arguments(experiment.root), *table.kernel_arguments, *machine.arguments),
            "nodes": table.nodes,
            "turn_us": table.turn_us,
            "parallel": table.parallel,
            "topology": table.topology,
            "paced_by": resolved.paced_by,
            "say": self.options.say,
        }
        return image, files, options


def _somewhere(program: str) -> str:
    # The likely path of a program in packages that are not fetched yet.
    return find_program(program) or (program if "/" in program else f"/usr/bin/{program}")


def _version_to_build(parsed: KernelToBuild, spec: str, study: Study, home: Home) -> KernelVersion:
    from ajuste.kernel.builder import kernel_builder

    builder = kernel_builder()
    try:
        return builder.version_to_build(parsed, home)
    except RequestError as failure:
        raise failure.at(study.kernel_place(spec)) from None


def testbed_for(study: Study, options: RunOptions) -> Testbed:
    """Return the testbed of ``study``. Raises RequestError if the package that has it is not installed."""
    if options.cluster is not None:
        return _load("machines" if study.target.on_host else "cluster", options)
    return HostTestbed(options) if study.target.on_host else GuestTestbed(options)


def has_testbed(name: str) -> bool:
    """Return whether an installed package has a testbed of that name."""
    return name in plugins("testbeds")


def _load(name: str, options: RunOptions) -> Testbed:
    if not has_testbed(name):
        require_extra(_EXTRAS[name])
    testbed: Testbed = load_plugin("testbeds", name)(options)
    return testbed


def file_marks(resolved: ResolvedStudy) -> dict[str, str]:
    """Return the hashes of all files that take part in trials."""
    programs = [native_program(AGENT), native_program(WORKLOADS)]
    programs += [native_program(SERVICE)] if resolved.study.workload.services else []
    files = map(Path, (*resolved.programs, *resolved.files.values()))
    return {f"file {path}": file_sha256(path) for path in (*programs, *files)}
