"""The command lines of a study: the workload's and those of its background load."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import PurePosixPath

from ajuste.catalogue.level import arguments, modules
from ajuste.catalogue.loader import Catalogue
from ajuste.catalogue.programs import install_hint, search_hint
from ajuste.design.blocks import perturbation
from ajuste.model.error import RequestError
from ajuste.model.plan import (
    Attributes,
    Command,
    Perturbation,
    Plan,
    Ready,
    ReadyCommand,
    ReadyOutput,
    ReadySettled,
    ReadyStarted,
    Scratch,
)
from ajuste.model.trial import Slot
from ajuste.outputs.trial_status import TrialReading
from ajuste.study.factors import WORKLOAD_PREFIX, process_attributes, varies
from ajuste.study.job import BackgroundTable, WorkloadTable
from ajuste.study.problem import KeyPath
from ajuste.study.resolved import Load, ResolvedStudy
from ajuste.study.schema import Study
from ajuste.study.services import Served, Services, is_there
from ajuste.study.site import (
    GUEST,
    GUEST_HOME,
    MOUNT_POINT,
    SCHEDULERS,
    Site,
    is_study_file,
    normal_name,
    scratch,
    study_directory,
    study_files,
)

# What one trial writes and runs, and how what its programs say is read: from the study and its place in it alone.


def plan_for(study: ResolvedStudy, slot: Slot, attempt: int) -> Plan:
    """Return what one trial writes, runs and counts. It follows from study, slot and attempt alone."""
    resolved = study.find(slot.configuration)
    table = study.study.workload
    on_host = study.study.target.on_host
    same = study.study.target.perturbation
    disturbed = perturbation(slot.seed) if same is None else same.of_trials
    return Plan(
        id=f"b{slot.block}p{slot.position}a{attempt}",
        writes=resolved.writes,
        scratch=resolved.scratch,
        before=resolved.before,
        background=resolved.background,
        ready=tuple(load.ready for load in resolved.loads),
        ready_timeout_ns=round(1e9 * max((load.patience_s for load in table.background), default=0)),
        settle_ns=round(table.settle_s * 1e9) if resolved.background or not on_host else 0,
        workload=resolved.workload,
        timeout_ns=round(table.timeout_s * 1e9),
        counters=study.counters,
        samplers=study.samplers,
        observe_ns=round(table.observe_s * 1e9),
        after=resolved.after,
        # A host's random pool is its own, and its trials start at any moment anyway.
        perturbation=Perturbation(environment_bytes=disturbed.environment_bytes) if on_host else disturbed,
    )


def trial_reading(study: ResolvedStudy, configuration: str) -> TrialReading:
    """Return how to read the outputs of the study's workload under that configuration."""
    resolved = study.find(configuration)
    loads = resolved.loads
    # A value of a range, or one that a search suggests, may be rounded: the kernel's next one is as good as any.
    ranges = [f"/{factor.name}/" for factor in study.factors if factor.span is not None and factor.span.points]
    written = {write.tunable for write in resolved.writes}
    if study.search is None:
        written = {tunable for tunable in written if any(f"/{tunable}/" in names for names in ranges)}
    return TrialReading(
        parser=study.parser,
        patterns=study.patterns,
        pointers=study.pointers,
        timelines=study.timelines,
        endless=tuple(load.endless for load in loads),
        shares_of=tuple(load.number for load in loads) if study.shares else None,
        any_exit=study.study.workload.ignore_failure,
        keep_output=study.study.workload.keep_output,
        console_failure=study.study.workload.console_failure,
        services=tuple(service.name for service in resolved.services),
        rounded=frozenset(written),
    )


BUNDLED = "ajuste-workloads"

ORDINARY_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")

# The Debian packages of programs that make file systems.
_MAKERS = {
    **dict.fromkeys(("mkfs.ext2", "mkfs.ext3", "mkfs.ext4"), "e2fsprogs"),
    "mkfs.xfs": "xfsprogs",
    "mkfs.btrfs": "btrfs-progs",
    "mkfs.f2fs": "f2fs-tools",
}


