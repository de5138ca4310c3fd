"""Placement of profiles on a study's machine: the package with the entry point ``place`` of the group
``ajuste.profiles``.

The core compares what profiles set, and takes them apart. What they set on a machine, it asks this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from ajuste.catalogue.loader import Catalogue
from ajuste.machine.home import require_extra
from ajuste.model.plugins import load_plugin, plugins
from ajuste.run.testbed import RunOptions
from ajuste.study.profile import Placed
from ajuste.study.target import TargetTable

_GROUP: Final = "profiles"
_NAME: Final = "place"


class ProfilePlacement(Protocol):
    """A reader of profiles. Its methods raise RequestError for a missing or invalid profile, RunError if a machine or
    a mirror is lost.
    """

    def placed(
        self, specs: Sequence[str], target: TargetTable, catalogue: Catalogue, options: RunOptions
    ) -> tuple[Placed, ...]:
        """Return the settings of profiles on ``target``, in the order of ``specs``. A guest is booted for it; nothing
        is changed.
        """

    def check(self, specs: Sequence[str], target: TargetTable, catalogue: Catalogue, options: RunOptions) -> None:
        """Check profiles while the guest's kernel is not built yet."""


def profile_placement() -> ProfilePlacement:
    """Return what places profiles. Raises RequestError, with the command that adds it, where it is not installed."""
    if _NAME not in plugins(_GROUP):
        require_extra("profiles")
    placement: type[ProfilePlacement] = load_plugin(_GROUP, _NAME)
    return placement()
