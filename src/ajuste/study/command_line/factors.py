"""The settings of a command line as factors.

What has several levels is a factor. What has one level is, where nothing else is varied, compared with the machine as
it is; beside other factors it is the same in every configuration.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, get_args

from ajuste.catalogue.loader import Catalogue
from ajuste.model.boot import BOOT_KERNEL, BOOT_PREFIX, DEFAULT, OF_CPUS, SET
from ajuste.model.error import Place, RequestError
from ajuste.model.trial import COMMAND_FACTOR, KERNEL_FACTOR, SETTINGS_FACTOR
from ajuste.model.tunable import Scale
from ajuste.study.command_line.request import HINT, Request, between_commas, wrong
from ajuste.study.factors import RANGE_MARK, canonical, names_set
from ajuste.study.schema import FactorTable, Study

if TYPE_CHECKING:
    from ajuste.profile.placing import Placed, PlacedSetting

AS_IT_IS: Final = "as it is"
PROFILE_FACTOR: Final = "profile"

_CPUS: Final = ("cpu-list", "cpu-mask")


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
        tables, options = [_bundle(single)], [" ".join(setting.option for setting in single)]
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
        left = "; ".join(f"{left_out.line.words}: {left_out.reason}" for left_out in placed.unmapped[:3])
        raise RequestError(
            f"the profile {placed.profile.name} changes no setting of this target",
            hint=f"try another profile: {len(placed.unchanged)} lines are already in effect, {len(placed.unmapped)} "
            f"are left out ({left} …)",
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
    if RANGE_MARK in text and "," not in text:
        return Varied(name, (text,), option, _range(option, text))
    return Varied(name, _levels(name, option, text, catalogue), option)


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


def _levels(name: str, option: str, text: str, catalogue: Catalogue) -> tuple[str, ...]:
    # The levels between commas; in lists of CPUs a plus sign stands for the list's own comma.
    levels = _several(option, text)
    try:
        of_cpus = catalogue.find_tunable(name).type in _CPUS
    except RequestError:
        of_cpus = False  # a wrong name is reported with all other faults of the study
    return tuple(level.replace("+", ",") for level in levels) if of_cpus else levels


def _several(option: str, text: str) -> tuple[str, ...]:
    return between_commas(text, "level", hint=HINT, place=Place(option))


def _bundle(single: Sequence[Varied]) -> dict[str, Any]:
    level = " ".join(setting.words for setting in single)
    return {
        "name": SETTINGS_FACTOR,
        "settings": {AS_IT_IS: {}, level: {setting.name: setting.levels[0] for setting in single}},
    }


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


# A profile taken apart: its lines as the factors of a study.


def ablation_document(document: Mapping[str, Any], placed: Placed) -> dict[str, Any]:
    """Return the study ``document`` of a command line with the lines of a profile as what is varied."""
    from ajuste.profile.placing import profile_notes  # only ablations have lines

    profile_levels(placed)
    fixed = [table for table in document["factor"] if len(table.get("levels", ())) == 1]
    what = document["workload"].get("kind") or "the command"
    return {
        **document,
        "title": _title(placed, what),
        "question": _question(placed, what),
        "notes": list(profile_notes([placed])),
        "factor": [*fixed, *line_tables(placed)],
        "design": {**document["design"], "combine": "ablation"},
    }


def ablation_study(study: Study, placed: Placed) -> Study:
    """Return ``study`` with the lines of a profile as what is varied.

    What was varied is at its baseline, as far as the profile does not set it.
    """
    from ajuste.profile.placing import profile_notes  # as above

    sets = profile_levels(placed)
    fixed = [_at_baseline(factor) for factor in study.factors if not set(names_set(factor)) & set(sets)]
    lines = [FactorTable.model_validate(table) for table in line_tables(placed)]
    design = study.design.model_copy(update={"combine": "ablation", "allocation": None})
    analysis = study.analysis.model_copy(update={"prediction": None, "three_sigma": False})
    what = study.title or study.name
    return study.model_copy(
        update={
            "name": f"{study.name[:72]}-ablate",
            "title": _title(placed, what),
            "question": _question(placed, what),
            "notes": profile_notes([placed]),
            "factors": (*fixed, *lines),
            "design": design,
            "analysis": analysis,
        }
    )


def _at_baseline(factor: FactorTable) -> FactorTable:
    level = factor.baseline_level
    settings = {level: factor.settings[level]} if factor.settings else {}
    return factor.model_copy(update={"levels": (level,), "settings": settings})


def line_tables(placed: Placed) -> list[dict[str, Any]]:
    """Return a factor for each line, off or on."""
    names = line_names(placed.settings)
    return [
        {"name": name, "settings": {AS_IT_IS: {}, _level(setting): dict(setting.levels)}}
        for name, setting in zip(names, placed.settings, strict=True)
    ]


def line_names(settings: Sequence[PlacedSetting]) -> list[str]:
    """Return names by what the lines set; with the devices where two of several sections set the same."""
    lines = [setting.line for setting in settings]
    count = Counter(line.name for line in lines)
    return [line.name if count[line.name] == 1 else f"{line.name} ({line.devices})" for line in lines]


def _level(setting: PlacedSetting) -> str:
    levels = dict.fromkeys(setting.levels.values())
    return next(iter(levels)) if len(levels) == 1 else setting.line.value


def _title(placed: Placed, what: str) -> str:
    return f"{what}: the lines of {placed.profile.name}"


def _question(placed: Placed, what: str) -> str:
    return f"Which lines of the profile {placed.profile.name} matter for {what}, and what does each do?"
