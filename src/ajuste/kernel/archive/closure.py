"""A package with all that it requires, as a pure choice among those of a release.

Source: Debian Policy, chapter 7 (relations between packages), section 3.8 (essential packages); deb-version(7).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from typing import Final, Protocol

from debian.debian_support import Version

from ajuste.kernel.archive.lists import Package
from ajuste.model.error import RequestError

_HOLDS: Final[Mapping[str, Callable[[int], bool]]] = {
    "<<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    "=": lambda order: order == 0,
    ">=": lambda order: order >= 0,
    ">>": lambda order: order > 0,
}
_ARCHITECTURES: Final = (None, "any", "native", "amd64", "all")


@dataclass(frozen=True)
class Relation:
    """A package by its ``name``, or what another provides, in some versions: ``(">=", "1.2")``, or all."""

    name: str
    version: tuple[str, str] | None = None

    def __str__(self) -> str:
        return f"{self.name} ({' '.join(self.version)})" if self.version else self.name

    def holds_for(self, version: str) -> bool:
        """Whether that version will do."""
        if self.version is None:
            return True
        order, wanted = self.version
        return _HOLDS[order](_compared(version, wanted))

    def is_met_by(self, package: Package) -> bool:
        """Whether ``package`` is it or provides it. What is provided without a version has none."""
        if package.name == self.name and self.holds_for(package.version):
            return True
        return any(
            given.name == self.name
            and (self.version is None or (given.version is not None and self.holds_for(given.version[1])))
            for given in provided_by(package)
        )


def provided_by(package: Package) -> Iterator[Relation]:
    """What ``package`` can stand for."""
    return chain.from_iterable(relations(package.provides))


@cache
def _compared(version: str, other: str) -> int:
    one, two = Version(version), Version(other)
    return (one > two) - (one < two)


@cache
def relations(text: str) -> tuple[tuple[Relation, ...], ...]:
    """All that a field asks for, each as the alternatives that it has. Those of other architectures are left out."""
    from debian.deb822 import PkgRelation  # takes long to load

    found = []
    for alternatives in PkgRelation.parse_relations(text) if text else ():
        here = [
            Relation(one["name"], _version(one["version"])) for one in alternatives if one["archqual"] in _ARCHITECTURES
        ]
        found.append(tuple(here))
    return tuple(found)


def _version(given: tuple[str, str] | None) -> tuple[str, str] | None:
    if given is None:
        return None
    order, version = given
    return ({"<": "<=", ">": ">="}.get(order, order), version)


class Pool(Protocol):
    """The packages that there are to choose from."""

    def find(self, name: str) -> Sequence[Package]:
        """Those of that name and those that provide it, in any order."""
        ...


def closure(wanted: Iterable[str], pool: Pool, release: str) -> list[Package]:
    """The packages ``wanted`` with all that they require, in the order in which they were chosen.

    Of each the newest version that will do, of alternatives one that is chosen already or else the first that fits.
    What is only recommended is left out. Raises RequestError for one that the ``release`` does not have, and for those
    that cannot be had together.
    """
    made = _Closure(pool, release)
    names = list(dict.fromkeys(wanted))
    for name in names:
        made.require(((Relation(name),),), "")
    made.complete()
    return list(made.chosen.values())


@dataclass
class _Closure:
    pool: Pool
    release: str
    chosen: dict[str, Package] = field(default_factory=dict)
    provided: dict[str, list[Package]] = field(default_factory=dict)
    conflicts: dict[str, list[tuple[Package, Relation]]] = field(default_factory=dict)
    open: deque[Package] = field(default_factory=deque)

    def complete(self) -> None:
        while self.open:
            package = self.open.popleft()
            self.require(relations(package.depends), str(package))

    def require(self, asked: Iterable[tuple[Relation, ...]], by: str) -> None:
        for alternatives in asked:
            if not any(self._is_met(one) for one in alternatives):
                self._choose(alternatives, by)

    def _is_met(self, relation: Relation) -> bool:
        return any(relation.is_met_by(package) for package in self.provided.get(relation.name, ()))

    def _choose(self, alternatives: tuple[Relation, ...], by: str) -> None:
        refused = ""
        for relation in alternatives:
            for package in self._candidates(relation):
                if problem := self._problem_with(package):
                    refused = refused or problem
                    continue
                self._add(package)
                return
        text = " or ".join(map(str, alternatives)) or "a package of another architecture"
        said = f"{by} requires {text}" if by else text
        raise RequestError(f"{said}: {refused or f'Debian {self.release} does not have it'}")

    def _candidates(self, relation: Relation) -> list[Package]:
        """Itself before what provides it, the newest first."""
        found = [package for package in self.pool.find(relation.name) if relation.is_met_by(package)]
        found.sort(key=lambda package: package.name)
        found.sort(key=lambda package: Version(package.version), reverse=True)
        return sorted(found, key=lambda package: (package.name != relation.name, package.name))

    def _problem_with(self, package: Package) -> str:
        """Why it cannot be had along with what is chosen; empty if it can."""
        if (other := self.chosen.get(package.name)) is not None:
            return f"{other} is required as well"
        for by, relation in self.conflicts.get(package.name, ()):
            if relation.holds_for(package.version):
                return f"{by} conflicts with {package}"
        for virtual in provided_by(package):
            for by, relation in self.conflicts.get(virtual.name, ()):
                if relation.is_met_by(package) and by.name != package.name:
                    return f"{by} conflicts with {package}"
        for relation in chain.from_iterable(relations(package.conflicts)):
            for other in self.provided.get(relation.name, ()):
                if relation.is_met_by(other) and other.name != package.name:
                    return f"{package} conflicts with {other}"
        return ""

    def _add(self, package: Package) -> None:
        self.chosen[package.name] = package
        self.open.append(package)
        for name in dict.fromkeys((package.name, *(given.name for given in provided_by(package)))):
            self.provided.setdefault(name, []).append(package)
        for relation in chain.from_iterable(relations(package.conflicts)):
            self.conflicts.setdefault(relation.name, []).append((package, relation))
