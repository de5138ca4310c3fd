"""What is exported: the settings of one configuration with their evidence, and the files that they become."""

from __future__ import annotations

from dataclasses import dataclass, field

from ajuste.model.plan import Attributes, Location, location_words


@dataclass(frozen=True)
class Setting:
    """One tunable: the value that was asked for, what the kernel ``became`` of it, and what the run found ``before``
    (``None`` if no trial told). ``companions`` are places that the kernel changes along with it.
    """

    tunable: str
    location: Location
    asked: str
    became: str
    before: str | None = None
    companions: tuple[Location, ...] = ()

    @property
    def where(self) -> str:
        return location_words(self.location)


@dataclass(frozen=True)
class LeftOut:
    """What is part of the configuration and not of the files."""

    what: str
    why: str


@dataclass(frozen=True)
class Export:
    """One configuration beside its baseline. ``name`` is good for file names; ``evidence`` are sentences.

    ``attributes`` are those of the workload's process that differ from the baseline's.
    """

    name: str
    configuration: str
    evidence: tuple[str, ...]
    settings: tuple[Setting, ...]
    attributes: Attributes = field(default_factory=Attributes)
    kernel_arguments: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


@dataclass(frozen=True)
class File:
    """A file of the export; ``place`` is where it belongs on a system, if anywhere."""

    name: str
    text: str
    place: str
    executable: bool = False


@dataclass(frozen=True)
class Rendered:
    """An export in one format: its files, and what the format has no words for."""

    files: tuple[File, ...]
    left_out: tuple[LeftOut, ...] = ()
