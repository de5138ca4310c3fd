"""Kernels that are compared with each other in a study: in which build options each differs from the baseline's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ajuste.home import Home
from ajuste.kernel.diff.compare import compare
from ajuste.kernel.diff.difference import Change, Difference
from ajuste.kernel.diff.kconfig_source import kconfig_sources
from ajuste.kernel.diff.named import NamedConfig, named_config
from ajuste.model.error import AjusteError
from ajuste.model.kernel import KernelImage
from ajuste.model.kernel_options import KernelOptions, Option

Say = Callable[[str], None]

MOST_OPTIONS: Final = 40


def compared_options(
    baseline: str, images: Mapping[str, KernelImage], home: Home, say: Say
) -> dict[str, KernelOptions]:
    """For each of ``images``, by spec, that has the version of the ``baseline``'s. Between versions nearly all would be
    told, and what comes without its configuration has nothing to tell: these are left out.
    """
    version = images[baseline].version
    peers = [spec for spec, image in images.items() if spec != baseline and image.version == version]
    first = _config(baseline, home, say) if peers else None
    if first is None:
        return {}
    with kconfig_sources((), home, say) as sources:
        others = {spec: other for spec in peers if (other := _config(spec, home, say)) is not None}
        return {spec: _told(baseline, compare(first, other, sources, say)) for spec, other in others.items()}


def _config(spec: str, home: Home, say: Say) -> NamedConfig | None:
    try:
        return named_config(spec, home, say)
    except AjusteError:
        return None


def _told(baseline: str, difference: Difference) -> KernelOptions:
    changes = sorted(difference.effective, key=lambda change: change.reason != "asked")
    return KernelOptions(baseline=baseline, total=len(changes), options=tuple(map(_option, changes[:MOST_OPTIONS])))


def _option(change: Change) -> Option:
    return Option(name=change.name, title=change.title, baseline=change.a, own=change.b, because=change.said)
