"""What a machine has: which of several there are of a tunable, and which files are in a directory of the kernel's."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from ajuste.catalogue.loader import Catalogue
from ajuste.catalogue.names import named_parts
from ajuste.model.kernel import KernelVersion
from ajuste.model.tunable import DEVICE_KINDS, Tunable

_ROOT = Path("/")


def instances_here(
    catalogue: Catalogue, tunable: Tunable, version: KernelVersion, root: Path = _ROOT
) -> tuple[str, ...]:
    """The instances of ``tunable`` that the machine below ``root`` has, in natural order: ``cpu2`` before ``cpu10``.

    A device without the file is not among them. Empty where there is only one tunable, or such kernels have none.
    """
    where = tunable.place_in(version)
    if not tunable.parts or where is None:
        return ()
    template = catalogue.parts["interface"].there if where.kind in DEVICE_KINDS else where.path
    found = set()
    for path in _glob(re.sub(r"\{[a-z]+\}", "*", template), root):
        if where.kind in DEVICE_KINDS:
            name = catalogue.parts["interface"].read(path.rpartition("/")[2])
            # bonding_masters is a file among the directories of the interfaces.
            if name and (root / path.lstrip("/")).is_dir():
                found.add(name)
        elif named := named_parts(template, catalogue.parts, path):
            found.add("/".join(named[part] for part in tunable.parts))
    return tuple(sorted(found, key=_natural))


def of_this_machine(catalogue: Catalogue) -> Catalogue:
    """The catalogue, naming what this machine has where one of several must be named."""
    return replace(catalogue, there=instances_here)


def files_in(directory: str, root: Path = _ROOT) -> tuple[str, ...]:
    """The paths of the files in a directory of the machine below ``root``, in order; none if it is not there."""
    return tuple(path for path in _glob(f"{directory}/*", root) if (root / path.lstrip("/")).is_file())


def _glob(pattern: str, root: Path) -> list[str]:
    try:
        return sorted(f"/{path.relative_to(root)}" for path in root.glob(pattern.lstrip("/")))
    except OSError:
        return []


def _natural(name: str) -> list[tuple[str, int]]:
    return [(text, int(digits or 0)) for text, digits in re.findall(r"(\D*)(\d*)", name)]
