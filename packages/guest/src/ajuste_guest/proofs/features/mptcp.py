"""Multipath TCP: on a connection over two links between network namespaces, data must arrive on both."""

from __future__ import annotations

from typing import Final

from ajuste.model.kernel import Sight
from ajuste_guest.proofs.feature import KernelFacts, KernelFeature, ProofFinding

_ENABLED: Final = "/proc/sys/net/mptcp/enabled"
_TRANSFER: Final = (
    *("paths", "--protocol", "mptcp", "--rate-kbit", "10000", "--delay-ms", "10"),
    *("--second-rate-kbit", "5000", "--second-delay-ms", "30", "--milliseconds", "1000"),
)
# Minimum share of the bytes on each link: setting up a subflow takes only a few hundred bytes.
_LEAST_SHARE: Final = 0.05


def _judge(facts: KernelFacts) -> ProofFinding:
    enabled = Sight(what=_ENABLED, found=facts.sight(_ENABLED))
    if _ENABLED not in facts.reads:
        return ProofFinding(present=False, evidence=(enabled,))
    figures = facts.figures(_TRANSFER)
    if not figures:
        why = facts.failed.get(_TRANSFER, "it printed nothing")
        # Without the links the kernel was not tried, so the feature is unknown.
        links = "veth" in why or "sch_netem" in why or "namespace" in why
        return ProofFinding(present=None if links else False, evidence=(enabled, Sight(what="a transfer", found=why)))
    arrived = [int(number) for number in figures["path_bytes"].split(",")]
    sights = [
        enabled,
        Sight(what="1 s of transfer over two links", found=f"{int(figures['received_bytes']):,} bytes received"),
        *(Sight(what=f"link {place}", found=f"{count:,} bytes arrived") for place, count in enumerate(arrived, 1)),
    ]
    both = all(count > _LEAST_SHARE * sum(arrived) for count in arrived)
    if "token" in figures:
        acked = [int(number) for number in figures["acked_bytes"].split(",") if number]
        each = ", ".join(f"{count:,}" for count in acked)
        sights += [
            Sight(what="subflows of the connection", found=f"{len(acked)}: {each} bytes acknowledged"),
            Sight(what="token in the kernel's table", found=figures["token"]),
            Sight(what="fallen back to plain TCP", found=figures["fallback"]),
        ]
        both = both and len(acked) == len(arrived) and figures["fallback"] == "no"
    return ProofFinding(present=both, evidence=tuple(sights))


FEATURE: Final = KernelFeature(
    name="mptcp",
    title="Multipath TCP",
    judge=_judge,
    decided_by="MPTCP",
    options=("MPTCP",),
    modules=("veth", "sch_netem"),
    reads=(_ENABLED,),
    runs=(_TRANSFER,),
)
