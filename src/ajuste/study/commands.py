"""The command lines of a study: the workload's and those of its background load."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import PurePosixPath

from ajuste.catalogue.arguments import arguments
from ajuste.catalogue.loader import Catalogue
from ajuste.model.error import RequestError
from ajuste.model.plan import Attributes, Command
from ajuste.study.cpus import parse_cpus
from ajuste.study.files import GUEST_DIRECTORY, is_own, own_name, study_files
from ajuste.study.location import Path
from ajuste.study.schema import AttributesTable, BackgroundTable, Study, WorkloadTable

BUNDLED = "ajuste-workloads"
BUNDLED_IN_GUEST = "/ajuste/bin/ajuste-workloads"

ORDINARY_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")

REAL_TIME = ("fifo", "rr")


class Commands:
    """All commands of ``study``. Programs are looked for once; one that is missing raises RequestError."""

    def __init__(self, study: Study, catalogue: Catalogue, find_program: Callable[[str], str | None]) -> None:
        self._study = study
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

    @property
    def endless(self) -> tuple[bool, ...]:
        """Of each background command, whether it is one that never ends by itself."""
        return tuple(
            self._catalogue.workloads[load.kind].endless if load.kind else False
            for _, load, _ in self._background
            for _ in range(load.count)
        )

    def workload(self, parameters: Mapping[str, str], attributes: Mapping[str, str]) -> Command:
        """The workload with a configuration's own parameters and process attributes."""
        return self._command(self._study.workload, self._workload_program, parameters, attributes)

    @cached_property
    def background(self) -> tuple[Command, ...]:
        """The background load, the same in every configuration."""
        return tuple(
            self._command(load, program, {}, {}) for _, load, program in self._background for _ in range(load.count)
        )

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
        own = [str(PurePosixPath(path).parent) for path in self.programs]
        return Command(
            argv=(program, *rest),
            environment={"LANG": "C.UTF-8", "PATH": ":".join(dict.fromkeys((*ORDINARY_PATH, *own)))},
            directory=str(GUEST_DIRECTORY) if study_files(self._study) else "/",
            attributes=process_attributes(job.attributes, attributes),
        )

    def _program(self, job: WorkloadTable | BackgroundTable, path: Path) -> str:
        if job.command is not None:
            name = job.command[0]
            if is_own(name):
                return str(GUEST_DIRECTORY / own_name(name))
            return self._host_program(name, (*path, "command", 0))
        kind = self._catalogue.workloads[job.kind or ""]
        if kind.program == BUNDLED:
            return BUNDLED_IN_GUEST
        return self._host_program(kind.program, (*path, "kind"), kind.package)

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
