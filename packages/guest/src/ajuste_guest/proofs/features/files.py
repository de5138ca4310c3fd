"""Features with a file that only kernels with them have."""

from __future__ import annotations

from typing import Final

from ajuste_guest.proofs.feature import KernelFeature, file_is_there

_AUTOGROUP: Final = "/proc/sys/kernel/sched_autogroup_enabled"
_CONTROLLERS: Final = "/sys/fs/cgroup/cgroup.controllers"

AUTOGROUP: Final = KernelFeature(
    name="autogroup",
    title="Automatic task groups",
    judge=file_is_there(_AUTOGROUP),
    decided_by="SCHED_AUTOGROUP",
    options=("SCHED_AUTOGROUP",),
    reads=(_AUTOGROUP,),
)
CGROUP2: Final = KernelFeature(
    name="cgroup2",
    title="Control groups, version 2",
    judge=file_is_there(_CONTROLLERS),
    decided_by="CGROUPS",
    options=("CGROUPS", "CGROUP_SCHED", "MEMCG", "BLK_CGROUP"),
    reads=(_CONTROLLERS,),
)
