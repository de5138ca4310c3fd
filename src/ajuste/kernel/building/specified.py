"""Kernels that specifications ask to build: checked together, then built once each, and by name from then on."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Final

from ajuste.kernel.building.build import BuildRequest, BuildWatcher, build_kernels, check_request
from ajuste.kernel.building.built import BuiltKernel
from ajuste.kernel.fetch import fetch_kernel
from ajuste.kernel.spec import KernelToBuild, PackagedKernel, parse_spec, specs_to_build
from ajuste.machine.home import Home
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelVersion

_NEWEST: Final = 99
"""The minor version that stands for the newest of a major one, until it is fetched."""


@cache  # A request asks several times, and reading a source takes seconds.
def version_to_build(spec: KernelToBuild, home: Home) -> KernelVersion:
    """The version that the kernel will have. Nothing is fetched or built.

    Raises RequestError for all that is known to be wrong without that: sources, patches, names of options.
    """
    version = check_request(_request(spec), home)
    return KernelVersion.parse(f"{version}.{_NEWEST}" if version.isdigit() else version)


def build_specified(texts: Iterable[str], home: Home, watcher: BuildWatcher) -> dict[str, BuiltKernel]:
    """The kernels to be built among the specifications ``texts``, by their text. What is wrong with any of ``texts`` is
    found before the first kernel is built, and the others are fetched by then.

    Raises RequestError for kernels that cannot be had as they are asked for, RunError where fetching or building fails.
    """
    specs = {text: parse_spec(text) for text in dict.fromkeys(texts)}
    wanted = specs_to_build(specs)
    if not wanted:
        return {}
    for spec in wanted.values():
        version_to_build(spec, home)
    others = [text for text in specs if text not in wanted]
    for text in sorted(others, key=lambda text: isinstance(specs[text], PackagedKernel)):  # Downloads come last.
        fetch_kernel(text, home, say=watcher.say)
    requests = dict.fromkeys(map(_request, wanted.values()))
    built = dict(zip(requests, build_kernels(list(requests), home, watcher), strict=True))
    return {text: built[_request(spec)] for text, spec in wanted.items()}


def require_different(built: dict[str, BuiltKernel]) -> None:
    """Raises RequestError where two specifications give the same kernel."""
    first: dict[str, str] = {}
    for text, kernel in built.items():
        if (other := first.setdefault(kernel.key, text)) != text:
            raise RequestError(
                f"{other} and {text} give the same kernel; there is nothing to compare",
                hint="check the options with ajuste kernel diff, or leave one of them out",
            )


def _request(spec: KernelToBuild) -> BuildRequest:
    return BuildRequest(str(spec.source), spec.config, spec.settings, spec.patches)
