"""What a study takes its kernels for: what it says itself, and what its kernels are meant to differ in."""

from __future__ import annotations

from collections.abc import Mapping

from ajuste.kernel.prove.prove import UNKNOWN_OPTION, option_values
from ajuste.kernel.prove.registry import FEATURES, Claim, parse_claims
from ajuste.model.configuration import KERNEL_FACTOR
from ajuste.model.kernel import KernelImage
from ajuste.study.schema import Study


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
