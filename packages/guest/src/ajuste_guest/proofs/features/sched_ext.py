"""sched_ext: a BPF scheduler is loaded, if one was built with the kernel, and the kernel shows its name."""

from __future__ import annotations

from typing import Final

from ajuste.model.kernel import Sight
from ajuste.study.site import SCHEDULERS
from ajuste_guest.proofs.feature import KernelFacts, KernelFeature, ProofFinding

_STATE: Final = "/sys/kernel/sched_ext/state"
_SWITCHED: Final = "/sys/kernel/sched_ext/switch_all"
_EXAMPLE: Final = "scx_simple"
_LOAD: Final = ("scheduler", "load", f"{SCHEDULERS}/{_EXAMPLE}")
_NO_PROGRAM: Final = f"cannot start {_EXAMPLE}"


def _judge(facts: KernelFacts) -> ProofFinding:
    sights = [Sight(what=path, found=facts.sight(path)) for path in (_STATE, _SWITCHED)]
    if _STATE not in facts.reads:
        return ProofFinding(present=False, evidence=tuple(sights))
    loaded, why = facts.figures(_LOAD).get("loaded", ""), facts.failed.get(_LOAD, "")
    if _NO_PROGRAM in why or not (loaded or why):
        return ProofFinding(present=True, evidence=tuple(sights))
    words = f"enabled, and the kernel's name for it is {loaded}" if loaded else why
    return ProofFinding(present=bool(loaded), evidence=(*sights, Sight(what=f"{_EXAMPLE} loaded", found=words)))


FEATURE: Final = KernelFeature(
    name="sched_ext",
    title="sched_ext: schedulers as BPF programs",
    judge=_judge,
    decided_by="SCHED_CLASS_EXT",
    options=("SCHED_CLASS_EXT", "BPF_SYSCALL", "DEBUG_INFO_BTF"),
    reads=(_STATE, _SWITCHED),
    runs=(_LOAD,),
    bpf=(_EXAMPLE,),
)
