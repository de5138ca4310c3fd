"""Bisection over the versions of a distribution's kernel."""

from __future__ import annotations

from collections.abc import Callable

from ajuste.design.bisection import Outcome, culprits, next_candidate
from ajuste.home import Home
from ajuste.kernel.available import available_kernels
from ajuste.kernel.fetch import fetch_kernel
from ajuste.kernel.spec import PackagedKernel
from ajuste.model.error import RequestError

Say = Callable[[str], None]
Test = Callable[[str, Callable[[], str]], Outcome]


def versions_between(good: PackagedKernel, bad: PackagedKernel, home: Home, say: Say, *, every: bool) -> list[str]:
    """The specs from ``good`` to ``bad``, in the order of the search: the newest of each series, or ``every`` version
    that the mirror or the cache has. Raises RequestError.
    """
    if (good.source, good.flavour) != (bad.source, bad.flavour):
        raise RequestError(
            f"{good} and {bad} are not of the same source and flavour: there are no versions between them",
            hint="ajuste kernel diff tells what differs; to seek among options build both: ajuste kernel build",
        )
    releases = {str(end): fetch_kernel(str(end), home, say=say).release for end in (good, bad)}
    rows = [row for row in available_kernels(home, say, every=every) if row.flavour == good.flavour]
    places = {row.release: number for number, row in enumerate(rows)}
    missing = [spec for spec, release in releases.items() if release not in places]
    if missing:
        raise RequestError(f"{missing[0]} is not in the list of kernels", hint="see: ajuste kernel list --all")
    first, last = places[releases[str(good)]], places[releases[str(bad)]]
    if first == last:
        raise RequestError(f"{good} and {bad} are the same kernel, {releases[str(good)]}")
    step = 1 if first < last else -1
    between = [row.spec for row in rows[first + step : last : step]]
    return [str(good), *between, str(bad)]


def bisect_versions(specs: list[str], test: Test) -> tuple[str, ...]:
    """The versions with one of which the difference came; ``specs`` from the good end to the bad one."""
    outcomes: dict[int, Outcome] = {0: "absent", len(specs) - 1: "there"}
    while (place := next_candidate(len(specs), outcomes)) is not None:
        spec = specs[place]
        outcomes[place] = test(spec, lambda spec=spec: spec)  # type: ignore[misc]
    return tuple(specs[place] for place in culprits(len(specs), outcomes))
