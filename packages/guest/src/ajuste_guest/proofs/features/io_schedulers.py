"""I/O schedulers: a queue must offer each, and have it after it was chosen."""

from __future__ import annotations

from typing import Final

from ajuste.model.kernel import Sight
from ajuste_guest.proofs.feature import KernelFacts, KernelFeature, ProofFinding

DISKS: Final = ("nullb0", "vda", "loop0", "ram0")
"""Disks in order of preference: the first that the guest has is used."""


def queue_of(disk: str) -> str:
    """Return the file with the schedulers of a disk."""
    return f"/sys/block/{disk}/queue/scheduler"


def _feature(name: str, title: str, option: str, module: str) -> KernelFeature:
    def judge(facts: KernelFacts) -> ProofFinding:
        if not facts.disk:
            why = "the guest has no block device: neither null_blk nor loop nor brd"
            return ProofFinding(present=None, evidence=(Sight(what="a queue", found=why),))
        queue = queue_of(facts.disk)
        became = facts.chosen.get(name)
        words = f"it is {became}" if became is not None else facts.refused.get(name, "not tried")
        sights = (Sight(what=queue, found=facts.sight(queue)), Sight(what=f"{name} chosen", found=words))
        return ProofFinding(present=became == name, evidence=sights)

    return KernelFeature(
        name=name,
        title=title,
        judge=judge,
        decided_by=option,
        options=(option,),
        modules=("null_blk", module),
        reads=tuple(map(queue_of, DISKS)),
        schedulers=(name,),
    )


KYBER: Final = _feature("kyber", "I/O scheduler Kyber", "MQ_IOSCHED_KYBER", "kyber-iosched")
BFQ: Final = _feature("bfq", "I/O scheduler BFQ", "IOSCHED_BFQ", "bfq")
