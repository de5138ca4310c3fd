"""Features that show themselves by a file which no kernel without them has."""

from __future__ import annotations

from typing import Final

from ajuste.kernel.prove.feature import Feature, file_is_there

_AUTOGROUP: Final = "/proc/sys/kernel/sched_autogroup_enabled"
_CONTROLLERS: Final = "/sys/fs/cgroup/cgroup.controllers"
_SCHED_EXT: Final = "/sys/kernel/sched_ext/state"
_SWITCHED: Final = "/sys/kernel/sched_ext/switch_all"

AUTOGROUP: Final = Feature(
    name="autogroup",
    title="Automatic task groups",
    judge=file_is_there(_AUTOGROUP),
    decided_by="SCHED_AUTOGROUP",
    options=("SCHED_AUTOGROUP",),
    reads=(_AUTOGROUP,),
)
CGROUP2: Final = Feature(
    name="cgroup2",
    title="Control groups, version 2",
    judge=file_is_there(_CONTROLLERS),
    decided_by="CGROUPS",
    options=("CGROUPS", "CGROUP_SCHED", "MEMCG", "BLK_CGROUP"),
    reads=(_CONTROLLERS,),
)
SCHED_EXT: Final = Feature(
    name="sched_ext",
    title="sched_ext: schedulers as BPF programs",
    judge=file_is_there(_SCHED_EXT, _SWITCHED),
    decided_by="SCHED_CLASS_EXT",
    options=("SCHED_CLASS_EXT", "BPF_SYSCALL", "DEBUG_INFO_BTF"),
    reads=(_SCHED_EXT, _SWITCHED),
)
