"""What the kernel changes along with a tunable, so that all of it can be put back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import chain

from ajuste.catalogue.place import location
from ajuste.model.kernel import KernelVersion
from ajuste.model.plan import File, Location
from ajuste.model.tunable import Marker, Tunable

ListFiles = Callable[[str], Iterable[str]]
"""From a directory to the paths of the files in it; none if it is not there."""


CanChange = Callable[[Tunable], bool]
"""Whether a machine can change a tunable: what it cannot, nothing else changes either."""


def companions(
    tunables: Mapping[str, Tunable], tunable: Tunable, version: KernelVersion, files: ListFiles, can_change: CanChange
) -> tuple[Location, ...]:
    """See ``Catalogue.companions``."""
    named = (_same_instance(tunables[name], tunable) for name in tunable.companions)
    places = (location(where) for other in named if (where := other.place_in(version)) and can_change(other))
    found = [place for place in places if not isinstance(place, Marker)]
    listed = chain.from_iterable(sorted(files(_of(path, tunable))) for path in tunable.companion_directories)
    found += [File(path=path) for path in listed]
    return tuple(dict.fromkeys(found))


def _same_instance(other: Tunable, tunable: Tunable) -> Tunable:
    return other.instance(tunable.chosen) if other.parts else other


def _of(path: str, tunable: Tunable) -> str:
    return re.sub(r"\{([a-z]+)\}", lambda match: tunable.chosen[match[1]], path)
