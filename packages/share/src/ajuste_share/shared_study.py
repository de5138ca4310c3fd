"""The study of a run for others: its exact kernels, as they can fetch or build them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ajuste.analysis.condition import renamed
from ajuste.kernel.builder import ContainedKernel, kernel_builder
from ajuste.kernel.spec import OwnKernel, PackagedKernel, parse_spec
from ajuste.machine.home import Home
from ajuste.model.error import RequestError
from ajuste.run.continuation import exact_spec
from ajuste.study.overrides import with_kernels
from ajuste.study.resolved import ResolvedStudy
from ajuste.study.schema import PatchTable, Study

if TYPE_CHECKING:
    from ajuste.store.store import Run


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
    builder = kernel_builder()
    measured = run.environment.get(spec, {}).get("kernel package", "")
    if measured and Path(measured).parent.name != builder.find_built(kernel.name, home).vmlinuz.parent.name:
        raise RequestError(
            f"{spec} is another kernel by now than run {run.id} measured", hint="run the study again, then reproduce it"
        )
    return builder.contained_kernel(kernel.name, home)
