"""A kernel that was built here, in a study file for others: how they build the same."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Final

from ajuste.kernel.builder import ContainedKernel
from ajuste.kernel.spec import BUILT, CONFIGS, KernelToBuild, PackagedKernel, parse_source, read_options
from ajuste.machine.home import Home
from ajuste.model.error import RequestError
from ajuste.study.schema import PatchTable, SchedulerTable
from ajuste_kernels.building.build import default_name
from ajuste_kernels.building.built import Provenance, find_built
from ajuste_kernels.building.sources import revision_source, source_option

# Digits of a commit in a sentence.
_SHORT: Final = 12


def contained_kernel(name: str, home: Home) -> ContainedKernel:
    """Return how others build the kernel ``mine:NAME``. Raises RequestError where they cannot."""
    built = find_built(name, home)
    origin = built.provenance
    spec = built.image.spec
    if origin.config not in CONFIGS:
        raise RequestError(f"{spec} was built with --config {origin.config}, a file; expected {', '.join(CONFIGS)}")
    source, notes = _source(origin, spec)
    patches = tuple(
        _patch(number, used.name, content)
        for number, (used, content) in enumerate(zip(origin.patches, built.patches, strict=True))
    )
    settings = tuple(f"{name}={value}" for name, value in origin.settings.items())
    wanted = KernelToBuild(
        source=parse_source(source),
        config=origin.config,
        options=read_options(settings),
        patches=tuple(Path(patch.name) for patch in patches),
    )
    version = re.match(r"[0-9.]*[0-9]", built.image.release)
    called = default_name(
        version[0] if version else "", origin.config, origin.settings, [patch.name for patch in patches]
    )
    return ContainedKernel(
        str(wanted),
        exact=True,
        called=f"{BUILT}:{called}",
        sha256=built.image.sha256,
        patches=patches,
        schedulers=tuple(
            SchedulerTable(name=scheduler.name, sha256=scheduler.sha256) for scheduler in origin.schedulers
        ),
        notes=notes,
    )


def _source(origin: Provenance, spec: str) -> tuple[str, tuple[str, ...]]:
    # Returns the permanent name of a kernel's source, and notes on what others must have at hand.
    source = source_option(origin.source)
    kind, _, rest = source.partition(":")
    if kind != "git":
        if not isinstance(parse_source(source), PackagedKernel):
            raise RequestError(
                f"{spec} was built from {source}, which is not one source for ever; expected a package or a commit",
                hint="build git:DIR@REVISION after committing the changes",
            )
        return source, ()
    directory, _, revision = rest.rpartition("@")
    current = revision_source(Path(directory), revision)
    if current.digest != origin.source_digest:
        raise RequestError(
            f"{spec} was built from another commit than {revision} of {directory} is now",
            hint="build it from the commit itself: git:DIR@COMMIT",
        )
    return f"git:{directory}@{current.commit}", (
        f"The commit {current.commit[:_SHORT]} must be at hand: write where your clone is instead of {directory}.",
    )


def _patch(number: int, name: str, content: bytes) -> PatchTable:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise RequestError(f"the patch {name} is not UTF-8, which a study file requires") from None
    plain = re.sub(r"[^A-Za-z0-9._-]", "-", name).lstrip(".-")[:100] or f"{number + 1}.patch"
    return PatchTable(name=plain, sha256=hashlib.sha256(content).hexdigest(), text=text)
