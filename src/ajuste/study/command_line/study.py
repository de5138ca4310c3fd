"""Studies from a request on the command line, like those from a file.

A setting with several levels is a factor. One with a single level is, where nothing else is varied, compared with the
machine as it is; beside other factors it is the same in every configuration.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, get_args

from ajuste.catalogue.loader import Catalogue, absolute_machine
from ajuste.model.boot import BOOT_KERNEL, BOOT_PREFIX, DEFAULT, OF_CPUS, SET
from ajuste.model.error import Place, RequestError
from ajuste.model.topology import MOST_CPUS, parse_cpus
from ajuste.model.trial import COMMAND_FACTOR, KERNEL_FACTOR, SETTINGS_FACTOR
from ajuste.model.tunable import Scale
from ajuste.model.wording import count_of, first_few, listed
from ajuste.study.answerable import FEWEST_ROUNDS, MOST_ROUNDS
from ajuste.study.command_line.defaults import (
    DEFAULT_KERNEL,
    DEFAULT_MAX_SECONDS,
    DEFAULT_MIN_EFFECT,
    DEFAULT_NAME,
    DETAILED,
    DETAILED_SECONDS,
    IN_GUEST,
    ON_HOST,
    default_metrics,
)
from ajuste.study.command_line.job import argv, job, names, read_metric, split
from ajuste.study.command_line.option import valued_options
from ajuste.study.command_line.request import (
    HINT,
    CommandLine,
    Request,
    between_commas,
    block_range,
    mebibytes,
    package_names,
    read_topology,
    seconds,
    share,
    wrong,
)
from ajuste.study.factors import ParseKernel, canonical, workload_parameter
from ajuste.study.job import ServiceTable
from ajuste.study.problem import KeyPath as Keys
from ajuste.study.profile import Placed, profile_notes
from ajuste.study.ranges import RANGE_MARK
from ajuste.study.read import checked_study
from ajuste.study.schema import BudgetTable, Study

AS_IT_IS: Final = "as it is"
PROFILE_FACTOR: Final = "profile"
FILE_SYSTEM: Final = "fs.type"
DEFAULT_SCRATCH: Final = "512MiB"
"""Size of a file system; mkfs.xfs requires 300 MiB."""
MEMORY_WITH_DISK: Final = 512
_DISK_IN_MEMORY: Final = "/dev/nullb0"

_CPUS: Final = ("cpu-list", "cpu-mask")


def adhoc_document(
    request: Request, catalogue: Catalogue, profiles: Sequence[Placed] = ()
) -> tuple[dict[str, Any], CommandLine]:
    """Return the study's document as a file would have it, and the option of each part of it; ``profiles`` are what
    those that it names come to on its target. Raises RequestError.
    """
    _check_commands(request, catalogue)
    texts = names(request.commands)
    request_factors = factors(request, texts, catalogue, profiles)
    request_metrics = [read_metric(text) for text in request.metric]
    options: dict[Keys, str] = {("factor", index): words for index, words in enumerate(request_factors.options)}
    workload = _workload(request, request_metrics, texts, catalogue, options)
    document: dict[str, Any] = {
        "schema": 1,
        "name": DEFAULT_NAME if request.name is None else request.name,
        "title": _title(request_factors, texts, workload),
        "question": _question(request_factors, texts, workload),
        "factor": list(request_factors.tables),
        "workload": workload,
        "target": _target(request, request_factors, options),
        "analysis": _analysis(request, request_metrics, workload, catalogue, options),
        "design": _design(request, options),
        "budget": _budget(request, compared=bool(request_factors.tables), options=options),
        **_scratch(request, options),
    }
    for name, option, value in valued_options(request):
        if name in _FIELDS:
            table, field, read = _FIELDS[name]
            document[table][field] = read(option.name, value)
            values = value if isinstance(value, tuple) else (value,)
            options[table, field] = " ".join(
                option.name if word is True else f"{option.name} {word}" for word in values
            )
    if profiles:
        document["notes"] = list(profile_notes(profiles))
    if request.name is not None:
        options["name",] = f"--name {request.name}"
    return document, CommandLine(options)


def _as_given(_: str, value: Any) -> Any:
    return value


def _command(option: str, text: str) -> list[str]:
    return argv(split(option, text))


# The options of which each is a field of the study: its table, its name there, and what reads the value.
_FIELDS: Final[Mapping[str, tuple[str, str, Callable[[str, Any], Any]]]] = {
    "clock": ("target", "clock", _as_given),
    "guest_cpus": ("target", "cpus", _as_given),
    "memory": ("target", "memory_mib", mebibytes),
    "machine": ("target", "machine", lambda _, name: {"model": absolute_machine(name)}),
    "topology": ("target", "topology", lambda _, text: read_topology(text)),
    "package": ("target", "packages", lambda _, texts: package_names(texts)),
    "setup": ("workload", "setup", _command),
    "prepare": ("workload", "prepare", _command),
    "cleanup": ("workload", "cleanup", _command),
    "timeout": ("workload", "timeout_s", seconds),
    "as_root": ("workload", "as_root", _as_given),
    "ignore_failure": ("workload", "ignore_failure", _as_given),
    "keep_output": ("workload", "keep_output", _as_given),
    "min_effect": ("analysis", "smallest_effect", share),
    "precision": ("analysis", "precision", share),
    "confidence": ("analysis", "confidence", share),
    "warm_up": ("design", "warm_up", _as_given),
    "seed": ("design", "seed", _as_given),
    "max_time": ("budget", "max_minutes", lambda option, text: seconds(option, text) / 60),
}


def study_without_profiles(request: Request, catalogue: Catalogue, *, parse_kernel: ParseKernel = str) -> Study:
    """Return the study that the profiles of ``request`` are tried on. Raises RequestError for what is wrong with
    anything else of it.
    """
    without = replace(request, profile=None, baseline=(), one_at_a_time=False, screen=False)
    study = adhoc_study(without, catalogue, parse_kernel=parse_kernel)
    if any(factor.name == KERNEL_FACTOR for factor in study.factors):
        raise RequestError(
            "--profile does not support several kernels; expected one",
            hint=HINT,
            place=Place(request.kernel_words),
        )
    return study


def adhoc_study(
    request: Request, catalogue: Catalogue, profiles: Sequence[Placed] = (), *, parse_kernel: ParseKernel = str
) -> Study:
    """Return the study of ``request``, checked. Raises RequestError that names the options that are wrong."""
    document, origin = adhoc_document(request, catalogue, profiles)
    return checked_study(document, origin, catalogue, parse_kernel=parse_kernel)


def _check_commands(request: Request, catalogue: Catalogue) -> None:
    hint = "ajuste compare [OPTIONS] -- COMMAND [ARGUMENT…] [-- COMMAND …]"
    if not any(request.commands):
        raise RequestError("the command to measure is missing", hint=hint)
    if not all(request.commands):
        raise RequestError("the command after one of the -- is missing", hint=hint)
    if len(request.commands) > 1:
        for words in request.commands:
            if "kind" in job(words, catalogue):
                raise RequestError(
                    f"{words[0]} is a workload of the catalogue; when comparing several commands, each must "
                    "be a program",
                    hint=f"compare parameters of {words[0]} with --set workload.NAME=LEVEL,LEVEL, or give the program "
                    f"of that name with its path",
                )


def _workload(
    request: Request,
    request_metrics: Sequence[dict[str, Any] | str],
    texts: Sequence[str],
    catalogue: Catalogue,
    options: dict[Keys, str],
) -> dict[str, Any]:
    workload: dict[str, Any] = {"timeout_s": (IN_GUEST if request.in_guest else ON_HOST).timeout_s}
    if len(request.commands) == 1:
        workload |= job(request.commands[0], catalogue)
        options["workload",] = options["workload", "command"] = texts[0]
    else:
        variants = enumerate(zip(texts, request.commands, strict=True))
        workload["variant"] = [{"name": name, "command": argv(words)} for _, (name, words) in variants]
        options |= {("workload", "variant", index): text for index, text in enumerate(texts)}
    tables = [table for table in request_metrics if isinstance(table, dict)]
    if tables:
        workload["metric"] = tables
        texts_of_tables = [
            text for text, table in zip(request.metric, request_metrics, strict=True) if isinstance(table, dict)
        ]
        options |= {("workload", "metric", index): f"--metric {text}" for index, text in enumerate(texts_of_tables)}
        options["workload", "metric"] = f"--metric {texts_of_tables[0]}"
    if loads := _background(request, catalogue, options):
        workload["background"] = loads
    if services := _services(request, options):
        workload["service"] = services
    if request.file:
        workload["files"] = list(request.file)
        options |= {("workload", "files", index): f"--file {name}" for index, name in enumerate(request.file)}
    return workload


_COPIES: Final = re.compile(r"(?P<count>[0-9]+)x\s+(?P<command>.+)", re.DOTALL)


def _background(request: Request, catalogue: Catalogue, options: dict[Keys, str]) -> list[dict[str, Any]]:
    _require_pairs("--background", request.background, "--background-ready", request.background_ready)
    tables: list[dict[str, Any]] = []
    for index, text in enumerate(request.background):
        copies = _COPIES.fullmatch(text.strip())
        tables.append(job(split("--background", copies["command"] if copies else text), catalogue))
        options["workload", "background", index] = f"--background {text}"
        if copies:
            tables[-1]["count"] = int(copies["count"])
        if request.background_ready:
            tables[-1]["ready"] = _readiness("--background-ready", ready := request.background_ready[index])
            options["workload", "background", index, "ready"] = f"--background-ready {ready}"
    return tables


def _readiness(option: str, text: str) -> list[str] | str:
    kind, _, rest = text.partition(":")
    return argv(split(option, rest)) if kind == "command" and rest else text


def _require_pairs(option: str, texts: Sequence[str], ready_option: str, ready: Sequence[str]) -> None:
    # The first of the one is of the first of the other, and so on.
    if ready and len(ready) != len(texts):
        raise RequestError(
            f"found {len(ready)} {ready_option} for {len(texts)} {option}; expected one for each, or none",
            hint=f"give one {ready_option} after each {option}; write {ready_option} none to wait for nothing",
            place=Place(f"{ready_option} {ready[-1]}"),
        )


def _services(request: Request, options: dict[Keys, str]) -> list[dict[str, Any]]:
    _require_pairs("--service", request.service, "--ready", request.ready)
    tables: list[dict[str, Any]] = []
    called: Counter[str] = Counter()
    for index, text in enumerate(request.service):
        tables.append({"command": argv(split("--service", text))})
        options["workload", "service", index] = f"--service {text}"
        # The second server of one program has another name.
        program = ServiceTable.model_validate(tables[-1]).called
        called[program] += 1
        if called[program] > 1:
            tables[-1]["name"] = f"{program}-{called[program]}"
        if request.ready:
            tables[-1]["ready"] = _readiness("--ready", ready := request.ready[index])
            options["workload", "service", index, "ready"] = f"--ready {ready}"
    return tables


def _target(request: Request, request_factors: Factors, options: dict[Keys, str]) -> dict[str, Any]:
    if not request.in_guest:
        for name, option, _ in valued_options(request):
            if name in _FIELDS and _FIELDS[name][0] == "target":
                raise RequestError(
                    "applies only to guests",
                    hint="add --vm to measure in a guest, or remove the option",
                    place=Place(option.name),
                )
        return {"kind": "host"}
    options["target", "kernel"] = request.kernel_words if request.kernel else "--vm"
    target: dict[str, Any] = {"kind": "vm", "clock": "virtual"}
    if all(table["name"] != KERNEL_FACTOR for table in request_factors.tables):
        target["kernel"] = request_factors.kernel or DEFAULT_KERNEL
    last = 0 if request.topology is not None else _last_cpu(request_factors.tables)
    if last >= MOST_CPUS:
        raise RequestError(f"CPU {last} is not available; expected CPUs among 0-{MOST_CPUS - 1} in a guest", hint=HINT)
    if request.scratch is not None:
        # A file would take its whole size from the guest's memory, this disk only what is written.
        target["modules"] = [f"null_blk gb={math.ceil(_scratch_mib(request) / 1024)} memory_backed=1"]
        target["memory_mib"] = MEMORY_WITH_DISK
    return target | ({"cpus": last + 1} if last else {})


def _last_cpu(tables: Sequence[Mapping[str, Any]]) -> int:
    # The highest CPU that the workload is to be bound to: a guest gets as many.
    lists = [level for table in tables if table["name"] == "affinity" for level in table["levels"]]
    lists += [s["affinity"] for table in tables for s in table.get("settings", {}).values() if "affinity" in s]
    last = 0
    for text in lists:
        try:
            last = max(last, *parse_cpus(text))
        except ValueError:
            continue  # It is reported with all other errors.
    return last


def _analysis(
    request: Request,
    request_metrics: Sequence[dict[str, Any] | str],
    workload: Mapping[str, Any],
    catalogue: Catalogue,
    options: dict[Keys, str],
) -> dict[str, Any]:
    options |= {("analysis", "metrics", index): f"--metric {text}" for index, text in enumerate(request.metric)}
    metrics = [metric if isinstance(metric, str) else metric["name"] for metric in request_metrics]
    metrics = metrics or default_metrics(
        catalogue.workloads.get(workload.get("kind", "")), modelled=bool(request.machine)
    )
    return {"metrics": metrics, "smallest_effect": DEFAULT_MIN_EFFECT}


def _design(request: Request, options: dict[Keys, str]) -> dict[str, Any]:
    options["design", "combine"] = "--screen"
    if request.screen and request.one_at_a_time:
        raise RequestError(
            "these options are mutually exclusive", hint=HINT, place=Place("--screen and --one-at-a-time")
        )
    options["design", "blocks_per_boot"] = "--reboots" if request.reboot_each is None else "--reboot-each"
    per_boot = request.blocks_per_boot
    return {
        "seed": 1,
        "warm_up": (IN_GUEST if request.in_guest else ON_HOST).warm_up,
        "combine": "screening" if request.screen else "one-at-a-time" if request.one_at_a_time else "all",
    } | ({} if per_boot is None else {"blocks_per_boot": per_boot})


def _budget(request: Request, *, compared: bool, options: dict[Keys, str]) -> dict[str, Any]:
    defaults = IN_GUEST if request.in_guest else ON_HOST
    detailed = not compared and not request.in_guest
    budget: dict[str, Any] = {
        "min_blocks": DETAILED if detailed else BudgetTable().min_blocks,
        "max_blocks": defaults.max_blocks,
        "max_minutes": DEFAULT_MAX_SECONDS / 60,
    }
    if (per_boot := request.blocks_per_boot) is not None:
        budget["min_blocks"], budget["max_blocks"] = FEWEST_ROUNDS * per_boot, MOST_ROUNDS * per_boot
    if request.blocks is not None:
        budget["min_blocks"], budget["max_blocks"] = block_range("--blocks", request.blocks)
        options["budget",] = f"--blocks {request.blocks}"
    elif detailed:
        budget["min_seconds"] = DETAILED_SECONDS
    return budget


def _scratch(request: Request, options: dict[Keys, str]) -> dict[str, Any]:
    if request.scratch is None:
        if request.scratch_size is not None:
            raise RequestError("requires --scratch", hint=HINT, place=Place("--scratch-size"))
        return {}
    options["scratch",] = option = f"--scratch {request.scratch}"
    filesystem = _several(option, request.scratch)[0]
    place = {"device": _DISK_IN_MEMORY} if request.in_guest else {"size_mib": _scratch_mib(request)}
    return {"scratch": {"filesystem": filesystem, **place}}


def _scratch_mib(request: Request) -> int:
    return mebibytes("--scratch-size", request.scratch_size or DEFAULT_SCRATCH)


def _title(request_factors: Factors, texts: Sequence[str], workload: Mapping[str, Any]) -> str:
    what = workload.get("kind") or texts[0]
    varied = [_levels(table) for table in request_factors.tables if table["name"] != COMMAND_FACTOR]
    if len(texts) > 1:
        return ", ".join([f"{len(texts)} commands", *varied])
    return f"{what}: {', '.join(varied)}" if varied else what


def _levels(table: Mapping[str, Any]) -> str:
    if table["name"] == SETTINGS_FACTOR:
        return next(str(level) for level in table["settings"] if level != AS_IT_IS)
    if "settings" in table:
        return f"{table['name']} {', '.join(level for level in table['settings'] if level != AS_IT_IS)}"
    levels = table["levels"]
    return f"{table['name']} {levels if isinstance(levels, str) else ', '.join(levels)}"


def _question(request_factors: Factors, texts: Sequence[str], workload: Mapping[str, Any]) -> str:
    what = workload.get("kind") or texts[0]
    others = [table for table in request_factors.tables if table["name"] != COMMAND_FACTOR]
    if not request_factors.tables:
        return f"How does {what} perform?"
    if not others:
        return f"Which is best: {listed(list(texts))}?"
    changed = listed([_levels(table) for table in others])
    return f"What do {changed} change for {listed(list(texts)) if len(texts) > 1 else what}?"


# The settings of a command line as factors.


@dataclass(frozen=True)
class Varied:
    """A setting: ``name`` with its ``levels``, as given by ``option``; or with a ``range`` instead, as in a study."""

    name: str
    levels: tuple[str, ...]
    option: str
    range: Mapping[str, Any] = field(default_factory=dict)

    @property
    def table(self) -> dict[str, Any]:
        """Return the setting as a study has it."""
        return {"name": self.name, **(self.range or {"levels": list(self.levels)})}

    @property
    def several(self) -> bool:
        return len(self.levels) > 1 or bool(self.range)

    @property
    def words(self) -> str:
        return f"{self.name}={self.levels[0]}"


@dataclass(frozen=True)
class Factors:
    """The factors of a request: ``tables`` are the study's factors with the ``options`` of each; ``kernel`` is the
    guest's, unless a factor.
    """

    tables: tuple[dict[str, Any], ...]
    options: tuple[str, ...]
    kernel: str | None = None


def factors(
    request: Request, commands: Sequence[str], catalogue: Catalogue, profiles: Sequence[Placed] = ()
) -> Factors:
    """Return the factors of ``request``. Raises RequestError.

    ``commands`` are the names of its commands, ``profiles`` what those it names come to.
    """
    requested = settings(request, catalogue)
    several = [setting for setting in requested if setting.several]
    single = [setting for setting in requested if not setting.several]
    kernels = request.kernels
    if len(kernels) > 1:
        several.append(Varied(KERNEL_FACTOR, kernels, request.kernel_words))
    if len(commands) > 1:
        several.append(Varied(COMMAND_FACTOR, tuple(commands), "the commands"))
    if single and not several and not profiles:
        level = " ".join(setting.words for setting in single)
        together = {setting.name: setting.levels[0] for setting in single}
        tables = [{"name": SETTINGS_FACTOR, "settings": {AS_IT_IS: {}, level: together}}]
        options = [" ".join(setting.option for setting in single)]
    else:
        tables = [setting.table for setting in (*single, *several)]
        options = [setting.option for setting in (*single, *several)]
    if profiles:
        tables.append({"name": PROFILE_FACTOR, "settings": {AS_IT_IS: {}, **profile_settings(profiles)}})
        options.append(f"--profile {request.profile}")
    for text in request.baseline:
        _choose_baseline(tables, text)
    return Factors(tuple(tables), tuple(options), kernels[0] if len(kernels) == 1 else None)


def profile_settings(profiles: Sequence[Placed]) -> dict[str, dict[str, str]]:
    """Return the settings of each profile by its name, or by its spec where two have the same name."""
    names = Counter(placed.profile.name for placed in profiles)
    return {
        placed.profile.name if names[placed.profile.name] == 1 else placed.profile.spec: profile_levels(placed)
        for placed in profiles
    }


def profile_levels(placed: Placed) -> dict[str, str]:
    """Return all levels that a profile sets. Raises RequestError where there are none."""
    levels = {name: level for setting in placed.settings for name, level in setting.levels.items()}
    if not levels:
        if not placed.unchanged and not placed.unmapped:
            raise RequestError(f"the profile {placed.profile.name} sets nothing", hint="try another profile")
        reasons = [f"{left_out.line.words}: {left_out.reason}" for left_out in placed.unmapped]
        same, left = len(placed.unchanged), len(placed.unmapped)
        why = f" ({'; '.join(first_few(reasons, 3))})" if reasons else ""
        raise RequestError(
            f"the profile {placed.profile.name} changes no setting of this target",
            hint=f"try another profile: {count_of(same, 'line')} already in effect, {left} left out{why}",
        )
    return levels


def settings(request: Request, catalogue: Catalogue) -> list[Varied]:
    """Return all settings but kernels and commands. Raises RequestError."""
    requested: list[Varied] = []
    for text in request.set:
        name, equals, levels = text.partition("=")
        if not equals or not name.strip() or not levels:
            raise wrong("--set", text, "NAME=LEVEL or NAME=LEVEL,LEVEL,…", "list the tunables with `ajuste tunables`")
        requested.append(varied(name.strip(), f"--set {text}", levels, catalogue))
    for option, name, level in (
        ("--nice", "nice", request.nice),
        ("--policy", "policy", request.policy),
        ("--cpus", "affinity", request.cpus),
        ("--cgroup-weight", "cgroup_weight", request.cgroup_weight),
    ):
        if level is not None:
            requested.append(varied(name, f"{option} {level}", level, catalogue))
    if request.scratch is not None:
        scratch = f"--scratch {request.scratch}"
        if len(types := _several(scratch, request.scratch)) > 1:
            requested.append(Varied(FILE_SYSTEM, types, scratch))
    requested += _boot_settings(request)
    seen: dict[str, Varied] = {}
    for setting in requested:
        known = canonical(setting.name, catalogue)
        if known in seen:
            hint = f"give all levels in one option: {known}=LEVEL,LEVEL"
            raise RequestError(
                f"{known} is given twice; the first is {seen[known].option}", hint=hint, place=Place(setting.option)
            )
        seen[known] = setting
    return requested


def _boot_settings(request: Request) -> list[Varied]:
    # What is set at boot. In lists of CPUs a plus sign stands for the list's own comma.
    boot_settings = []
    for text in request.boot:
        word, equals, levels = text.partition("=")
        if not equals or not word.strip() or not levels:
            hint = f"for example --boot mitigations={DEFAULT},off or --boot nosmt={DEFAULT},{SET}"
            raise wrong("--boot", text, "WORD=LEVEL or WORD=LEVEL,LEVEL,…", hint)
        option = f"--boot {text}"
        several = _several(option, levels)
        if word.strip() in OF_CPUS:
            several = tuple(level.replace("+", ",") for level in several)
        boot_settings.append(Varied(f"{BOOT_PREFIX}{word.strip()}", several, option))
    if request.boot_kernel is not None:
        option = f"--boot-kernel {request.boot_kernel}"
        boot_settings.append(Varied(BOOT_KERNEL, _several(option, request.boot_kernel), option))
    return boot_settings


def varied(name: str, option: str, text: str, catalogue: Catalogue) -> Varied:
    """Return ``name`` with the levels of ``text``: a list with commas, or a range. Raises RequestError."""
    if RANGE_MARK in text and "," not in text and not _names_files(name, catalogue):
        return Varied(name, (text,), option, _range(option, text))
    return Varied(name, _levels_between(name, option, text, catalogue), option)


def _names_files(name: str, catalogue: Catalogue) -> bool:
    kinds = catalogue.workloads.values()
    return any(
        kind.parameters[p].type == "file" for kind in kinds if (p := workload_parameter(name)) in kind.parameters
    )


def _range(option: str, text: str) -> dict[str, Any]:
    # `LOW..HIGH`, `LOW..HIGH:POINTS`, `LOW..HIGH:step=STEP`; `:log` for equal ratios.
    levels, *words = text.split(":")
    table: dict[str, Any] = {"levels": levels.strip()}
    for word in map(str.strip, words):
        key, value = ("scale", word) if word in get_args(Scale) else ("points", int(word) if word.isdigit() else None)
        if word.startswith("step="):
            key, value = "step", word.removeprefix("step=")
        if value is None or key in table:
            hint = (
                "write 1ms..30ms:6 for six levels, 1ms..30ms:6:log for equal ratios, 1ms..30ms:step=2ms for equal steps"
            )
            raise RequestError(
                f'found "{word}" after a range; expected a number of levels, log or step=VALUE',
                hint=hint,
                place=Place(option),
            )
        table[key] = value
    return table


def _levels_between(name: str, option: str, text: str, catalogue: Catalogue) -> tuple[str, ...]:
    # The levels between commas; in lists of CPUs a plus sign stands for the list's own comma.
    levels = _several(option, text)
    try:
        of_cpus = catalogue.find_tunable(name).type in _CPUS
    except RequestError:
        of_cpus = False  # a wrong name is reported with all other faults of the study
    return tuple(level.replace("+", ",") for level in levels) if of_cpus else levels


def _several(option: str, text: str) -> tuple[str, ...]:
    return between_commas(text, "level", hint=HINT, place=Place(option))


def _choose_baseline(tables: list[dict[str, Any]], text: str) -> None:
    # Make `LEVEL` or `NAME=LEVEL` the baseline of its factor.
    name, _, level = text.partition("=")
    named = [(table, level) for table in tables if table["name"] == name]
    owners = named or [(table, text) for table in tables if text in _level_words(table)]
    if len(owners) != 1:
        known = "; ".join(f"{table['name']}: {', '.join(_level_words(table))}" for table in tables)
        expected = f"one of the levels ({known})" if tables else "no --baseline, because nothing is compared"
        raise wrong("--baseline", text, expected, "write NAME=LEVEL to name the factor" if len(owners) > 1 else HINT)
    owners[0][0]["baseline"] = owners[0][1]


def _level_words(table: dict[str, Any]) -> list[str]:
    levels = table["levels"] if "levels" in table else table["settings"]
    return [levels] if isinstance(levels, str) else list(levels)
