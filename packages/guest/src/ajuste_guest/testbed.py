"""Guests of this machine: what a study needs in them, and their executors.

Modules that a plan does not need are imported late: they take long to load.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ajuste.catalogue.loader import Catalogue
from ajuste.executor.executor import Executor
from ajuste.kernel.spec import WITH_SCHEDULERS, KernelToBuild, OwnKernel, PackagedKernel, parse_spec
from ajuste.machine.files import file_sha256
from ajuste.machine.home import find_program
from ajuste.model.error import RequestError
from ajuste.model.kernel import PACKAGES, KernelImage, KernelVersion, Proof
from ajuste.run.testbed import Contained, Experiment, KernelTestbed, Surroundings, file_marks
from ajuste.study.factors import SCHED_EXT, varies
from ajuste.study.resolved import Machine, ResolvedConfiguration, ResolvedStudy, fingerprint
from ajuste.study.schema import Study
from ajuste.study.site import GUEST, Site
from ajuste.study.target import TargetTable

if TYPE_CHECKING:
    from ajuste.report.plan import PlannedPackageSet, PlannedStudy
    from ajuste.run.relevance import ActivityObserver
    from ajuste.run.testbed import UnpackedPackage
    from ajuste_guest.executor.guest import GuestOptions
    from ajuste_guest.executor.initramfs import GuestFiles
    from ajuste_guest.executor.root import GuestRoot


@dataclass(frozen=True)
class GuestExperiment(Experiment):
    """``packages`` are the Debian packages of programs, ``modules`` Ajuste's kernel modules by the machine that loads
    them; ``root`` has the Debian packages of the guests.
    """

    packages: dict[str, str] = field(default_factory=dict)
    modules: dict[Machine, tuple[Path, ...]] = field(default_factory=dict)
    root: GuestRoot | None = None


class GuestTestbed(KernelTestbed):
    """Runs in guests of this machine."""

    def surroundings(self, study: Study, catalogue: Catalogue) -> Surroundings:
        if not self.options.dry:
            from ajuste_guest.executor.qemu import require_guests

            require_guests()
        # Fetching comes last, so errors of other kernels come before any download.
        in_order = sorted(study.kernels, key=lambda spec: isinstance(parse_spec(spec), PackagedKernel))
        versions = {spec: self._version(spec, study) for spec in in_order}
        return study, catalogue, versions, find_program, self._site(study)

    def _site(self, study: Study) -> Site:
        # A plan fetches no packages.
        if not study.target.packages:
            return GUEST
        from ajuste_guest.executor.root import fetch_root, plan_packages

        names, home, say = study.target.packages, self.options.home, self.options.say
        if not self.options.dry:
            return replace(GUEST, find_there=fetch_root(names, home, say).find)
        root = plan_packages(names, home, say).root
        return replace(GUEST, find_there=root.find if root else _somewhere)

    def _version(self, spec: str, study: Study) -> KernelVersion:
        parsed = parse_spec(spec)
        try:
            return self.kernel_version(spec)
        except RequestError as failure:
            if isinstance(parsed, KernelToBuild):
                raise failure.at(study.kernel_place(spec)) from None
            if isinstance(parsed, OwnKernel) and varies(study, SCHED_EXT):
                from ajuste_guest.executor.initramfs import how_to_build

                raise RequestError(failure.message, hint=how_to_build(spec)) from None
            raise

    def kernel_version(self, spec: str) -> KernelVersion:
        parsed = parse_spec(spec)
        known = parsed.version or parsed.release if isinstance(parsed, PackagedKernel) else ""
        if "." in known:
            return KernelVersion.parse(known)
        if isinstance(parsed, KernelToBuild):
            from ajuste.kernel.builder import kernel_builder

            return kernel_builder().version_to_build(parsed, self.options.home)
        from ajuste_guest.kernel.fetch import fetch_kernel

        return fetch_kernel(spec, self.options.home, say=self.options.say).version

    def bare(self, target: TargetTable) -> Executor:
        from ajuste_guest.executor.guest import GuestExecutor
        from ajuste_guest.executor.initramfs import GuestFiles
        from ajuste_guest.kernel.fetch import fetch_kernel

        assert target.kernel is not None
        image = fetch_kernel(target.kernel, self.options.home, say=self.options.say)
        return GuestExecutor(
            image,
            clock=target.clock,
            cpus=target.cpus,
            memory_mib=target.memory_mib,
            instruction_ns=target.instruction_ns,
            files=GuestFiles(modules=target.modules),
            home=self.options.home,
            snapshot=self.options.snapshot,
            kernel_arguments=target.kernel_arguments,
            nodes=target.nodes,
            turn_us=target.turn_us,
            parallel=target.parallel,
            topology=target.topology,
            say=self.options.say,
        )

    def with_patches(self, study: Study) -> Study:
        from ajuste_guest.contained import with_patches

        return with_patches(study, self.options.home)

    def with_schedulers(self, study: Study, paths: Sequence[Path] = (), within: Path | None = None) -> Contained:
        from ajuste_guest.contained import with_schedulers

        return with_schedulers(study, self.options.home, self.options.rights, self.options.say, paths, within)

    def tuned(self, suite: str) -> UnpackedPackage:
        from ajuste_guest.tuned import fetch_tuned

        return fetch_tuned(suite, self.options.home, self.options.say)

    def planned(self, resolved: ResolvedStudy, catalogue: Catalogue) -> PlannedStudy:
        from ajuste.run.planning import planned_study
        from ajuste.run.relevance import idle_from_the_start
        from ajuste_guest.kernel.fetch import require_listed

        no_chance = idle_from_the_start(resolved, catalogue)
        # Without the network: what no recent list has would be refused once the study runs.
        for spec in resolved.study.kernels:
            require_listed(spec, self.options.home)
        planned = planned_study(resolved, catalogue, no_chance=no_chance)
        return planned.model_copy(update={"packages": self._planned_packages(resolved.study)})

    def _planned_packages(self, study: Study) -> PlannedPackageSet | None:
        if not study.target.packages:
            return None
        from ajuste.report.plan import PlannedPackageSet
        from ajuste_guest.executor.root import plan_packages

        package_plan = plan_packages(study.target.packages, self.options.home, self.options.say)
        return PlannedPackageSet(
            release=package_plan.release,
            asked=package_plan.names,
            versions={package.name: package.version for package in package_plan.packages},
            download_bytes=package_plan.download_bytes,
        )

    def require_buildable(self, resolved: ResolvedStudy, wanted: Mapping[str, KernelToBuild]) -> None:
        from ajuste_guest.proofs.prove import check_claims

        check_claims(resolved.study)
        for configuration in resolved.configurations:
            if configuration.kernel in wanted:
                _require_plain(configuration, wanted[configuration.kernel], resolved.study)

    def prepared(self, resolved: ResolvedStudy, catalogue: Catalogue) -> Experiment:
        study = resolved.study
        from ajuste_guest.executor.initramfs import scheduler_file
        from ajuste_guest.executor.qemu import choose_emulator
        from ajuste_guest.kernel.fetch import fetch_kernel
        from ajuste_guest.kernel.own_module import built_modules
        from ajuste_guest.proofs.prove import check_claims

        check_claims(study)
        images = {spec: fetch_kernel(spec, self.options.home, say=self.options.say) for spec in study.kernels}
        _require_kernel_of_pauses(study, images)
        if study.schedulers:
            from ajuste_guest.contained import with_programs

            images = {spec: with_programs(image, study, self.options.home) for spec, image in images.items()}
        target, home = study.target, self.options.home
        emulator = choose_emulator(
            target.clock,
            target.cpus,
            home,
            self.options.say,
            topology=target.topology,
            paced=target.time == "modelled",
            perturbed=target.perturbation is not None,
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
            from ajuste_guest.executor.root import fetch_root

            root = fetch_root(target.packages, home, self.options.say)
            marks["packages"] = root.sha256
        # Under another version of QEMU a guest may run otherwise.
        key = fingerprint(resolved, marks | {"QEMU": emulator.version})
        facts = {} if root is None else {PACKAGES: root.about}
        return GuestExperiment(resolved, key, images, environment=facts, packages=packages, modules=modules, root=root)

    def executor(self, experiment: Experiment, machine: Machine, first: Callable[[Executor], None]) -> Executor:
        from ajuste_guest.executor.guest import GuestExecutor

        image, files, options = self._guest(experiment, machine)
        return GuestExecutor(image, files=files, jobs=self.options.jobs, **options)

    def proof(self, experiment: Experiment, machine: Machine) -> Proof | None:
        from ajuste_guest.proofs.prove import claims_on, prove, require
        from ajuste_guest.proofs.topology import prove_topology

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
        from ajuste_guest.kernel.symbols import kernel_symbols
        from ajuste_guest.relevance import GuestObserver

        def names_of(machine: Machine) -> frozenset[str]:
            return frozenset(
                symbol.name for symbol in kernel_symbols(experiment.images[machine.kernel], self.options.home)
            )

        return GuestObserver(experiment.resolved, catalogue, names_of)

    def _guest(self, experiment: Experiment, machine: Machine) -> tuple[KernelImage, GuestFiles, GuestOptions]:
        assert isinstance(experiment, GuestExperiment)
        from ajuste_guest.executor.initramfs import GuestFiles
        from ajuste_guest.executor.root import root_arguments

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
            "pauses": table.perturbation.pauses if table.perturbation else None,
            "paced_by": resolved.paced_by,
            "say": self.options.say,
        }
        return image, files, options


def _somewhere(program: str) -> str:
    # The likely path of a program in packages that are not fetched yet.
    return find_program(program) or (program if "/" in program else f"/usr/bin/{program}")


def _require_plain(configuration: ResolvedConfiguration, wanted: KernelToBuild, study: Study) -> None:
    # A kernel built for a study has neither the example BPF schedulers nor the headers that modules need.
    from ajuste_guest.executor.initramfs import how_to_build

    place = study.kernel_place(configuration.kernel)
    contained = {scheduler.name for scheduler in study.schedulers}
    if configuration.scheduler and configuration.scheduler not in contained and wanted.config != WITH_SCHEDULERS:
        raise RequestError(
            f"{configuration.kernel} is built without BPF schedulers (sched_ext), "
            f"which {configuration.scheduler} requires",
            hint=how_to_build(configuration.kernel),
            place=place,
        )
    if configuration.modules:
        raise RequestError(
            f"{configuration.kernel}: building a module requires a distribution's kernel, such as debian:5.10",
            hint="omit the level with --without, or use --kernel debian:5.10",
            place=place,
        )


def _require_kernel_of_pauses(study: Study, images: Mapping[str, KernelImage]) -> None:
    wanted = study.target.perturbation.kernel_sha256 if study.target.perturbation else ""
    for spec, image in images.items():
        if wanted and image.sha256 != wanted:
            raise RequestError(
                f"the pauses are moments of another kernel: its SHA-256 begins with {wanted[:12]}, that of {spec} "
                f"({image.release}) with {image.sha256[:12]}; expected the same",
                hint="run ajuste hunt again, under this kernel",
                place=study.place("target", "perturbation", "kernel_sha256"),
            )
