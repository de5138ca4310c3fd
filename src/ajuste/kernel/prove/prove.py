"""Proving what a kernel has: its features as the running kernel shows them, and what became of the claims."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ajuste.home import Home
from ajuste.kernel.prove.facts import Facts
from ajuste.kernel.prove.feature import Feature
from ajuste.kernel.prove.guest import look_at
from ajuste.kernel.prove.registry import FEATURES, Claim
from ajuste.model.error import RunError
from ajuste.model.kernel import KernelImage
from ajuste.model.proof import Proof, Shown
from ajuste.target.target import Say

UNKNOWN_OPTION = "?"


def prove(image: KernelImage, claims: Sequence[Claim], home: Home, say: Say, arguments: tuple[str, ...] = ()) -> Proof:
    """Boot ``image`` and look; without ``claims`` at all there is to see.

    Raises RequestError for a kernel that does not boot, RunError where the guest is lost.
    """
    features = [claim.feature for claim in claims] or list(FEATURES.values())
    return judged(image, features, claims, look_at(image, features, home, say, arguments), arguments)


def judged(
    image: KernelImage,
    features: Sequence[Feature],
    claims: Sequence[Claim],
    facts: Facts,
    arguments: tuple[str, ...] = (),
) -> Proof:
    """What ``facts`` say of ``features``, and of ``claims`` about them. Pure but for reading the configuration."""
    claimed = {claim.feature.name: claim for claim in claims}
    shown = tuple(_shown(feature, claimed.get(feature.name), facts, image.config) for feature in features)
    return Proof(kernel=image.spec, release=image.release, build=facts.build, arguments=arguments, features=shown)


def require(proof: Proof) -> None:
    """Raises RunError if a claim does not hold, with what was seen instead."""
    if not proof.broken:
        return
    lines = []
    for shown in proof.broken:
        evidence = "; ".join(f"{sight.what}: {sight.found}" for sight in shown.evidence)
        lines.append(f"{shown.claim} was claimed, and the running kernel says {shown.state} ({evidence})")
    raise RunError(
        f"{proof.kernel} ({proof.release}) is not what it is taken for: {'. '.join(lines)}",
        hint=f"see all of it: ajuste kernel prove {proof.kernel}",
    )


def option_values(config: Path | None, names: Sequence[str]) -> dict[str, str]:
    """``y``, ``m``, ``n`` or another value of each option, with CONFIG_; ``?`` where there is no configuration."""
    if config is None or not config.is_file():
        return {f"CONFIG_{name}": UNKNOWN_OPTION for name in names}
    lines = re.findall(r"^CONFIG_(\w+)=(.*)$", config.read_text(errors="replace"), re.MULTILINE)
    values = dict(lines)
    return {f"CONFIG_{name}": values.get(name, "n").strip('"') for name in names}


def _shown(feature: Feature, claim: Claim | None, facts: Facts, config: Path | None) -> Shown:
    finding = feature.judge(facts)
    return Shown(
        feature=feature.name,
        title=feature.title,
        present=finding.present,
        value=finding.value,
        evidence=finding.evidence,
        options=option_values(config, feature.options),
        claim=str(claim) if claim else "",
        holds=claim.holds(finding) if claim else True,
    )
