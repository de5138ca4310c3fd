"""The file of a suite: its members, each of which becomes a study of the same configurations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from pydantic import Field, ValidationError

from ajuste.catalogue.loader import Catalogue
from ajuste.model.error import Place
from ajuste.model.workload import ELAPSED
from ajuste.study.builtin import builtin_files, find_file
from ajuste.study.command_line.request import CommandLine, Request, seconds, share
from ajuste.study.command_line.study import adhoc_document
from ajuste.study.commands import BUNDLED
from ajuste.study.factors import ParseKernel
from ajuste.study.job import Argument, Name, ScratchTable, Share, StudyTable, Whole, WorkloadTable
from ajuste.study.problem import KeyPath, Problem, StudySource, chosen_by_name, error, from_validation, named_twice
from ajuste.study.read import checked_study, read_toml
from ajuste.study.schema import AnalysisTable, BudgetTable, Study
from ajuste.study.site import is_study_file

FOLDER: Final = "suites"
HINT: Final = "see `ajuste help file-fields` for every field"
# Metric of a command, and of a workload without a main metric.


class GuestTable(StudyTable):
    """The guest of a member, where guests are measured."""

    cpus: Whole | None = Field(default=None, ge=1, le=64, description="CPUs of the guest.")
    memory_mib: Whole | None = Field(default=None, ge=64, le=1048576, description="Memory of the guest, in MiB.")

    modules: tuple[Argument, ...] = Field(
        default=(), description="Kernel modules to load before the trials, as in a study's target."
    )
    device: str | None = Field(
        default=None, description="The block device of the guest that has the members' scratch file systems."
    )

    @property
    def target(self) -> dict[str, Any]:
        """Return the fields that a study's target takes."""
        return self.model_dump(exclude_none=True, exclude_unset=True, exclude={"device"})


class MemberTable(StudyTable):
    """A workload of a suite."""

    name: Name = Field(description="Lower-case letters, digits and hyphens.")
    metrics: tuple[str, ...] = Field(
        default=(),
        max_length=10,
        description="The metrics that get verdicts; the first counts in the geometric mean (default: the workload's "
        "main metric, or elapsed).",
    )
    workload: WorkloadTable = Field(description="What is measured, as in a study.")
    scratch: ScratchTable | None = Field(default=None, description="A file system for each trial, as in a study.")
    guest: GuestTable = Field(default=GuestTable(), description="Overrides the guest of the suite.")


class SuiteTable(StudyTable):
    """Workloads that are measured as one experiment."""

    version: int = Field(default=1, alias="schema", ge=1, le=1, description="The version of this format.")
    name: Name = Field(max_length=30, description="Lower-case letters, digits and hyphens.")
    title: str = Field(default="", description="The title to show (default: the name).")
    what: str = Field(default="", description="What it measures, in a sentence or two.")
    smallest_effect: Share | None = Field(
        default=None, description="The smallest effect that matters, relative to the baseline (default: 0.02)."
    )
    guest: GuestTable = Field(default=GuestTable(), description="The guest of all members.")
    budget: BudgetTable = Field(
        default=BudgetTable(), description="As in a study; max_minutes is for all members together."
    )
    members: tuple[MemberTable, ...] = Field(alias="member", min_length=1, max_length=50)


@dataclass(frozen=True)
class Suite:
    """A suite; ``source`` is its file."""

    source: StudySource
    table: SuiteTable

    def chosen(self, names: Sequence[str]) -> tuple[MemberTable, ...]:
        """Return the members of those names, in the file's order; all if none is named. Raises RequestError."""
        return chosen_by_name("member", self.table.members, names, f"the suite {self.table.name}")


def builtin_suites() -> list[Suite]:
    """Return the suites that Ajuste has itself, by name."""
    return [read_suite(path) for path in builtin_files(FOLDER).values()]


def find_suite(name_or_path: str) -> Suite:
    """Return the built-in suite of that name, or that of a file. Raises RequestError."""
    return read_suite(find_file(name_or_path, FOLDER, "suite", "list the suites with `ajuste suite`"))


def read_suite(path: Path) -> Suite:
    """Return the suite in the file ``path``; only its form is checked. Raises one RequestError with all errors."""
    document, source = read_toml(path, "suite file", "list the suites with `ajuste suite`", fields=HINT)
    try:
        table = SuiteTable.model_validate(document)
    except ValidationError as failure:
        raise error(from_validation(failure, SuiteTable), source) from None
    wrong = named_twice("member", table.members)
    wrong += [
        Problem(("member", index, "workload"), "several commands are a factor; expected kind or one command")
        for index, member in enumerate(table.members)
        if member.workload.variants
    ]
    if wrong:
        raise error(wrong, source)
    return Suite(source, table)


# A member of a suite as a study.


