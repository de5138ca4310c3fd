"""The command lines of a study: the workload's and those of its background load."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePosixPath

from ajuste.catalogue.arguments import arguments
from ajuste.catalogue.loader import Catalogue
from ajuste.model.error import RequestError
from ajuste.model.plan import Attributes, Command
from ajuste.study.cpus import parse_cpus
from ajuste.study.files import is_own, own_name, study_directory, study_files
from ajuste.study.location import Path
from ajuste.study.resolved import Load
from ajuste.study.schema import AttributesTable, BackgroundTable, Study, WorkloadTable
from ajuste.study.site import GUEST, Site

BUNDLED = "ajuste-workloads"

ORDINARY_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")

REAL_TIME = ("fifo", "rr")


class Commands:
    """All commands of ``study`` as they are run at ``site``. Programs are looked for once; one that is missing raises
    RequestError, and so does a CPU that the site does not have.
    """

    def __init__(
        self, study: Study, catalogue: Catalogue, find_program: Callable[[str], str | None], site: Site = GUEST
    ) -> None:
        self._study = study
        self._site = site
        self._catalogue = catalogue
        self._find = find_program
        self._found: dict[str, str] = {}
        for index, name in enumerate(study.workload.programs):
            self._host_program(name, ("workload", "programs", index))
        self._background = [
            (index, load, self._program(load, ("workload", "background", index)))
            for index, load in enumerate(study.workload.background)
        ]
        self._workload_program = self._program(study.workload, ("workload",))

    @property
    def programs(self) -> tuple[str, ...]:
        """Absolute paths of the programs of this machine that are needed, each once."""
        return tuple(dict.fromkeys(self._found.values()))

    def workload(self, parameters: Mapping[str, str], attributes: Mapping[str, str]) -> Command:
        """The workload with a configuration's own parameters and process attributes."""
        return self._command(self._study.workload, self._workload_program, parameters, attributes)

    def background(self, levels: Mapping[str, str]) -> tuple[tuple[Command, ...], tuple[Load, ...]]:
        """The background load of the configuration with these ``levels``, as the study writes them, by factor."""
        commands: list[Command] = []
        loads: list[Load] = []
        for index, load, program in self._background:
            if all(levels.get(factor) in allowed for factor, allowed in load.when.items()):
                endless = bool(load.kind) and self._catalogue.workloads[load.kind or ""].endless
                commands += [self._command(load, program, {}, {})] * load.count
                loads += [Load(number=index + 1, endless=endless)] * load.count
        return tuple(commands), tuple(loads)

    def _command(
        self,
        job: WorkloadTable | BackgroundTable,
        program: str,
        parameters: Mapping[str, str],
        attributes: Mapping[str, str],
    ) -> Command:
        if job.command is not None:
            rest = job.command[1:]
        else:
            rest = arguments(self._catalogue.workloads[job.kind or ""], {**job.parameters, **parameters})
        return Command(
            argv=(program, *rest),
            environment=self._environment,
            directory=self._directory(job),
            attributes=self._checked(process_attributes(job.attributes, attributes)),
            user=None if self._study.workload.as_root else self._site.user,
        )

    @property
    def _environment(self) -> dict[str, str]:
        """All that a command is told; where it has its caller's environment, nothing of that is written down."""
        if self._site.in_place:
            return {}
        own = [str(PurePosixPath(path).parent) for path in self.programs]
        return {"LANG": "C.UTF-8", "PATH": ":".join(dict.fromkeys((*ORDINARY_PATH, *own)))}

    def _directory(self, job: WorkloadTable | BackgroundTable) -> str:
        """Beside the study's own files, if it has any. Workloads of the catalogue need no place."""
        if study_files(self._study):
            return str(study_directory(self._study).absolute()) if self._site.in_place else self._site.directory
        return self._site.directory if self._site.in_place and job.kind is None else "/"

    def _checked(self, attributes: Attributes) -> Attributes:
        there = self._site.cpus
        beyond = [cpu for cpu in attributes.affinity or () if there is not None and cpu not in there]
        if beyond and there:
            raise RequestError(
                f"CPU {beyond[0]} was asked for; a process may run on {', '.join(map(str, sorted(there)))} here"
            )
        return attributes

    def _program(self, job: WorkloadTable | BackgroundTable, path: Path) -> str:
        if job.command is not None:
            name = job.command[0]
            if is_own(name):
                return self._own_program(name)
            return self._host_program(name, (*path, "command", 0))
        kind = self._catalogue.workloads[job.kind or ""]
        if kind.program == BUNDLED:
            return self._site.bundled
        return self._host_program(kind.program, (*path, "kind"), kind.package)

    def _own_program(self, name: str) -> str:
        if self._site.in_place:
            return str((study_directory(self._study) / own_name(name)).absolute())
        return str(PurePosixPath(self._site.directory) / own_name(name))

    def _host_program(self, name: str, path: Path, package: str = "") -> str:
        if name not in self._found:
            found = self._find(name)
            if found is None:
                package = package or self._package(name)
                hint = (
                    f"apt install {package}" if package else f"`apt-file search bin/{name}` names the package, if any"
                )
                raise RequestError(
                    f'the program "{name}" is not on this machine', hint=hint, place=self._study.place(*path)
                )
            self._found[name] = found
        return self._found[name]

    def _package(self, name: str) -> str:
        """The Debian package of a program that the catalogue knows."""
        return next((kind.package for kind in self._catalogue.workloads.values() if kind.program == name), "")


def process_attributes(table: AttributesTable, varied: Mapping[str, str]) -> Attributes:
    """How a process is run: as the study's table says, but for what a configuration varies.

    A priority belongs to the policies fifo and rr, and is left out under the others.
    """
    values = {name: value for name, value in table.model_dump().items() if value is not None} | dict(varied)
    policy = values.get("policy")
    if policy not in REAL_TIME:
        values.pop("priority", None)
    elif "priority" not in values:
        values["priority"] = 1
    if "affinity" in values:
        values["affinity"] = parse_cpus(str(values["affinity"]))
    return Attributes.model_validate(values)
