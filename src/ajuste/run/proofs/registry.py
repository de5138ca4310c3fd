"""The features by name, and claims about them: ``numa``, ``no-numa``, ``hz=250``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from rapidfuzz import process

from ajuste.model.error import RequestError
from ajuste.model.plug_in import modules_of
from ajuste.run.proofs import features
from ajuste.run.proofs.feature import KernelFeature, ProofFinding

FEATURES: Final[Mapping[str, KernelFeature]] = MappingProxyType(
    {
        feature.name: feature
        for module in modules_of(features).values()
        for feature in vars(module).values()
        if isinstance(feature, KernelFeature)
    }
)
"""Every one that a file of ``features`` makes, by its name."""

_ABSENT: Final = "no-"


class Claim(NamedTuple):
    """That a kernel has a feature (with this value, if one is said), or that it has not."""

    feature: KernelFeature
    absent: bool = False
    value: str = ""

    def __str__(self) -> str:
        value = f"={self.value}" if self.value else ""
        return f"{_ABSENT if self.absent else ''}{self.feature.name}{value}"

    def holds(self, finding: ProofFinding) -> bool:
        """Whether it is so. What cannot be told does not hold."""
        if finding.present is None:
            return False
        if self.value:
            return finding.present and self.value == finding.value
        return finding.present != self.absent


def parse_claim(text: str) -> Claim:
    """From ``numa``, ``no-numa`` or ``hz=250``. Raises RequestError that names the features there are."""
    name, equals, value = text.strip().partition("=")
    absent = name.startswith(_ABSENT)
    name = name.removeprefix(_ABSENT)
    if name not in FEATURES:
        near = process.extractOne(name, list(FEATURES), score_cutoff=60)
        raise RequestError(
            f"feature {text!r} not found; expected one of {', '.join(FEATURES)}",
            hint=f"did you mean {_ABSENT if absent else ''}{near[0]}?" if near else None,
        )
    if equals and (absent or not value):
        raise RequestError(f"{text!r}: expected a value as in hz=250 or preempt=voluntary")
    return Claim(FEATURES[name], absent, value)


def parse_claims(texts: Iterable[str]) -> tuple[Claim, ...]:
    """Each once; raises RequestError for two that contradict each other."""
    claims = tuple(dict.fromkeys(map(parse_claim, texts)))
    names = [claim.feature.name for claim in claims]
    for name in names:
        if names.count(name) > 1:
            raise RequestError(f"feature {name} is given twice with different values; expected only one of them")
    return claims