class CommandResolver:
    """Resolves the commands of ``study`` for ``site``. Programs are looked for once; one that is missing raises
    RequestError, and so does a CPU that the site does not have.
    """

    def __init__(
        self, study: Study, catalogue: Catalogue, find_program: Callable[[str], str | None], site: Site = GUEST
    ) -> None:
        self._study = study
        self._site = site
        self._catalogue = catalogue
        self._find = find_program
        self._paths: dict[str, str] = {}
        for index, name in enumerate(study.workload.programs):
            self._command_program(name, ("workload", "programs", index))
        self.services = Services(study, catalogue, site, self._command_program, self._command)
        self._background = [
            (index, load, self._program(load, ("workload", "background", index)))
            for index, load in enumerate(study.workload.background)
        ]
        self._asking = {
            index: self._argv(load.ready, ("workload", "background", index, "ready"))
            for index, load in enumerate(study.workload.background)
            if isinstance(load.ready, tuple)
        }
        self._variants = {
            variant.name: self._argv(variant.command, ("workload", "variant", index, "command"))
            for index, variant in enumerate(study.workload.variants)
        }
        self._workload_program = "" if self._variants else self._program(study.workload, ("workload",))
        commands = {"setup": study.workload.setup, "prepare": study.workload.prepare, "cleanup": study.workload.cleanup}
        self._extra = {name: self._argv(argv, ("workload", name)) for name, argv in commands.items() if argv}

    @property
    def programs(self) -> tuple[str, ...]:
        """Return absolute paths of the programs of this machine that are needed, each once."""
        return tuple(dict.fromkeys(self._paths.values()))

    def scratch(self, varied: Mapping[str, str]) -> Scratch | None:
        """Return the file system of a configuration that sets these attributes of it, if the study has one."""
        table = self._study.scratch
        if table is None:
            return None
        try:
            return scratch(table, varied, self._site, self._administrators_program)
        except RequestError as failure:
            raise failure.at(failure.place or self._study.place("scratch")) from None

    @property
    def words(self) -> str:
        """Return the workload as people name it: its kind, or its command as a shell would read it."""
        job = self._study.workload
        return job.kind or shlex.join(job.command or ())

    def workload(
        self,
        parameters: Mapping[str, str],
        attributes: Mapping[str, str],
        variant: str | None = None,
        limits: Mapping[str, str] | None = None,
    ) -> Command:
        """Return the workload with a configuration's parameters, attributes, variant and control group limits."""
        job = self._study.workload
        if variant is None:
            argv = (self._workload_program, *self._arguments(job, parameters))
        else:
            argv = self._variants[variant]
        argv = self.services.fill(argv)
        directory = next((table.directory for table in job.variants if table.name == variant), None)
        attributes_of_process = process_attributes(job.attributes, attributes)
        attributes_of_process = attributes_of_process.model_copy(update={"cgroup_limits": dict(limits or {})})
        resolved_argv = self._command(
            argv, attributes_of_process, in_place=job.kind is None or self._catalogue.workloads[job.kind].writes
        )
        return (
            resolved_argv.model_copy(update={"directory": self._variant_directory(directory)})
            if directory
            else resolved_argv
        )

    def modules(self, parameters: Mapping[str, str]) -> tuple[str, ...]:
        """Return the kernel modules of Ajuste that the workload and its background loads need."""
        jobs: list[tuple[WorkloadTable | BackgroundTable, Mapping[str, str]]] = [(self._study.workload, parameters)]
        jobs += [(load, {}) for _, load, _ in self._background]
        kinds = (
            (self._catalogue.workloads[job.kind], {**job.parameters, **varied}) for job, varied in jobs if job.kind
        )
        return tuple(dict.fromkeys(name for kind, parameters in kinds for name in modules(kind, parameters)))

    @cached_property
    def setup(self) -> tuple[Command, ...]:
        """Return the commands that run once, before all trials."""
        return self._once("setup")

    @cached_property
    def cleanup(self) -> tuple[Command, ...]:
        """Return the commands that run once, after all trials."""
        return self._once("cleanup")

    @cached_property
    def removed(self) -> tuple[Command, ...]:
        """Return the commands that remove, after all trials, the files that workloads of the catalogue make. A file
        that the study names stays, and one in a file system of a trial goes with that.
        """
        if self._study.scratch is not None:
            return ()
        files = dict.fromkeys(
            parameter.default
            for job in (self._study.workload, *self._study.workload.background)
            if job.kind and self._catalogue.workloads[job.kind].writes
            for name, parameter in self._catalogue.workloads[job.kind].parameters.items()
            if parameter.type == "file" and name not in job.parameters
            if job is not self._study.workload or not varies(self._study, WORKLOAD_PREFIX + name)
        )
        program = self._host_program("rm", ("workload", "kind")) if files else ""
        return tuple(self._command((program, "-f", file), Attributes(), in_place=True) for file in files)

    def _once(self, name: str) -> tuple[Command, ...]:
        # On a host there is no file system of a trial yet, or no more.
        extra = self._extra_commands(name)
        in_trial = self._study.scratch is None or not self._site.in_place
        return extra if in_trial else tuple(c.model_copy(update={"directory": self._site.directory}) for c in extra)

    def before(self, scheduler: str, served: Served) -> tuple[Command, ...]:
        """Return the commands before each trial: in a guest, where every trial starts from the same machine, the setup
        too. Services are there for the preparation, which is no part of their accounts.
        """
        setup = () if self._study.target.on_host else self.setup
        prepare = self._extra_commands("prepare")
        # A scheduler comes from a program that is left running.
        loading = (self._scheduling("load", f"{SCHEDULERS}/{scheduler}"),) if scheduler else ()
        if not served.services:
            return (*setup, *prepare, *loading)
        return (*setup, *loading, *served.started, *prepare, *served.accounting)

    def after(self, scheduler: str, served: Served) -> tuple[Command, ...]:
        """Return the commands after each trial."""
        cleanup = () if self._study.target.on_host else self.cleanup
        # Fails if the kernel did not keep the scheduler until then.
        unloading = (self._scheduling("unload"),) if scheduler else ()
        return (*served.stopped, *unloading, *cleanup)

    def _scheduling(self, *words: str) -> Command:
        return Command(argv=(self._site.bundled, "scheduler", *words), environment={"LANG": "C.UTF-8"})

    def background(self, levels: Mapping[str, str]) -> tuple[tuple[Command, ...], tuple[Load, ...]]:
        """Return the background load of the configuration with these ``levels``, as written, by factor."""
        commands: list[Command] = []
        loads: list[Load] = []
        for index, load, program in self._background:
            if is_there(load.when, levels):
                endless = bool(load.kind) and self._catalogue.workloads[load.kind or ""].endless
                argv = self.services.fill((program, *self._arguments(load, {})))
                attributes = process_attributes(load.attributes, {})
                commands += [self._command(argv, attributes, in_place=load.kind is None)] * load.count
                loads += [Load(number=index + 1, endless=endless, ready=self._ready(index, load))] * load.count
        return tuple(commands), tuple(loads)

    def _ready(self, index: int, load: BackgroundTable) -> Ready:
        if isinstance(load.ready, tuple):
            argv = self.services.fill(self._asking[index])
            return ReadyCommand(command=self._command(argv, Attributes(), in_place=True))
        kind, _, text = load.ready.partition(":")
        return ReadyOutput(text=text) if kind == "log" else ReadyStarted() if kind == "none" else ReadySettled()

    def _arguments(self, job: WorkloadTable | BackgroundTable, parameters: Mapping[str, str]) -> tuple[str, ...]:
        if job.command is not None:
            return job.command[1:]
        return arguments(self._catalogue.workloads[job.kind or ""], {**job.parameters, **parameters})

    def _command(self, argv: tuple[str, ...], attributes: Attributes, *, in_place: bool) -> Command:
        # `in_place`: where the caller is; most workloads of the catalogue need no place.
        environment: dict[str, str] = {}  # its caller's, where it has that, is not written down
        if not self._site.in_place:
            bundled = (self._site.bundled,) if BUNDLED in self._study.workload.programs else ()
            directories = [str(PurePosixPath(path).parent) for path in (*self.programs, *bundled)]
            search_path = ":".join(dict.fromkeys((*ORDINARY_PATH, *directories)))
            environment = {"HOME": GUEST_HOME, "LANG": "C.UTF-8", "PATH": search_path}
        return Command(
            argv=argv,
            environment=environment,
            directory=self._directory(in_place=in_place),
            attributes=self._checked(attributes),
            user=None if self._study.workload.as_root else self._site.user,
        )

    def _directory(self, *, in_place: bool) -> str:
        # The file system made for the trial, if there is one, or beside the study's own files.
        if self._study.scratch is not None:
            return MOUNT_POINT
        if study_files(self._study):
            return str(study_directory(self._study).absolute()) if self._site.in_place else self._site.directory
        if self._site.in_place:
            return self._site.directory if in_place else "/"
        return GUEST_HOME

    def _variant_directory(self, name: str) -> str:
        # Return a variant's directory. A guest has it if one of the study's files is in it.
        directory_name = normal_name(name)
        if self._site.in_place:
            return str((study_directory(self._study) / directory_name).absolute())
        there = any(PurePosixPath(file).is_relative_to(directory_name) for file in study_files(self._study))
        return str(PurePosixPath(self._site.directory) / directory_name) if there else GUEST_HOME

    def _checked(self, attributes: Attributes) -> Attributes:
        there = self._site.cpus
        beyond = [cpu for cpu in attributes.affinity or () if there is not None and cpu not in there]
        if beyond and there:
            raise RequestError(
                f"CPU {beyond[0]} is not available; expected CPUs among {', '.join(map(str, sorted(there)))} here"
            )
        return attributes

    def _argv(self, command: tuple[str, ...], path: KeyPath) -> tuple[str, ...]:
        return (self._command_program(command[0], (*path, 0)), *command[1:])

    def _extra_commands(self, name: str) -> tuple[Command, ...]:
        if name not in self._extra:
            return ()
        argv = self.services.fill(self._extra[name]) if name == "prepare" else self._extra[name]
        return (self._command(argv, Attributes(), in_place=True),)

    def _command_program(self, name: str, path: KeyPath) -> str:
        if name == BUNDLED:
            return self._site.bundled
        if not is_study_file(name):
            return self._host_program(name, path)
        if self._site.in_place:
            return str((study_directory(self._study) / normal_name(name)).absolute())
        return str(PurePosixPath(self._site.directory) / normal_name(name))

    def _program(self, job: WorkloadTable | BackgroundTable, path: KeyPath) -> str:
        if job.command is not None:
            return self._command_program(job.command[0], (*path, "command", 0))
        kind = self._catalogue.workloads[job.kind or ""]
        for name, package in kind.needs.items():
            self._host_program(name, (*path, "kind"), package)
        if kind.program == BUNDLED:
            return self._site.bundled
        return self._host_program(kind.program, (*path, "kind"), kind.package)

    def _host_program(self, name: str, path: KeyPath, package: str = "") -> str:
        # Find a program on this machine, unless the site has it.
        if there := self._there(name):
            return there
        if name not in self._paths:
            # Ordinary users do not have /usr/sbin in their PATH, but plan what root runs.
            program = self._find(name) or (None if "/" in name else self._find(f"/usr/sbin/{name}"))
            if program is None:
                kinds = self._catalogue.workloads.values()
                package = package or next((kind.package for kind in kinds if kind.program == name), "")
                package = package or next((kind.needs[name] for kind in kinds if name in kind.needs), "")
                raise self._missing_program(name, path, package)
            self._paths[name] = program
        return self._paths[name]

    def _there(self, name: str) -> str | None:
        return self._site.find_there(name) if self._site.find_there else None

    def _missing_program(self, name: str, path: KeyPath, package: str) -> RequestError:
        place = self._study.place(*path)
        if self._site.find_there is None:
            hint = install_hint(package) if package else search_hint(name, self._catalogue.workloads)
            if len(name.split()) > 1:
                hint = "give the program and each argument as a word of its own, not quoted together"
            return RequestError(f'program "{name}" not found', hint=hint, place=place)
        search = f"https://packages.debian.org/file:{PurePosixPath(name).name}"
        hint = f"add its package: --package {package}" if package else f"add its package; find it at {search}"
        message = f'program "{name}" not found in the packages or on this machine'
        return RequestError(message, hint=hint, place=place)

    def _administrators_program(self, name: str) -> str:
        # A program of /usr/sbin, which ordinary people do not have in their PATH.
        if not self._there(name) and name not in self._paths and (path := self._find(f"/usr/sbin/{name}")):
            self._paths[name] = path
        return self._host_program(name, ("scratch", "filesystem"), _MAKERS.get(name, ""))
