"""The study of a run for others: its exact kernels, as they can fetch or build them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ajuste.analysis.condition import renamed
from ajuste.kernel.spec import (
    BUILT,
    CONFIGS,
    KernelToBuild,
    OwnKernel,
    PackagedKernel,
    parse_source,
    parse_spec,
    read_options,
)
from ajuste.machine.home import Home
from ajuste.model.error import RequestError
from ajuste.run.continuation import exact_spec
from ajuste.study.overrides import with_kernels
from ajuste.study.resolved import ResolvedStudy
from ajuste.study.schema import PatchTable, SchedulerTable, Study

if TYPE_CHECKING:
    from ajuste.kernel.building.built import Provenance
    from ajuste.store.store import Run

# Digits of a commit in a sentence.
_SHORT: Final = 12


@dataclass(frozen=True)
class SharedStudy:
    """A study for others. ``built`` has how to build the kernels that were built here, by their names; ``notes`` say
    what others need, or cannot build.
    """

    study: Study
    built: Mapping[str, str]
    notes: tuple[str, ...]

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return in sentences how to build the kernels."""
        patches = " The study below has the patches." if self.study.patches else ""
        built = "; ".join(f"{name} is {spec}" for name, spec in self.built.items())
        return (*([f"{built}.{patches}"] if built else []), *self.notes)


def shared_study(run: Run, home: Home) -> SharedStudy:
    """Return the study of ``run`` on its exact kernels, with their patches. A kernel that others cannot have keeps its
    name.
    """
    study = ResolvedStudy.model_validate_json(run.resolved).study
    parts: dict[str, ContainedKernel] = {}
    notes = []
    for spec in study.kernels:
        try:
            part = contained_kernel(spec, run, home)
            patches_of((*parts.values(), part))
            parts[spec] = part
        except RequestError as failure:
            notes.append(f"Others cannot build {spec}: {failure.message}.")
    notes += [note for part in parts.values() for note in part.notes]
    names = {spec: part.spec for spec, part in parts.items()}
    built = {spec: part.spec for spec, part in parts.items() if part.called}
    contained = {
        "title": _with_names(study.title, built),
        "question": _with_names(study.question, built),
        "patches": patches_of(parts.values()),
        "expect": renamed(study.expect, names) if study.expect else None,
    }
    return SharedStudy(with_kernels(study, names).model_copy(update=contained), built, tuple(notes))


def _with_names(text: str, names: Mapping[str, str]) -> str:
    for name, spec in names.items():
        text = re.sub(rf"{re.escape(name)}(?![\w.+-])", spec.replace("\\", r"\\"), text)
    return text


def patches_of(parts: Iterable[ContainedKernel]) -> tuple[PatchTable, ...]:
    """Return the patches of all kernels. Raises RequestError for two of one name."""
    patches: dict[str, PatchTable] = {}
    for patch in (patch for part in parts for patch in part.patches):
        if patches.setdefault(patch.name, patch) != patch:
            raise RequestError(
                f"two patches are called {patch.name}; a study file has one of a name",
                hint="rename the file of one, and build its kernel again",
            )
    return tuple(patches.values())


@dataclass(frozen=True)
class ContainedKernel:
    """A kernel in a study file for others. ``exact``: the spec always names this one kernel. A kernel that they build
    gets the name ``called`` and must have the hash ``sha256``; its ``schedulers`` are not part of the build.
    """

    spec: str
    exact: bool
    called: str = ""
    sha256: str = ""
    patches: tuple[PatchTable, ...] = ()
    schedulers: tuple[SchedulerTable, ...] = ()
    notes: tuple[str, ...] = ()


def contained_kernel(spec: str, run: Run, home: Home) -> ContainedKernel:
    """Return the kernel ``spec`` of a run as others can have it. Raises RequestError where they cannot."""
    kernel = parse_spec(spec)
    if isinstance(kernel, PackagedKernel):
        exact = spec if kernel.exact else exact_spec(spec, run)
        named = parse_spec(exact)
        return ContainedKernel(exact, exact=isinstance(named, PackagedKernel) and named.exact)
    if not isinstance(kernel, OwnKernel):
        raise RequestError(
            f"run {run.id} measured {spec}, a file of this machine; expected a package, or a kernel that Ajuste built",
            hint="build it with ajuste kernel build",
        )
    from ajuste.kernel.building.build import default_name  # few runs are of built kernels
    from ajuste.kernel.building.built import find_built

    built = find_built(kernel.name, home)
    origin, measured = built.provenance, run.environment.get(spec, {}).get("kernel package", "")
    if measured and Path(measured).parent.name != built.key:
        raise RequestError(
            f"{spec} is another kernel by now than run {run.id} measured", hint="run the study again, then reproduce it"
        )
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
    from ajuste.kernel.building.sources import revision_source, source_option

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
