"""The settings of a command line as factors.

What has several levels is a factor. What has one level is, where nothing else is varied, compared with the machine as
it is; beside other factors it is the same in every configuration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ajuste.adhoc.amount import wrong
from ajuste.adhoc.origin import HINT
from ajuste.adhoc.request import Request
from ajuste.catalogue.loader import Catalogue
from ajuste.model.configuration import COMMAND_FACTOR, KERNEL_FACTOR, SETTINGS_FACTOR
from ajuste.model.error import Place, RequestError
from ajuste.study.settings import canonical

AS_IT_IS: Final = "as it is"

_CPUS: Final = ("cpu-list", "cpu-mask")


@dataclass(frozen=True)
class Varied:
    """``name`` with its ``levels``, as ``said`` on the command line."""

    name: str
    levels: tuple[str, ...]
    said: str

    @property
    def words(self) -> str:
        return f"{self.name}={self.levels[0]}"


@dataclass(frozen=True)
class Factors:
    """``tables`` are the study's factors with what ``said`` each; ``kernel`` is the guest's, if it is none of them."""

    tables: tuple[dict[str, Any], ...]
    said: tuple[str, ...]
    kernel: str | None = None


def factors(request: Request, commands: Sequence[str], catalogue: Catalogue) -> Factors:
    """The factors of ``request``; ``commands`` are the names of its commands. Raises RequestError."""
    given = settings(request, catalogue)
    several = [one for one in given if len(one.levels) > 1]
    single = [one for one in given if len(one.levels) == 1]
    kernels = _split("--kernel", request.kernel) if request.kernel is not None else ()
    if len(kernels) > 1:
        several.append(Varied(KERNEL_FACTOR, kernels, f"--kernel {request.kernel}"))
    if len(commands) > 1:
        several.append(Varied(COMMAND_FACTOR, tuple(commands), "the commands"))
    if single and not several:
        tables, said = [_bundle(single)], [" ".join(one.said for one in single)]
    else:
        tables = [{"name": one.name, "levels": list(one.levels)} for one in (*single, *several)]
        said = [one.said for one in (*single, *several)]
    for text in request.baseline:
        _choose_baseline(tables, text)
    return Factors(tuple(tables), tuple(said), kernels[0] if len(kernels) == 1 else None)


def settings(request: Request, catalogue: Catalogue) -> list[Varied]:
    """Everything but kernels and commands that was given a level or several. Raises RequestError."""
    found: list[Varied] = []
    for text in request.set:
        name, equals, levels = text.partition("=")
        if not equals or not name.strip() or not levels:
            raise wrong("--set", text, "NAME=LEVEL or NAME=LEVEL,LEVEL,…", "`ajuste tunables` lists what can be set")
        found.append(Varied(name.strip(), _levels(name.strip(), f"--set {text}", levels, catalogue), f"--set {text}"))
    for option, name, own in (
        ("--nice", "nice", request.nice),
        ("--policy", "policy", request.policy),
        ("--cpus", "affinity", request.cpus),
        ("--cgroup-weight", "cgroup_weight", request.cgroup_weight),
    ):
        if own is not None:
            said = f"{option} {own}"
            found.append(Varied(name, _levels(name, said, own, catalogue), said))
    seen: dict[str, Varied] = {}
    for one in found:
        known = canonical(one.name, catalogue)
        if known in seen:
            hint = f"levels that are to be compared go into one option: {known}=LEVEL,LEVEL"
            raise RequestError(f"{known} was given already: {seen[known].said}", hint=hint, place=Place(one.said))
        seen[known] = one
    return found


def _levels(name: str, said: str, text: str, catalogue: Catalogue) -> tuple[str, ...]:
    """The levels between commas; in lists of CPUs a plus sign stands for the list's own comma."""
    levels = _split(said, text)
    try:
        of_cpus = catalogue.find_tunable(name).type in _CPUS
    except RequestError:
        of_cpus = False  # What is wrong with the name is said with everything else that is wrong.
    return tuple(level.replace("+", ",") for level in levels) if of_cpus else levels


def _split(said: str, text: str) -> tuple[str, ...]:
    levels = tuple(level.strip() for level in text.split(","))
    if not all(levels):
        raise RequestError("a level is missing between commas", hint=HINT, place=Place(said))
    return levels


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
        expected = f"one of the levels ({known})" if tables else "no baseline, as nothing is compared"
        raise wrong("--baseline", text, expected, "NAME=LEVEL says which factor is meant" if len(owners) > 1 else HINT)
    owners[0][0]["baseline"] = owners[0][1]


def _levels_of(table: dict[str, Any]) -> list[str]:
    return list(table["levels"] if "levels" in table else table["settings"])
