"""The catalogue: every tunable, workload and base metric that Ajuste knows, read from TOML once."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache, cached_property
from importlib import import_module
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ajuste.catalogue import level, place, servers
from ajuste.catalogue.place import CanChange, ListFiles
from ajuste.catalogue.programs import changed_by, with_benchmark_programs
from ajuste.model.caller import open_given
from ajuste.model.error import AjusteError, Place, RequestError, did_you_mean, nearest_names
from ajuste.model.kernel import KernelVersion
from ajuste.model.plugins import add_problem, catalogues, folders
from ajuste.model.tunable import InstanceKind, Marker, Tunable
from ajuste.model.wording import first_few

if TYPE_CHECKING:
    from ajuste.model.metric import FigureSource, Metric, PredictionRule
    from ajuste.model.modelled import ModelledMachine
    from ajuste.model.plan import Location, SamplerSource
    from ajuste.model.relevance import GuestQuestion, RelevanceCondition
    from ajuste.model.workload import ServiceKind, WorkloadKind

M = TypeVar(
    "M",
    Tunable,
    "WorkloadKind",
    "ServiceKind",
    "Metric",
    InstanceKind,
    "PredictionRule",
    "ModelledMachine",
    "RelevanceCondition",
    "GuestQuestion",
)
V = TypeVar("V")

_LARGEST_MACHINE = 1_000_000
_MACHINE_HINT = "see `ajuste help modelled-machine` for what a machine has"
# Per cent of likeness from which a word counts as a misspelt other.
_ALIKE = 75


@dataclass(frozen=True)
class Catalogue:
    """The catalogue's entries by name, in the order of the files. Metrics are those that every trial has."""

    tunables: Mapping[str, Tunable]
    workloads: Mapping[str, WorkloadKind]
    metrics: Mapping[str, Metric]
    parts: Mapping[str, InstanceKind] = field(default_factory=dict)
    rules: Mapping[str, PredictionRule] = field(default_factory=dict)
    machines: Mapping[str, ModelledMachine] = field(default_factory=dict)
    conditions: Mapping[str, RelevanceCondition] = field(default_factory=dict)
    guest_questions: Mapping[str, GuestQuestion] = field(default_factory=dict)
    services: Mapping[str, ServiceKind] = field(default_factory=dict)
    there: Callable[[Catalogue, Tunable, KernelVersion], tuple[str, ...]] = lambda *_: ()
    """The instances of a tunable; none where there is no machine (see ``executor.host.availability``)."""

    def find_tunable(self, text: str) -> Tunable:
        """Return the tunable ``NAME``, or one of several: ``NAME[INSTANCE]``, as in ``block.scheduler[sda]``.

        NAME may also be that of sysctl(8) (``kernel.sched_rt_runtime_us``, ``net/ipv4/tcp_sack``), or its path. Raises
        RequestError with the nearest names, or with the form of an instance. A setting of a running server is
        ``redis.NAME[PORT]`` (see ``catalogue.servers``).
        """
        name, chosen = place.split_name(text)
        if servers.is_server_name(name):
            return servers.server_setting(self.services, name, chosen)
        match = place.find(self.tunables, self.parts, name)
        if match is None:
            if changed_by(name):
                changed = ", ".join(first_few([tunable.name for tunable in self.search([name])], 4))
                raise RequestError(f"tunable {name!r} not found", hint=f"name what {name} changes: {changed}")
            raise _unknown("tunable", name, list(self.tunables), "list all with ajuste tunables")
        tunable, path_instance = match
        which = path_instance if chosen is None else chosen
        return tunable if which is None else self.instance(tunable, which)

    def instance(self, tunable: Tunable, which: str) -> Tunable:
        """Return one of several, such as ``sda`` or ``cpu0/state1``. Raises RequestError for another form."""
        return place.instance(self.parts, tunable, which)

    def example(self, tunable: Tunable) -> Tunable:
        """Return the tunable, or an instance as an example for the many: ``block.scheduler[sda]``."""
        return place.example(self.parts, tunable)

    @cached_property
    def workload_metrics(self) -> Mapping[str, Metric]:
        """Return the metrics of all workloads by name, the first workload's where several have one of a name."""
        kinds = reversed(list(self.workloads.values()))
        return {metric.name: metric for kind in kinds for metric in kind.metrics}

    def find_workload(self, name: str) -> WorkloadKind:
        """Return the workload ``name``. Raises RequestError with the nearest names."""
        if name in self.workloads:
            return self.workloads[name]
        otherwise = with_benchmark_programs(f"use one of {', '.join(self.workloads)}")
        raise _unknown("workload", name, list(self.workloads), otherwise)

    def service_of(self, program: str) -> ServiceKind | None:
        """Return the kind of server that ``program`` is, a name or a path; ``None`` for one that is not known."""
        name = program.rpartition("/")[2]
        return next((kind for kind in self.services.values() if name in kind.programs), None)

    def find_machine(self, name: str, directory: Path) -> ModelledMachine:
        """Return the modelled machine ``name``, or that of a file relative to ``directory``. Raises RequestError."""
        if not is_machine_file(name):
            if name in self.machines:
                return self.machines[name]
            raise _unknown(
                "machine", name, list(self.machines), f"use one of {', '.join(self.machines)}, or a TOML file"
            )
        from ajuste.model.modelled import ModelledMachine

        file = directory / name
        try:
            with open_given(file) as opened:
                content = opened.read(_LARGEST_MACHINE + 1)
            if len(content) > _LARGEST_MACHINE:
                raise RequestError(f"{file} is larger than 1 MB", hint=_MACHINE_HINT)
            machines = list(load(file, "machine", ModelledMachine, content).values())
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "not UTF-8"
            raise RequestError(f"cannot read the machine {file}: {why}", hint="name a TOML file") from None
        except AjusteError as error:
            raise RequestError(error.message, hint=_MACHINE_HINT, place=error.place) from None
        if len(machines) != 1:
            raise RequestError(f"{file} describes {len(machines)} machines; expected one", hint=_MACHINE_HINT)
        return machines[0]

    def search(self, words: list[str]) -> list[Tunable]:
        """Return the tunables that have every one of ``words`` in name, title, subsystem or explanation, best first;
        without any, those with a similar word in the name or title. A word can also be a program that changes them.
        """
        programs = {word: changed_by(word) for word in words}
        wanted = [word.lower() for word in words if word.strip() and not programs[word]]
        every = [
            tunable
            for tunable in self.tunables.values()
            if all(is_changed(tunable, patterns) for patterns in programs.values() if patterns)
        ]
        if not wanted:
            return every if any(programs.values()) else []
        hits: list[tuple[float, Tunable]] = [(_score(tunable, wanted), tunable) for tunable in every]
        hits = [(score, tunable) for score, tunable in hits if score > 0]
        if not hits:
            hits = [(_likeness(tunable, wanted), tunable) for tunable in every]
            hits = [(score, tunable) for score, tunable in hits if score >= _ALIKE]
        return [tunable for _, tunable in sorted(hits, key=lambda hit: (-hit[0], hit[1].name))]

    def locate(self, tunable: Tunable, version: KernelVersion) -> Location | Marker:
        """Return where to read and write ``tunable`` in a kernel of ``version``, or a marker for a part of the trial.
        Raises RequestError that says which kernels have it and what its successor or predecessor in this one is, or how
        to name one of several.
        """
        if tunable.parts and tunable.place_in(version):
            raise place.missing(self.parts, tunable, self.there(self, tunable, version))
        return place.locate(self.tunables, tunable, version)

    def companions(
        self,
        tunable: Tunable,
        version: KernelVersion,
        files: ListFiles = lambda _: (),
        can_change: CanChange = lambda _: True,
    ) -> tuple[Location, ...]:
        """Return what the kernel changes along with ``tunable`` (one instance, where there are several).

        To put everything back, read these too before writing it, and restore them, in this order, after it. ``files``
        lists a directory of the machine, ``can_change`` leaves out what it lacks or locks.
        """
        return place.companions(self.tunables, tunable, version, files, can_change)

    def counterpart(self, tunable: Tunable, version: KernelVersion) -> Tunable | None:
        """Return the related but different tunable that a kernel of ``version`` has instead, if any."""
        return place.counterpart(self.tunables, tunable, version)

    def relevance_conditions(self, tunable: Tunable) -> tuple[RelevanceCondition, ...]:
        """Return what must be met, or ``tunable`` cannot matter."""
        return tuple(self.conditions[name] for name in tunable.matters_if)

    def check_level(self, tunable: Tunable, text: str, version: KernelVersion | None = None) -> str:
        """See ``ajuste.catalogue.level.check_level``."""
        return level.check_level(tunable, text, version)


