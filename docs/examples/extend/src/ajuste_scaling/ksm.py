"""Kernel samepage merging: equal pages of memory become one."""

from __future__ import annotations

from typing import Final

from ajuste_guest.proofs.feature import KernelFeature, file_is_there

_RUN: Final = "/sys/kernel/mm/ksm/run"

FEATURE: Final = KernelFeature(
    name="ksm",
    title="KSM: equal pages are merged",
    judge=file_is_there(_RUN),
    decided_by="KSM",
    options=("KSM",),
    reads=(_RUN,),
)
