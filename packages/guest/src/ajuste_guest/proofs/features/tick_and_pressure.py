"""Features without a file of their own, which a program measures: the timer tick, pressure stall information."""

from __future__ import annotations

from typing import Final

from ajuste.model.kernel import Sight
from ajuste_guest.proofs.feature import KernelFacts, KernelFeature, ProofFinding

_FACTS: Final = ("facts",)


def _hz(facts: KernelFacts) -> ProofFinding:
    tick_ns = int(facts.figures(_FACTS).get("tick_ns", "0"))
    sight = Sight(what="resolution of CLOCK_MONOTONIC_COARSE", found=f"{tick_ns / 1e6:g} ms")
    if not tick_ns:
        return ProofFinding(present=None, evidence=(Sight(what=sight.what, found=facts.failed.get(_FACTS, "")),))
    return ProofFinding(present=True, value=f"{1e9 / tick_ns:.0f}", evidence=(sight,))


def _psi(facts: KernelFacts) -> ProofFinding:
    pressure = facts.figures(_FACTS).get("pressure")
    words = {"yes": "there", "no": "not found"}.get(pressure or "", facts.failed.get(_FACTS, ""))
    there = None if pressure is None else pressure == "yes"
    return ProofFinding(present=there, evidence=(Sight(what="/proc/pressure/cpu", found=words),))


HZ: Final = KernelFeature(
    name="hz",
    title="Timer ticks a second",
    judge=_hz,
    decided_by="HZ",
    options=("HZ", "NO_HZ_FULL", "NO_HZ_IDLE"),
    runs=(_FACTS,),
)
PSI: Final = KernelFeature(
    name="psi",
    title="Pressure stall information",
    judge=_psi,
    decided_by="PSI",
    options=("PSI", "PSI_DEFAULT_DISABLED"),
    runs=(_FACTS,),
)