class Later(Mapping[str, V]):
    """Entries that are read when somebody first looks at them: many take a while, and not everybody needs them."""

    def __init__(self, read: Callable[[], dict[str, V]]) -> None:
        self._read = read

    @cached_property
    def _entries(self) -> dict[str, V]:
        return self._read()

    def __getitem__(self, name: str) -> V:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


@cache
def catalogue() -> Catalogue:
    """Return the catalogue that comes with Ajuste. A mistake in it raises AjusteError that names file and field, at the
    first look at it.
    """
    return Catalogue(
        tunables=_later("tunables", "tunable", "tunable:Tunable"),
        workloads=_later("workloads", "workload", "workload:WorkloadKind"),
        metrics=_later("metrics.toml", "metric", "metric:Metric"),
        parts=_later("parts.toml", "part", "tunable:InstanceKind"),
        rules=_later("rules.toml", "rule", "metric:PredictionRule"),
        machines=_later("machines", "machine", "modelled:ModelledMachine"),
        conditions=_later("conditions.toml", "condition", "relevance:RelevanceCondition"),
        guest_questions=_later("guests.toml", "question", "relevance:GuestQuestion"),
        services=_later("services.toml", "service", "workload:ServiceKind"),
    )


def _later(source: str, table: str, model: str) -> Mapping[str, Any]:
    module, _, kind_name = model.partition(":")
    folder = files("ajuste.catalogue")

    def read() -> dict[str, Any]:
        kind = getattr(import_module(f"ajuste.model.{module}"), kind_name)
        entries: dict[str, Any] = load(folder / source, table, kind)
        for more in () if source.endswith(".toml") else folders(source):
            try:
                added = load(more, table, kind)
            except AjusteError as error:
                add_problem(f"{more}: {error.place}: {error.message}")
                continue
            for name, entry in added.items():
                if entries.setdefault(name, entry) is not entry:
                    add_problem(f"{more}: {table} {name} is in another catalogue: rename it")
        return entries

    return Later(read)


