"""The settings of a command line as factors.

What has several levels is a factor. What has one level is, where nothing else is varied, compared with the machine as
it is; beside other factors it is the same in every configuration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, get_args

from ajuste.catalogue.loader import Catalogue
from ajuste.model.error import Place, RequestError
from ajuste.model.trial import COMMAND_FACTOR, KERNEL_FACTOR, SETTINGS_FACTOR
from ajuste.model.tunable import Scale
from ajuste.profile.placing import Placed
from ajuste.study.command_line.request import HINT, Request, between_commas, wrong
from ajuste.study.ranges import RANGE_MARK
from ajuste.study.settings import canonical

AS_IT_IS: Final = "as it is"
PROFILE_FACTOR: Final = "profile"

_CPUS: Final = ("cpu-list", "cpu-mask")


@dataclass(frozen=True)
class Varied:
    """``name`` with its ``levels``, as ``said`` on the command line; or instead with a ``range``, as a study has it."""

    name: str
    levels: tuple[str, ...]
    said: str
    range: Mapping[str, Any] = field(default_factory=dict)

    @property
    def table(self) -> dict[str, Any]:
        """As the study has it."""
        return {"name": self.name, **(self.range or {"levels": list(self.levels)})}

    @property
    def several(self) -> bool:
        return len(self.levels) > 1 or bool(self.range)

    @property
    def words(self) -> str:
        return f"{self.name}={self.levels[0]}"


@dataclass(frozen=True)
class Factors:
    """``tables`` are the study's factors with what ``said`` each; ``kernel`` is the guest's, if it is none of them."""

    tables: tuple[dict[str, Any], ...]
    said: tuple[str, ...]
    kernel: str | None = None


def factors(
    request: Request, commands: Sequence[str], catalogue: Catalogue, profiles: Sequence[Placed] = ()
) -> Factors:
    """The factors of ``request``; ``commands`` are the names of its commands, ``profiles`` what those it names come to.
    Raises RequestError.
    """
    given = settings(request, catalogue)
    several = [one for one in given if one.several]
    single = [one for one in given if not one.several]
    kernels = _several("--kernel", request.kernel) if request.kernel is not None else ()
    if len(kernels) > 1:
        several.append(Varied(KERNEL_FACTOR, kernels, f"--kernel {request.kernel}"))
    if len(commands) > 1:
        several.append(Varied(COMMAND_FACTOR, tuple(commands), "the commands"))
    if single and not several and not profiles:
        tables, said = [_bundle(single)], [" ".join(one.said for one in single)]
    else:
        tables = [one.table for one in (*single, *several)]
        said = [one.said for one in (*single, *several)]
    if profiles:
        tables.append({"name": PROFILE_FACTOR, "settings": {AS_IT_IS: {}, **profile_settings(profiles)}})
        said.append(f"--profile {request.profile}")
    for text in request.baseline:
        _choose_baseline(tables, text)
    return Factors(tuple(tables), tuple(said), kernels[0] if len(kernels) == 1 else None)


def profile_settings(profiles: Sequence[Placed]) -> dict[str, dict[str, str]]:
    """What each profile sets, by its name, or by how it was called where two have the same name."""
    names = [one.profile.name for one in profiles]
    return {
        one.profile.name if names.count(one.profile.name) == 1 else one.profile.spec: levels_of(one) for one in profiles
    }


def levels_of(placed: Placed) -> dict[str, str]:
    """Everything that a profile sets. Raises RequestError where that is nothing."""
    levels = {name: level for setting in placed.settings for name, level in setting.levels.items()}
    if not levels:
        left = "; ".join(f"{one.line.words}: {one.reason}" for one in placed.unmapped[:3])
        raise RequestError(
            f"the profile {placed.profile.name} changes no setting of this target",
            hint=f"try another profile: {len(placed.unchanged)} lines are already in effect, {len(placed.unmapped)} "
            f"are left out ({left} …)",
        )
    return levels


def settings(request: Request, catalogue: Catalogue) -> list[Varied]:
    """Everything but kernels and commands that was given a level or several. Raises RequestError."""
    found: list[Varied] = []
    for text in request.set:
        name, equals, levels = text.partition("=")
        if not equals or not name.strip() or not levels:
            raise wrong("--set", text, "NAME=LEVEL or NAME=LEVEL,LEVEL,…", "list the tunables with `ajuste tunables`")
        found.append(_varied(name.strip(), f"--set {text}", levels, catalogue))
    for option, name, own in (
        ("--nice", "nice", request.nice),
        ("--policy", "policy", request.policy),
        ("--cpus", "affinity", request.cpus),
        ("--cgroup-weight", "cgroup_weight", request.cgroup_weight),
    ):
        if own is not None:
            found.append(_varied(name, f"{option} {own}", own, catalogue))
    seen: dict[str, Varied] = {}
    for one in found:
        known = canonical(one.name, catalogue)
        if known in seen:
            hint = f"give all levels in one option: {known}=LEVEL,LEVEL"
            raise RequestError(
                f"{known} is given twice; the first is {seen[known].said}", hint=hint, place=Place(one.said)
            )
        seen[known] = one
    return found


def _varied(name: str, said: str, text: str, catalogue: Catalogue) -> Varied:
    if RANGE_MARK in text and "," not in text:
        return Varied(name, (text,), said, _range(said, text))
    return Varied(name, _levels(name, said, text, catalogue), said)


def _range(said: str, text: str) -> dict[str, Any]:
    """``LOW..HIGH``, ``LOW..HIGH:POINTS``, ``LOW..HIGH:step=STEP``; ``:log`` for equal ratios."""
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
                place=Place(said),
            )
        table[key] = value
    return table


def _levels(name: str, said: str, text: str, catalogue: Catalogue) -> tuple[str, ...]:
    """The levels between commas; in lists of CPUs a plus sign stands for the list's own comma."""
    levels = _several(said, text)
    try:
        of_cpus = catalogue.find_tunable(name).type in _CPUS
    except RequestError:
        of_cpus = False  # What is wrong with the name is said with everything else that is wrong.
    return tuple(level.replace("+", ",") for level in levels) if of_cpus else levels


def _several(said: str, text: str) -> tuple[str, ...]:
    return between_commas(text, "level", hint=HINT, place=Place(said))


def _bundle(single: Sequence[Varied]) -> dict[str, Any]:
    """One factor that compares all these settings together with the machine as it is."""
    level = " ".join(one.words for one in single)
    return {"name": SETTINGS_FACTOR, "settings": {AS_IT_IS: {}, level: {one.name: one.levels[0] for one in single}}}


def _choose_baseline(tables: list[dict[str, Any]], text: str) -> None:
    """Make ``LEVEL`` or ``NAME=LEVEL`` the baseline of its factor."""
    name, _, level = text.partition("=")
    named = [(table, level) for table in tables if table["name"] == name]
    owners = named or [(table, text) for table in tables if text in _levels_of(table)]
    if len(owners) != 1:
        known = "; ".join(f"{table['name']}: {', '.join(_levels_of(table))}" for table in tables)
        expected = f"one of the levels ({known})" if tables else "no --baseline, because nothing is compared"
        raise wrong("--baseline", text, expected, "write NAME=LEVEL to name the factor" if len(owners) > 1 else HINT)
    owners[0][0]["baseline"] = owners[0][1]


def _levels_of(table: dict[str, Any]) -> list[str]:
    """Those that are known by their words; of a range that is the range."""
    levels = table["levels"] if "levels" in table else table["settings"]
    return [levels] if isinstance(levels, str) else list(levels)
