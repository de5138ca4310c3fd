"""Proving what a kernel has: its features as the running kernel shows them, and what became of the claims."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ajuste.machine.home import Home
from ajuste.model.error import RunError
from ajuste.model.kernel import KernelImage, Proof, Shown
from ajuste.model.trial import KERNEL_FACTOR
from ajuste.model.wording import Say
from ajuste.run.proofs.feature import KernelFacts, KernelFeature
from ajuste.run.proofs.guest import look_at
from ajuste.run.proofs.registry import FEATURES, Claim, parse_claims
from ajuste.study.schema import Study

UNKNOWN_OPTION = "?"


def prove(image: KernelImage, claims: Sequence[Claim], home: Home, say: Say, arguments: tuple[str, ...] = ()) -> Proof:
    """Boot ``image`` and look; without ``claims`` at all there is to see.

    Raises RequestError for a kernel that does not boot, RunError where the guest is lost.
    """
    features = [claim.feature for claim in claims] or list(FEATURES.values())
    return judged(image, features, claims, look_at(image, features, home, say, arguments), arguments)


def judged(
    image: KernelImage,
    features: Sequence[KernelFeature],
    claims: Sequence[Claim],
    facts: KernelFacts,
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
        lines.append(f"expected {shown.claim}, but the running kernel shows {shown.state} ({evidence})")
    raise RunError(
        f"{proof.kernel} ({proof.release}) does not have the expected features: {'. '.join(lines)}",
        hint=f"see all evidence with ajuste kernel prove {proof.kernel}",
    )


def option_values(config: Path | None, names: Sequence[str]) -> dict[str, str]:
    """``y``, ``m``, ``n`` or another value of each option, with CONFIG_; ``?`` where there is no configuration."""
    if config is None or not config.is_file():
        return {f"CONFIG_{name}": UNKNOWN_OPTION for name in names}
    lines = re.findall(r"^CONFIG_(\w+)=(.*)$", config.read_text(errors="replace"), re.MULTILINE)
    values = dict(lines)
    return {f"CONFIG_{name}": values.get(name, "n").strip('"') for name in names}


def _shown(feature: KernelFeature, claim: Claim | None, facts: KernelFacts, config: Path | None) -> Shown:
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


# What a study takes its kernels for: what it says itself, and what its kernels are meant to differ in.


def check_claims(study: Study) -> None:
    """Raises RequestError for a claim of the study that names no feature."""
    for kernel in study.kernels:
        _said(study, kernel)


def claims_on(study: Study, kernel: str, images: Mapping[str, KernelImage]) -> tuple[Claim, ...]:
    """The claims on ``kernel``, one of ``images``, by spec. What the study says itself comes before what follows from
    configurations.

    Kernels of one version that are compared are meant to differ where their configurations do.
    """
    said = _said(study, kernel)
    names = {claim.feature.name for claim in said}
    return (*said, *(claim for claim in _differing(kernel, images) if claim.feature.name not in names))


def _said(study: Study, kernel: str) -> tuple[Claim, ...]:
    own = next((factor.prove for factor in study.factors if factor.name == KERNEL_FACTOR), {})
    return parse_claims((*study.target.prove, *own.get(kernel, ())))


def _differing(kernel: str, images: Mapping[str, KernelImage]) -> list[Claim]:
    version = images[kernel].version
    peers = {spec: image for spec, image in images.items() if image.version == version}
    built = {spec: _built(image) for spec, image in peers.items()}
    return [
        _claim(name, built[kernel][name])
        for name, feature in FEATURES.items()
        if feature.decided_by
        and UNKNOWN_OPTION not in (values := {own[name] for own in built.values()})
        and len(values) > 1
    ]


def _built(image: KernelImage) -> dict[str, str]:
    """For each feature what its option says; a module is as good as what is built in."""
    options = {name: feature.decided_by for name, feature in FEATURES.items() if feature.decided_by}
    values = option_values(image.config, tuple(options.values()))
    return {name: values[f"CONFIG_{option}"].replace("m", "y") for name, option in options.items()}


def _claim(name: str, value: str) -> Claim:
    if value in ("y", "n"):
        return Claim(FEATURES[name], absent=value == "n")
    return Claim(FEATURES[name], value=value)