@dataclass(frozen=True)
class Shares:
    """The confidence and the time of all ``members`` together; each gets confidence by the number of its verdicts."""

    members: tuple[MemberTable, ...]
    confidence: float
    max_minutes: float

    def member_confidence(self, member: MemberTable) -> float:
        """Return the confidence of a member's verdicts: the errors of all members add up to the suite's."""
        verdicts = sum(_verdicts(member) for member in self.members)
        return 1 - (1 - self.confidence) * _verdicts(member) / verdicts

    @property
    def minutes_each(self) -> float:
        return self.max_minutes / len(self.members)


def _verdicts(member: MemberTable) -> int:
    # Return the number of verdicts on each configuration.
    return max(1, len(member.metrics))


def shares(suite: Suite, members: tuple[MemberTable, ...], request: Request) -> Shares:
    """Return what ``members`` share, by ``request`` or else by the suite. Raises RequestError."""
    confidence = AnalysisTable.model_fields["confidence"].default
    if request.confidence is not None:
        confidence = share("--confidence", request.confidence)
    minutes = suite.table.budget.max_minutes
    if request.max_time is not None:
        minutes = seconds("--max-time", request.max_time) / 60
    return Shares(members, confidence, minutes)


def member_study(
    suite: Suite,
    member: MemberTable,
    request: Request,
    together: Shares,
    known: Catalogue,
    *,
    beside: Sequence[str] = (),
    parse_kernel: ParseKernel = str,
) -> Study:
    """Return the configurations of ``request`` with the workload of ``member``, checked. Raises RequestError.

    Guests also have the programs ``beside`` its own.
    """
    workload = member.workload
    command = (workload.kind,) if workload.kind else workload.command or ()
    member_request = replace(request, commands=(command,), confidence=None, max_time=None)
    document, line = adhoc_document(member_request, known)
    origin = MemberOrigin(suite, suite.table.members.index(member), replace(line, command="ajuste suite"))
    table = workload.model_dump(exclude_unset=True, by_alias=True)
    if not request.in_guest:
        table["parameters"] = {**table.get("parameters", {}), **workload.host_parameters}
    table.pop("host_parameters", None)
    document["name"] = f"{suite.table.name}-{member.name}"
    document["workload"] = {"timeout_s": document["workload"]["timeout_s"], **table}
    if request.in_guest:
        programs = document["workload"].get("programs", ())
        document["workload"]["programs"] = [
            *programs,
            *(program for program in beside if program not in programs),
        ]
    document["target"] = {**_guest(suite, member, request), **document["target"]}
    if member.scratch is not None:
        device = (member.guest.device or suite.table.guest.device) if request.in_guest else None
        placed = {"device": device} if device is not None else {}
        document["scratch"] = placed | member.scratch.model_dump(exclude_unset=True)
    kind = known.workloads.get(workload.kind or "")
    document["analysis"] |= {
        "metrics": list(member.metrics or (kind.leading_metrics[0] if kind else ELAPSED,)),
        "confidence": together.member_confidence(member),
    }
    if request.min_effect is None and suite.table.smallest_effect is not None:
        document["analysis"]["smallest_effect"] = suite.table.smallest_effect
    document["budget"] = {
        **suite.table.budget.model_dump(exclude_unset=True),
        **(document["budget"] if request.blocks is not None else {}),
        "max_minutes": together.minutes_each,
    }
    return checked_study(document, origin, known, parse_kernel=parse_kernel)


def guest_programs(suite: Suite, known: Catalogue) -> tuple[str, ...]:
    """Return the programs of all members that a guest lacks, so that one booted guest serves all members."""
    programs: set[str] = set()
    for member in suite.table.members:
        for job in (member.workload, *member.workload.background):
            kind = known.workloads.get(job.kind or "")
            programs |= {kind.program, *kind.needs} if kind else {(job.command or ("",))[0]}
        programs |= set(member.workload.programs)
    return tuple(sorted(name for name in programs if name and name != BUNDLED and not is_study_file(name)))


def _guest(suite: Suite, member: MemberTable, request: Request) -> Mapping[str, Any]:
    # Return the guest's table; the command line takes precedence.
    if not request.in_guest:
        return {}
    target = suite.table.guest.target | member.guest.target
    return {name: value for name, value in target.items() if name != "cpus" or request.topology is None}


@dataclass(frozen=True)
class MemberOrigin:
    """The places where each part of a member's study is written down in the suite, or was given on the command
    ``line``.
    """

    suite: Suite
    index: int
    line: CommandLine
    hint: str = HINT

    @property
    def directory(self) -> Path:
        """Return the directory of the suite, which its programs and files are beside."""
        return self.suite.source.file.parent

    def place(self, keys: KeyPath) -> Place:
        """Return the place of the field that says it, or else of the option."""
        member: KeyPath = ("member", self.index)
        if keys[:1] in (("workload",), ("scratch",)):
            return self.suite.source.place((*member, *keys))
        if keys[:2] == ("analysis", "metrics"):
            return self.suite.source.place((*member, *keys[1:]))
        return self.line.place(keys)
