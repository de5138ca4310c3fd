"""The builder of kernels: the package with the entry point ``build`` of the group ``ajuste.kernels``.

The core fetches kernels and boots them. For one that is not there yet, or that was built here, it asks this.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from ajuste.kernel.spec import KernelToBuild
from ajuste.machine.home import Home, plugin_of
from ajuste.model.kernel import KernelImage, KernelOptions, KernelVersion
from ajuste.model.plugins import plugins
from ajuste.model.wording import Say
from ajuste.study.schema import PatchTable, SchedulerTable

_GROUP: Final = "kernels"
_NAME: Final = "build"


class BuildWatcher(Protocol):
    """A receiver of messages; ``compiling`` comes before the first object, with their expected number, if known."""

    def say(self, text: str) -> None: ...

    def compiling(self, expected: int | None) -> None: ...

    def compiled(self, count: int) -> None: ...


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


class KernelBuilder(Protocol):
    """A builder of kernels. All methods raise RequestError for what cannot be as requested, RunError where building
    or fetching fails.
    """

    def version_to_build(self, spec: KernelToBuild, home: Home) -> KernelVersion:
        """Return the version that a kernel of ``build:…`` will have. Fetches and builds nothing."""

    def build_specified(self, texts: Iterable[str], home: Home, watcher: BuildWatcher) -> Mapping[str, str]:
        """Build the kernels of ``build:…`` among the specs ``texts``; return their names (``mine:NAME``) by spec. All
        are checked, and the other kernels fetched, before the first is built; no two may give the same kernel.
        """

    def find_built(self, name: str, home: Home) -> KernelImage:
        """Return the kernel ``mine:NAME``."""

    def contained_kernel(self, name: str, home: Home) -> ContainedKernel:
        """Return how others build the kernel ``mine:NAME``."""

    def compared_options(
        self, baseline: str, images: Mapping[str, KernelImage], home: Home, say: Say
    ) -> Mapping[str, KernelOptions]:
        """Return how the options of kernels differ from the baseline's, by spec."""

    def build_scheduler(self, table: SchedulerTable, kernel: str | None, home: Home, say: Say) -> str:
        """Build the BPF scheduler of a study file for the kernel of that spec, into the cache; return its hash."""


def has_builder() -> bool:
    """Return whether a package that builds kernels is installed."""
    return _NAME in plugins(_GROUP)


def kernel_builder() -> KernelBuilder:
    """Return what builds kernels. Raises RequestError, with the command that adds it, where it is not installed."""
    builder: type[KernelBuilder] = plugin_of("kernels", _GROUP, _NAME)
    return builder()
