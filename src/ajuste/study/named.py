"""Everything in a study that names a path, a command, a place or a kernel, for the table of capabilities.

Each field of a study file that holds text is declared here, and each parameter of a workload in the catalogue. What is
not declared fails a test, and is refused to those who may not name everything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Final, NamedTuple, get_args

from pydantic import BaseModel

from ajuste.catalogue.loader import Catalogue, is_machine_file
from ajuste.model.boot import is_boot_name
from ajuste.model.capability import Asked, Kind
from ajuste.model.error import RequestError
from ajuste.model.plan import REAL_TIME
from ajuste.model.trial import COMMAND_FACTOR, KERNEL_FACTOR
from ajuste.model.tunable import AttributeName, Tunable
from ajuste.study.factors import KERNEL_ARGUMENTS, canonical, service_part, set_by, workload_parameter
from ajuste.study.job import AttributesTable, ScratchTable
from ajuste.study.resolved import ResolvedStudy
from ajuste.study.schema import FactorTable, Study
from ajuste.study.services import catalogue_services

# Function from a kernel spec to its kind (`kernel.spec.kernel_kind`).
KernelKind = Callable[[str], Kind]

# Kinds of what fields name. Those of a guest and of kernels are distinguished by what the field holds.
NAMES: Final[Mapping[str, Kind]] = {
    "WorkloadTable.command": "command",
    "WorkloadTable.setup": "command",
    "WorkloadTable.prepare": "command",
    "WorkloadTable.cleanup": "command",
    "BackgroundTable.command": "command",
    "BackgroundTable.ready": "command",
    "VariantTable.command": "command",
    "ServiceTable.command": "command",
    "ServiceTable.ready": "command",
    "ServiceTable.stop": "command",
    "ServiceTable.data": "command",
    "ServiceTable.setting": "command",
    "ServiceTable.environment": "command",
    "ServiceTable.user": "root command",
    "WorkloadTable.programs": "path",
    "WorkloadTable.files": "path",
    "ServiceTable.files": "path",
    "VariantTable.directory": "path",
    "MachineTable.model": "path",
    "WorkloadTable.parameters": "parameter",
    "WorkloadTable.host_parameters": "parameter",
    "BackgroundTable.parameters": "parameter",
    "ScratchTable.device": "device",
    "ScratchTable.directory": "file system",
    "ScratchTable.make_options": "file system",
    "ScratchTable.mount_options": "file system",
    "DiskTable.device": "file system",
    "TargetTable.kernel": "kernel package",
    "FactorTable.name": "tunable",
    "FactorTable.levels": "tunable",
    "FactorTable.settings": "tunable",
    "SchedulerTable.program": "path",
    "SchedulerTable.build": "kernel source",
}

# Fields of text that name nothing of this machine: words for people, names of the catalogue, and parts of a guest.
PLAIN: Final = frozenset(
    {
        *("Study.name", "Study.title", "Study.question", "Study.notes"),
        *("FactorTable.range", "FactorTable.step", "FactorTable.baseline", "FactorTable.prove"),
        *("WorkloadTable.kind", "WorkloadTable.console_failure", "PerturbationTable.kernel_sha256"),
        *("BackgroundTable.kind", "BackgroundTable.when"),
        *("ServiceTable.name", "ServiceTable.when"),
        *("VariantTable.name", "AttributesTable.affinity", "ScratchTable.filesystem", "ScratchTable.options"),
        *("PatternTable.name", "PatternTable.pattern", "PatternTable.pointer", "PatternTable.unit"),
        *("PatternTable.title", "SamplerTable.keys", "TimelineTable.name", "TimelineTable.key"),
        *("TimelineTable.unit", "TimelineTable.title"),
        *("TargetTable.modules", "TargetTable.packages", "TargetTable.kernel_arguments", "TargetTable.prove"),
        *("AnalysisTable.metrics", "AnalysisTable.describe", "AnalysisTable.prediction"),
        *("TuneTable.objectives", "TuneTable.constraints"),
        *("ExpectTable.digest", "ExpectTable.kernels", "ExpectTable.ajuste"),
        *("ExpectedFigure.metric", "ExpectedFigure.configuration"),
        *("PatchTable.name", "PatchTable.sha256", "PatchTable.text"),
        # What is fetched is for the build alone, which has to be allowed.
        *("SchedulerTable.name", "SchedulerTable.sha256", "SchedulerTable.repository"),
        *("SchedulerTable.commit", "SchedulerTable.source"),
    }
)

# Beginning of the device that Ajuste makes for a study's disk.
LOOP: Final = "/dev/loop"
# Directories of a distribution with programs that any user may read.
SYSTEM: Final = ("/usr/bin/", "/usr/sbin/", "/usr/lib/", "/usr/libexec/", "/usr/share/", "/bin/", "/sbin/", "/lib/")


class Named(NamedTuple):
    """A thing that a study names, with the field that names it."""

    kind: Kind
    value: str
    where: str


def require_allowed(study: Study, rights: Asked, known: Catalogue, kernel_kind: KernelKind) -> None:
    """Raise RequestError for the first thing in ``study`` that this asker may not name."""
    for named in named_in(study, known, kernel_kind):
        rights.require(named.kind, named.value, named.where)


def require_allowed_run(resolved: ResolvedStudy, rights: Asked, known: Catalogue, kernel_kind: KernelKind) -> None:
    """Check, as ``require_allowed`` does, a study that was resolved elsewhere, where anything may have been written."""
    require_allowed(resolved.study, rights, known, kernel_kind)
    for program in resolved.programs:
        if not _of_the_system(program):
            rights.require("path", program, "programs")
    for file in resolved.files.values():
        rights.require("path", file, "files")
    for kernel in dict.fromkeys(
        configuration.kernel for configuration in resolved.configurations if configuration.kernel
    ):
        rights.require(kernel_kind(kernel), kernel, "kernel")


def named_in(study: Study, known: Catalogue, kernel_kind: KernelKind) -> Iterator[Named]:
    """Yield everything that ``study`` names."""
    on_host, job = study.target.on_host, study.workload
    if (kind := known.workloads.get(job.kind or "")) and kind.services and job.services == catalogue_services(kind):
        job = job.model_copy(update={"services": ()})  # The catalogue's own.
    study = study.model_copy(update={"workload": job})
    if on_host:
        yield Named("host", "host", "target.kind")
        if study.design.blocks_per_boot:
            yield Named("boot", f"blocks_per_boot = {study.design.blocks_per_boot}", "design")
    yield from _in_table(study, "", on_host, kernel_kind)
    jobs = [("workload", job.kind, (job.parameters | job.host_parameters).items())]
    jobs += [("workload.background", load.kind, load.parameters.items()) for load in job.background]
    for where, workload, parameters in jobs:
        for name, value in parameters:
            yield _parameter(workload, name, value, f"{where}.parameters.{name}", known, on_host=on_host)
    if job.as_root:
        yield Named("root command" if on_host else "guest root", "root", "workload.as_root")
    if on_host and (study.scratch or study.disk):
        yield Named("file system", "scratch" if study.scratch else "disk", "scratch" if study.scratch else "disk")
    if on_host and study.scratch:
        yield from disks_of_mkfs(study.scratch)
    if on_host:
        loads, services = (table.attributes for table in job.background), (table.attributes for table in job.services)
        for attributes in (job.attributes, *loads, *services):
            yield from _attributes(attributes)
    for factor in study.factors:
        yield from _in_factor(factor, study, known, kernel_kind)


# Options of mke2fs(8) that name no other device, file or directory, with their values.
_FORMATS: Final = re.compile(r"(-[bCEGgIiLMmNOoTtUe](\x00?[^\x00/]+)|-[cFjKnqSVv])(\x00|$)")
# In mount options: another device, such as that of a journal, or another mount.
_ELSEWHERE: Final = re.compile(r"/|(dev|device|path)=|(^|,)\s*(r?bind|move|remount)\b")


def disks_of_mkfs(table: ScratchTable) -> Iterator[Named]:
    """Yield the arguments that may lead mkfs or mount, which run as root, to another disk or a directory."""
    known = table.filesystem.startswith("ext") and not _FORMATS.sub("", "\x00".join(table.make_options))
    if table.make_options and not known:
        yield Named("device", " ".join(table.make_options), "scratch.make_options")
    if _ELSEWHERE.search(table.mount_options):
        yield Named("device", table.mount_options, "scratch.mount_options")


def _attributes(attributes: AttributesTable) -> Iterator[Named]:
    # Yield the attributes of a process, which are tunables of the catalogue, too.
    for name in get_args(AttributeName):
        if (value := getattr(attributes, name)) is not None:
            yield Named("tunable", name, f"attributes.{name}")
            if value in REAL_TIME:
                yield Named("risk", f"policy {value}", f"attributes.{name}")


def _in_table(table: BaseModel, path: str, on_host: bool, kernel_kind: KernelKind) -> Iterator[Named]:
    # Yield what the declared fields of a table, and of the tables in it, name.
    for name in type(table).model_fields:
        value, where = getattr(table, name), f"{path}{name}"
        for number, inner in enumerate(value if isinstance(value, tuple) else (value,)):
            if isinstance(inner, BaseModel):
                index = f"[{number + 1}]" if isinstance(value, tuple) else ""
                yield from _in_table(inner, f"{where}{index}.", on_host, kernel_kind)
        kind = NAMES.get(f"{type(table).__name__}.{name}")
        if kind is not None and value:
            yield from _in_field(kind, value, where, on_host, kernel_kind)


def _in_field(kind: Kind, value: object, where: str, on_host: bool, kernel_kind: KernelKind) -> Iterator[Named]:
    match kind, value:
        case "command", tuple():
            yield Named("command" if on_host else "guest command", " ".join(map(str, value)), where)
            yield from _file(str(value[0]), where)
        case "command", str() if value.startswith("socket:"):
            yield from _file(value.removeprefix("socket:"), where) if on_host else ()
        case "command", dict() if value and on_host:
            yield Named("command", next(iter(value)), where)
        case "root command", str():
            yield Named("root command" if on_host else "guest root", value, where)
        case "path", tuple():
            for part in value:
                yield from _file(str(part), where, named="/" in str(part) or not where.endswith("programs"))
        case "path", str():
            if not where.endswith("machine.model") or is_machine_file(value):
                yield Named("path", value, where)
        case "kernel source", tuple():
            yield Named("kernel source", " ".join(map(str, value)), where)
        case "device", str() if on_host and not value.startswith(LOOP):
            yield Named("device", value, where)
        case "kernel package", str():
            yield Named(kernel_kind(value), value, where)


def _file(text: str, where: str, *, named: bool = True) -> Iterator[Named]:
    # A program by its name, or in a directory of the distribution, is no path.
    if not named or (where.rpartition(".")[2] in _PROGRAMS and ("/" not in text or _of_the_system(text))):
        return
    yield Named("path", text, where)


_PROGRAMS: Final = ("command", "setup", "prepare", "cleanup", "ready", "stop", "data", "programs")


def _of_the_system(text: str) -> bool:
    return text.startswith(SYSTEM) and ".." not in PurePosixPath(text).parts


def _parameter(workload: str | None, name: str, value: str, where: str, known: Catalogue, *, on_host: bool) -> Named:
    # Return what a parameter names: in a guest, always something of the guest.
    kind = known.workloads.get(workload or "")
    parameter = kind.parameters.get(name) if kind else None
    is_open = parameter is not None and parameter.chosen_by == "anyone"
    return Named("parameter" if is_open or not on_host else "path", value, where)


def _tunable(name: str, known: Catalogue) -> Tunable | None:
    try:
        return known.find_tunable(name)
    except RequestError:
        return None


def _in_factor(factor: FactorTable, study: Study, known: Catalogue, kernel_kind: KernelKind) -> Iterator[Named]:
    on_host = study.target.on_host
    where = f"factor {factor.name}"
    for name, level in ((name, level) for choice in factor.levels for name, level in set_by(factor, choice).items()):
        if name == KERNEL_FACTOR:
            yield Named(kernel_kind(level), level, where)
        elif parameter := workload_parameter(name):
            yield _parameter(study.workload.kind, parameter, level, where, known, on_host=on_host)
        elif part := service_part(name, study.workload):
            if not part.is_attribute:  # It may name a command, as PostgreSQL's archive_command does.
                yield Named("command" if on_host else "guest command", f"{name}={level}", where)
        elif is_boot_name(name):
            yield Named("boot", f"{name}={level}", where)
        elif on_host and name not in (COMMAND_FACTOR, KERNEL_ARGUMENTS):
            canonical_name = canonical(name, known)
            yield Named("tunable", canonical_name, where)
            tunable = _tunable(canonical_name, known)
            if tunable is None:
                yield Named("place", name, where)
            elif tunable.risk in ("hang", "data") or (canonical_name == "policy" and level in REAL_TIME):
                yield Named("risk", canonical_name, where)