def load(source: Traversable, table: str, model: type[M], content: bytes | None = None) -> dict[str, M]:
    """Return the entries ``[[table]]`` of a TOML file, whose ``content`` may have been read, or of all in a folder, by
    name. Raises AjusteError naming the place.
    """
    entries: dict[str, M] = {}
    paths = sorted(source.iterdir(), key=lambda file: file.name) if source.is_dir() else [source]
    for path in (path for path in paths if path.name.endswith(".toml")):
        text = path.read_bytes() if content is None else content
        tables = _with_shared_metrics(path, table, _tables(path, text, table))
        for number, values in enumerate(tables):
            try:
                entry = model.model_validate(values)
            except ValidationError as error:
                details: ErrorDetails = error.errors()[0]
                field = ".".join((f"{table}.{_name(values, number)}", *(str(part) for part in details["loc"])))
                raise AjusteError(details["msg"], place=Place(Path(path.name), field=field)) from error
            if entry.name in entries:
                raise AjusteError(
                    f"{table} {entry.name} is given twice; expected different names",
                    place=Place(Path(path.name), field=entry.name),
                )
            entries[entry.name] = entry
    return entries


def is_machine_file(name: str) -> bool:
    """Return whether a modelled machine is named by its file."""
    return "/" in name or name.endswith(".toml")


def absolute_machine(name: str) -> str:
    """Return the same machine, wherever the study that names it is."""
    return str(Path(name).absolute()) if is_machine_file(name) else name


