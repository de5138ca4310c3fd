"""Bisection over the options of two kernels, which are really built from a small tree."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ajuste.home import Home
from ajuste.kernel.bisect.bisect import Ask, Workshop, bisect
from ajuste.kernel.bisect.options import OptionChanges, bisect_options, option_changes, source_of
from ajuste.kernel.bisect.session import Session
from ajuste.kernel.build.build import BuildRequest, build_kernel
from ajuste.kernel.build.built import find_built
from ajuste.kernel.diff.difference import Change, Difference, Reason, Side
from ajuste.model.error import RequestError
from small_kernel import small_kernel

if TYPE_CHECKING:
    from conftest import Lab, Watching

In = Callable[["Lab"], Callable[[str, int], Session]]


def difference(*changes: tuple[str, str, Reason], source: str = "linux") -> Difference:
    return Difference(
        a=Side(name="a", source="linux"),
        b=Side(name="b", source=source),
        changes=tuple(Change(name=name, a="y", b=b, reason=reason) for name, b, reason in changes),
    )


def test_only_what_can_be_set_is_a_candidate() -> None:
    found = option_changes(difference(("NUMA", "absent", "asked"), ("HZ", "100", "default"), ("HZ_X", "n", "follows")))
    assert found.some(found.names) == ("NUMA=n", "HZ=100")


def test_kernels_of_two_sources_are_refused() -> None:
    with pytest.raises(RequestError, match="different sources"):
        option_changes(difference(("NUMA", "n", "asked"), source="other"))


def test_without_a_source_nothing_is_guessed() -> None:
    with pytest.raises(RequestError, match="cannot be told"):
        option_changes(difference(("NUMA", "n", "asked"), source=""))


def test_a_difference_that_is_in_no_option_is_said_to_be_elsewhere() -> None:
    changes = OptionChanges({"A": "y", "B": "y"})
    with pytest.raises(RequestError, match="do not make the difference"):
        bisect_options(changes, lambda _: "absent")


@pytest.mark.parametrize(
    ("title", "source"),
    [
        ("linux-source-6.1 6.1.192-2", "debian:6.1.192"),
        ("/home/me/linux/.git at v6.12", "git:/home/me/linux@v6.12"),
        ("/home/me/linux", "/home/me/linux"),
    ],
)
def test_the_record_of_a_kernel_says_its_source(title: str, source: str) -> None:
    assert source_of(title) == source


def test_of_the_options_of_two_built_kernels_the_guilty_one_is_named(
    tmp_path: Path,
    session_in: In,
    lab_by_config: Callable[[Home, Callable[[str], float]], Lab],
    silent: Watching,
) -> None:
    home = Home(tmp_path / "data", tmp_path / "cache", tmp_path / "state")
    tree = small_kernel(tmp_path / "linux")
    (tmp_path / "config").write_text("CONFIG_EXPERT=y\nCONFIG_BLOCK=y\nCONFIG_KYBER=y\nCONFIG_MODULES=y\n")

    def build(name: str, *settings: str) -> None:
        with silent() as watcher:
            build_kernel(BuildRequest(str(tree), str(tmp_path / "config"), settings, name=name), home, watcher)

    build("a")
    build("b", "KYBER=n", "HZ=100", "MODULES=n")
    played = lab_by_config(home, lambda config: 1.0 if "CONFIG_KYBER=y" in config else 2.0)
    workshop = Workshop(home, silent, lambda _: None)
    found = bisect(Ask("mine:a", "mine:b"), workshop, session_in(played))
    assert found.culprits == ("KYBER=n",)
    assert (found.kind, found.among) == ("options", 3)
    assert found.answer() == "Of 3 options that differ it takes KYBER=n, and no fewer, to make the difference."
    for step in found.steps:
        kernel = find_built(step.kernel.removeprefix("mine:"), home)
        assert kernel.image.config is not None
        assert ("CONFIG_KYBER=y" in kernel.image.config.read_text()) == (step.outcome == "absent")


def test_an_option_that_cannot_be_had_alone_leaves_no_doubt(
    tmp_path: Path,
    session_in: In,
    lab_by_config: Callable[[Home, Callable[[str], float]], Lab],
    silent: Watching,
) -> None:
    home = Home(tmp_path / "data", tmp_path / "cache", tmp_path / "state")
    tree = small_kernel(tmp_path / "linux")
    (tmp_path / "config").write_text("CONFIG_EXPERT=y\nCONFIG_MODULES=y\n")

    def build(name: str, *settings: str) -> None:
        with silent() as watcher:
            build_kernel(BuildRequest(str(tree), str(tmp_path / "config"), settings, name=name), home, watcher)

    build("a")
    build("b", "BLOCK=y", "KYBER=y", "HZ=100", "MODULES=n")
    played = lab_by_config(home, lambda config: 2.0 if "CONFIG_KYBER=y" in config else 1.0)
    found = bisect(Ask("mine:a", "mine:b"), Workshop(home, silent, lambda _: None), session_in(played))
    assert {step.candidate: step.outcome for step in found.steps}["KYBER"] == "impossible"
    assert (set(found.culprits), found.is_certain) == ({"BLOCK=y", "KYBER=y"}, True)
    assert found.answer().endswith("and no fewer, to make the difference.")
