"""The preemption model, and PREEMPT_RT."""

from __future__ import annotations

import re
from typing import Final

from ajuste.model.kernel import Sight
from ajuste_guest.proofs.feature import KernelFacts, KernelFeature, ProofFinding

_DYNAMIC: Final = "/sys/kernel/debug/sched/preempt"
_REALTIME: Final = "/sys/kernel/realtime"
_BUILD: Final = "uname -v"


def _model(facts: KernelFacts) -> ProofFinding:
    sights = (
        Sight(what=_DYNAMIC, found=facts.sight(_DYNAMIC)),
        Sight(what=_BUILD, found=facts.build),
    )
    return ProofFinding(present=True, value=_value(facts), evidence=sights)


def _value(facts: KernelFacts) -> str:
    if _is_rt(facts):
        return "rt"
    current = re.search(r"\((\w+)\)|\[(\w+)\]", facts.reads.get(_DYNAMIC, ""))
    if current:
        return current[1] or current[2]
    # Without PREEMPT_DYNAMIC a kernel shows only whether it is fully preemptible.
    return "full" if re.search(r"\bPREEMPT\b", facts.build) else "none or voluntary"


def _is_rt(facts: KernelFacts) -> bool:
    return "PREEMPT_RT" in facts.build.split() or facts.reads.get(_REALTIME) == "1"


def _rt(facts: KernelFacts) -> ProofFinding:
    sights = (
        Sight(what=_BUILD, found=facts.build),
        Sight(what=_REALTIME, found=facts.sight(_REALTIME)),
    )
    return ProofFinding(present=_is_rt(facts), evidence=sights)


PREEMPT: Final = KernelFeature(
    name="preempt",
    title="Preemption model",
    judge=_model,
    options=("PREEMPT_NONE", "PREEMPT_VOLUNTARY", "PREEMPT", "PREEMPT_LAZY", "PREEMPT_RT", "PREEMPT_DYNAMIC"),
    reads=(_DYNAMIC, _REALTIME),
)
RT: Final = KernelFeature(
    name="rt",
    title="PREEMPT_RT: real-time kernel",
    judge=_rt,
    decided_by="PREEMPT_RT",
    options=("PREEMPT_RT",),
    reads=(_REALTIME,),
)