@cache
def _parsed() -> Mapping[str, str]:
    # The content of TOML files as JSON, by their SHA-256; `make setup` writes it (`setup/catalogue.py`).
    contents: dict[str, str] = {}
    for folder in (files("ajuste.catalogue"), *catalogues()):
        with suppress(OSError):
            lines = (folder / "parsed.txt").read_bytes().decode(errors="replace").split("\n")
            contents |= {digest: content for digest, _, content in (line.partition(" ") for line in lines)}
    return contents


def _tables(path: Traversable, written: bytes, table: str) -> list[object]:
    file = Path(path.name)
    parsed = _parsed().get(hashlib.sha256(written).hexdigest())
    try:
        content = json.loads(parsed) if parsed is not None else tomllib.loads(written.decode())
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"line (\d+)", str(error))
        raise AjusteError(f"not valid TOML: {error}", place=Place(file, int(line[1]) if line else None)) from error
    tables = content.pop(table, [])
    if content or not isinstance(tables, list):
        raise AjusteError(f"expected only [[{table}]] tables, found {', '.join(content)}", place=Place(file))
    return tables


def _with_shared_metrics(path: Traversable, table: str, tables: list[object]) -> list[object]:
    # `metrics_of` names another entry of the file, whose own metrics follow those of this one. A metric of both is the
    # other's with what this one says otherwise.
    by_name = {str(_name(values, 0)): dict(values) for values in tables if isinstance(values, dict)}
    for values in tables:
        if isinstance(values, dict) and "metrics_of" in values:
            name, other = str(_name(values, 0)), str(values.pop("metrics_of"))
            if other not in by_name or other == name:
                place = Place(Path(path.name), field=f"{table}.{name}.metrics_of")
                raise AjusteError(f"{other!r} not found; expected the name of another {table} of the file", place=place)
            changes = {_name(metric, number): metric for number, metric in enumerate(values.get("metrics", []))}
            shared = [
                {**metric, **changes.pop(_name(metric, 0), {})} if isinstance(metric, dict) else metric
                for metric in by_name[other].get("metrics", [])
            ]
            values["metrics"] = [*changes.values(), *shared]
            values["each"] = {**by_name[other].get("each", {}), **values.get("each", {})}
    return tables


def _name(values: object, number: int) -> object:
    return values.get("name", number) if isinstance(values, dict) else number


def _unknown(kind: str, name: str, known: list[str], otherwise: str) -> RequestError:
    near = nearest_names(name, known, most=3, likeness=70)
    return RequestError(f"{kind} {name!r} not found", hint=did_you_mean(near) or otherwise)


def is_changed(tunable: Tunable, patterns: Iterable[str]) -> bool:
    """Return whether one of the ``patterns`` of ``programs.toml`` is of ``tunable``."""
    kinds = {f"place:{place.kind}" for place in tunable.where}
    return any(pattern in kinds or fnmatchcase(tunable.name, pattern) for pattern in patterns)


def _score(tunable: Tunable, words: list[str]) -> int:
    total = 0
    for word in words:
        fields = (
            (8, tunable.name.lower()),
            (4, tunable.title.lower()),
            (2, tunable.subsystem),
            (1, tunable.what.lower()),
        )
        score = sum(weight for weight, text in fields if word in text)
        score += 16 * (word in (tunable.name.lower(), tunable.name.lower().removeprefix("sched_")))
        if not score:
            return 0
        total += score
    return total


def _likeness(tunable: Tunable, words: list[str]) -> float:
    from difflib import SequenceMatcher  # only a mistake needs it

    parts = re.split(r"[_\s]+", f"{tunable.name} {tunable.title}".lower())
    return 100 * min(max(SequenceMatcher(None, word, part).ratio() for part in parts) for word in words)


# The figures that samplers read, from ``samplers.toml``.


@cache
def figure_sources() -> dict[SamplerSource, FigureSource]:
    """Return every source by name, in the order of the file."""
    from ajuste.model.metric import FigureSource

    text = files("ajuste.catalogue").joinpath("samplers.toml").read_text(encoding="utf-8")
    sources = [FigureSource.model_validate(table) for table in tomllib.loads(text)["source"]]
    return {source.name: source for source in sources}
