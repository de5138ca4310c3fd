"""Which tunable a factor really is on a given kernel: itself, or the successor that stands in for it."""

from __future__ import annotations

from dataclasses import dataclass

from ajuste.catalogue.loader import Catalogue
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelVersion
from ajuste.model.plan import Location, location_words
from ajuste.model.tunable import Marker, Tunable, marker_words


@dataclass(frozen=True)
class Knob:
    """``tunable`` at ``location`` of a kernel of ``version``. ``instead_of`` is what was asked for, if another."""

    tunable: Tunable
    location: Location | Marker
    version: KernelVersion
    instead_of: Tunable | None = None

    @property
    def where(self) -> str:
        """The place in words."""
        if isinstance(self.location, Marker):
            return marker_words(self.location)
        return location_words(self.location)


def knob(asked: Tunable, version: KernelVersion, catalogue: Catalogue, *, successor: bool) -> Knob:
    """The knob for ``asked`` on a kernel of ``version``.

    Raises RequestError that says which kernels have it and what this one has instead; with ``successor`` the nearest
    successor that this kernel has is taken instead.
    """
    heir = _heir(asked, version, catalogue)
    if heir is None or asked.place_in(version) is not None:
        return Knob(asked, catalogue.locate(asked, version), version)
    if successor:
        return Knob(heir, catalogue.locate(heir, version), version, asked)
    try:
        catalogue.locate(asked, version)
    except RequestError as failure:
        raise RequestError(
            failure.message,
            hint=f"Linux {version} has its successor {heir.name}, a related but different tunable: vary that one, or "
            f"say successor = true to have it varied in its place",
        ) from None
    raise AssertionError(f"{asked.name} is in no place of Linux {version}, and yet it was located")


def _heir(asked: Tunable, version: KernelVersion, catalogue: Catalogue) -> Tunable | None:
    """The first tunable down the line of successors that a kernel of ``version`` has."""
    seen, name = {asked.name}, asked.successor
    while name and name not in seen:
        heir = catalogue.tunables[name]
        if heir.place_in(version) is not None:
            return heir
        seen.add(name)
        name = heir.successor
    return None
