"""Bisection over the options of two kernels, which are really built from a small tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ajuste.machine.home import Home
from ajuste.model.error import RequestError
from ajuste_kernels.bisection.bisect import Ask, OptionChanges, Workshop, bisect, bisect_options, option_changes
from ajuste_kernels.bisection.session import BisectionResult, BisectionSession
from ajuste_kernels.building.build import BuildRequest, build_kernel
from ajuste_kernels.building.built import find_built
from ajuste_kernels.building.sources import source_option
from ajuste_kernels.difference import KernelDifference, OptionDifference, Reason, Side
from small_kernel import RELEASE, small_kernel

if TYPE_CHECKING:
    from packages.kernels.tests.bisection.conftest import Lab

    from ajuste_kernels.bisection.bisect import Watching

In = Callable[["Lab"], Callable[[str, int], BisectionSession]]


def difference(*changes: tuple[str, str, Reason], source: str = "linux") -> KernelDifference:
    return KernelDifference(
        a=Side(name="a", source="linux"),
        b=Side(name="b", source=source),
        changes=tuple(OptionDifference(name=name, a="y", b=b, reason=reason) for name, b, reason in changes),
    )


def test_only_what_can_be_set_is_a_candidate() -> None:
    changes = option_changes(
        difference(("NUMA", "absent", "asked"), ("HZ", "100", "default"), ("HZ_X", "n", "follows"))
    )
    assert changes.some(changes.names) == ("NUMA=n", "HZ=100")


def test_kernels_of_two_sources_are_refused() -> None:
    with pytest.raises(RequestError, match="different sources"):
        option_changes(difference(("NUMA", "n", "asked"), source="other"))


def test_without_a_source_nothing_is_guessed() -> None:
    with pytest.raises(RequestError, match="cannot find the options"):
        option_changes(difference(("NUMA", "n", "asked"), source=""))


def test_a_difference_that_is_in_no_option_is_said_to_be_elsewhere() -> None:
    changes = OptionChanges({"A": "y", "B": "y"})
    with pytest.raises(RequestError, match="do not reproduce the difference"):
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
    assert source_option(title) == source


@dataclass
class Pair:
    """Kernels ``mine:a`` and ``mine:b``, really built from the small tree."""

    directory: Path
    silent: Watching
    home: Home

    def build(self, good: str, *bad: str) -> None:
        """``a`` with the options ``good``, ``b`` with ``bad`` besides."""
        tree = small_kernel(self.directory / "linux")
        config = self.directory / "config"
        config.write_text(good)
        for name, settings in (("a", ()), ("b", bad)):
            with self.silent() as watcher:
                build_kernel(BuildRequest(str(tree), str(config), settings, name=name), self.home, watcher)

    def bisected(self, session: Callable[[str, int], BisectionSession]) -> BisectionResult:
        return bisect(Ask("mine:a", "mine:b"), Workshop(self.home, self.silent, lambda _: None), session)


@pytest.fixture
def pair(tmp_path: Path, silent: Watching) -> Pair:
    return Pair(tmp_path, silent, Home(tmp_path / "data", tmp_path / "cache", tmp_path / "state"))


def test_of_the_options_of_two_built_kernels_the_guilty_one_is_named(
    pair: Pair, session_in: In, lab_by_config: Callable[[Home, Callable[[str], float]], Lab]
) -> None:
    pair.build("CONFIG_EXPERT=y\nCONFIG_BLOCK=y\nCONFIG_KYBER=y\nCONFIG_MODULES=y\n", "KYBER=n", "HZ=100", "MODULES=n")
    played = lab_by_config(pair.home, lambda config: 1.0 if "CONFIG_KYBER=y" in config else 2.0)
    result = pair.bisected(session_in(played))
    assert result.culprits == ("KYBER=n",)
    assert (result.kind, result.among) == ("options", 3)
    assert result.answer() == "Of 3 differing options, 1 makes the difference: KYBER=n."
    for step in result.steps:
        kernel = find_built(step.kernel.removeprefix("mine:"), pair.home)
        assert kernel.image.config is not None
        assert ("CONFIG_KYBER=y" in kernel.image.config.read_text()) == (step.outcome == "absent")


def test_ends_that_are_to_be_built_are_bisected_by_their_names(
    pair: Pair, session_in: In, lab_by_config: Callable[[Home, Callable[[str], float]], Lab]
) -> None:
    tree = small_kernel(pair.directory / "linux")
    played = lab_by_config(pair.home, lambda config: 1.0 if "CONFIG_HZ=250" in config else 2.0)
    ask = Ask(f"build:{tree}", f"build:{tree}+HZ=100+NUMA=n")
    result = bisect(ask, Workshop(pair.home, pair.silent, lambda _: None), session_in(played))
    assert (result.good, result.bad) == (f"mine:{RELEASE}-lab", f"mine:{RELEASE}-lab-hz-100-no-numa")
    assert result.culprits == ("HZ=100",)


def test_an_end_that_is_no_kernel_costs_no_build_of_the_other(
    pair: Pair, session_in: In, lab_by_config: Callable[[Home, Callable[[str], float]], Lab]
) -> None:
    tree = small_kernel(pair.directory / "linux")
    session = session_in(lab_by_config(pair.home, lambda _: 1.0))
    for ends in ((f"build:{tree}", "nowhere"), ("debian:6.1", f"build:{tree}"), (f"build:{tree}", f"git:{tree}")):
        with pytest.raises(RequestError):
            bisect(Ask(*ends), Workshop(pair.home, pair.silent, lambda _: None), session)
    assert not list(pair.home.cache.glob("build/*/objects"))
    assert not pair.home.kernels.exists()


def test_an_option_that_cannot_be_had_alone_leaves_no_doubt(
    pair: Pair, session_in: In, lab_by_config: Callable[[Home, Callable[[str], float]], Lab]
) -> None:
    pair.build("CONFIG_EXPERT=y\nCONFIG_MODULES=y\n", "BLOCK=y", "KYBER=y", "HZ=100", "MODULES=n")
    played = lab_by_config(pair.home, lambda config: 2.0 if "CONFIG_KYBER=y" in config else 1.0)
    result = pair.bisected(session_in(played))
    assert {step.candidate: step.outcome for step in result.steps}["KYBER"] == "impossible"
    assert (set(result.culprits), result.is_certain) == ({"BLOCK=y", "KYBER=y"}, True)
    assert result.answer().endswith("; all are required.")
