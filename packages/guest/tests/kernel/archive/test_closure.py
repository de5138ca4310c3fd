"""Packages that come along: all that is required, in versions that fit, and nothing that conflicts."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from debian.debian_support import Version
from hypothesis import given
from hypothesis import strategies as st

from ajuste.model.error import RequestError
from ajuste_guest.kernel.archive.download import Package
from ajuste_guest.kernel.packages import closure, relations


class Packages:
    """A release of a few packages."""

    def __init__(self, packages: Iterable[Package]) -> None:
        self.all = list(packages)

    def find(self, name: str) -> list[Package]:
        return [p for p in self.all if p.name == name or any(g.name == name for (g,) in relations(p.provides))]


def package(name: str, depends: str = "", version: str = "1", *, provides: str = "", conflicts: str = "") -> Package:
    return Package(
        name=name,
        version=version,
        size_bytes=1,
        installed_bytes=1,
        depends=depends,
        path=f"pool/{name}_{version}.deb",
        sha256=f"{abs(hash((name, version))):064x}"[:64],
        provides=provides,
        conflicts=conflicts,
    )


def chosen(wanted: str, *packages: Package) -> list[str]:
    return [str(package) for package in closure(wanted.split(), Packages(packages), "bookworm")]


def test_what_is_required_comes_along_once_and_what_was_asked_for_comes_first() -> None:
    names = chosen("b a", package("a", "c, d (>= 1)"), package("b", "c"), package("c", "a"), package("d"), package("e"))
    assert names == ["b 1", "a 1", "c 1", "d 1"]


def test_the_newest_version_that_fits_is_taken() -> None:
    some = (package("lib", version="1.9"), package("lib", version="1.10"), package("lib", version="2:0.1"))
    assert chosen("a", package("a", "lib"), *some) == ["a 1", "lib 2:0.1"]
    assert chosen("a", package("a", "lib (<< 2)"), *some) == ["a 1", "lib 1.10"]
    assert chosen("a", package("a", "lib (= 1.9)"), *some) == ["a 1", "lib 1.9"]


def test_of_alternatives_the_first_that_there_is_unless_one_is_chosen_already() -> None:
    some = (package("two"), package("three"))
    assert chosen("a", package("a", "one | two | three"), *some) == ["a 1", "two 1"]
    assert chosen("a three", package("a", "one | two | three"), *some) == ["a 1", "three 1"]


def test_a_real_package_comes_before_one_that_provides_it() -> None:
    mawk, gawk = package("mawk", provides="awk"), package("gawk", provides="awk")
    assert chosen("a", package("a", "awk"), mawk, gawk) == ["a 1", "gawk 1"]
    assert chosen("a mawk", package("a", "awk"), mawk, gawk) == ["a 1", "mawk 1"]
    assert chosen("a", package("a", "awk"), mawk, package("awk")) == ["a 1", "awk 1"]


def test_what_is_provided_has_a_version_only_if_it_says_so() -> None:
    plain, versioned = package("x", provides="lib"), package("y", provides="lib (= 3)")
    assert chosen("a", package("a", "lib (>= 2)"), plain, versioned) == ["a 1", "y 1"]
    with pytest.raises(RequestError, match=r"^a 1 requires lib \(>= 4\): Debian bookworm does not have it"):
        chosen("a", package("a", "lib (>= 4)"), plain, versioned)


def test_of_another_architecture_there_is_nothing() -> None:
    assert chosen("a", package("a", "lib:any, tool:i386 | tool"), package("lib"), package("tool")) == [
        "a 1",
        "lib 1",
        "tool 1",
    ]
    with pytest.raises(RequestError, match="a 1 requires a package of another architecture"):
        chosen("a", package("a", "lib:i386"), package("lib"))


@pytest.mark.parametrize(
    ("packages", "message"),
    [
        ([package("a", conflicts="b"), package("b")], "b: a 1 conflicts with b 1"),
        ([package("a"), package("b", conflicts="a (<< 2)")], "b: b 1 conflicts with a 1"),
        ([package("a", conflicts="mta"), package("b", provides="mta")], "b: a 1 conflicts with b 1"),
        ([package("a", "lib (= 1)"), package("b", "lib (= 2)"), package("lib"), package("lib", version="2")],
         r"b 1 requires lib \(= 2\): lib 1 is required as well"),
    ],
)  # fmt: skip
def test_what_cannot_be_had_together_is_an_error(packages: list[Package], message: str) -> None:
    with pytest.raises(RequestError, match=f"^{message}"):
        chosen("a b", *packages)


def test_another_alternative_is_taken_where_the_first_conflicts() -> None:
    names = chosen("a b", package("a", conflicts="x"), package("b", "x | y"), package("x"), package("y"))
    assert names == ["a 1", "b 1", "y 1"]


def test_a_package_does_not_conflict_with_itself() -> None:
    assert chosen("a", package("a", provides="mta", conflicts="mta")) == ["a 1"]


NAMES = [f"p{number}" for number in range(8)]


@st.composite
def release(draw: st.DrawFn) -> list[Package]:
    made = []
    for name in draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=8, unique=True)):
        for version in draw(st.lists(st.sampled_from(["1", "2", "3~rc1"]), min_size=1, max_size=2, unique=True)):
            relation = st.sampled_from([*NAMES, "virtual"]).flatmap(
                lambda name: st.sampled_from([name, f"{name} (>= 2)", f"{name} (<< 2)", f"{name} (= 1)"])
            )
            group = st.lists(relation, min_size=1, max_size=3).map(" | ".join)
            depends = ", ".join(draw(st.lists(group, max_size=3)))
            provides = draw(st.sampled_from(["", "virtual", "virtual (= 2)"]))
            made.append(package(name, depends, version, provides=provides, conflicts=draw(st.sampled_from(["", "p1"]))))
    return made


@given(release())
def test_every_requirement_of_a_chosen_package_is_met_by_a_chosen_one(packages: list[Package]) -> None:
    try:
        closed = closure([packages[0].name], Packages(packages), "bookworm")
    except RequestError:
        return
    assert closed[0].name == packages[0].name
    assert len({package.name for package in closed}) == len(closed)
    for package in closed:
        for alternatives in relations(package.depends):
            assert any(relation.is_met_by(other) for relation in alternatives for other in closed), (
                package,
                alternatives,
            )
        for (relation,) in relations(package.conflicts):
            assert not any(relation.is_met_by(other) for other in closed if other.name != package.name)


@given(st.sampled_from(["<<", "<=", "=", ">=", ">>"]), st.sampled_from(["1", "1~", "1:0", "2"]), st.sampled_from("12"))
def test_versions_are_compared_as_by_debian(order: str, version: str, other: str) -> None:
    ((relation,),) = relations(f"x ({order} {other})")
    a, b = Version(version), Version(other)
    assert relation.holds_for(version) == {"<<": a < b, "<=": a <= b, "=": a == b, ">=": a >= b, ">>": a > b}[order]
