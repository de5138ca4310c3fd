"""Kernel specs: how a person names a kernel, ``debian:5.10`` or ``path:arch/x86/boot/bzImage,modules=DIR``."""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from ajuste.kernel.source import KernelSource, kernel_sources
from ajuste.model.error import RequestError, did_you_mean, nearest_names
from ajuste.model.kernel import KernelVersion

FORMS = "debian:5.10, debian:6.1/rt, debian:6.12.94, debian:7, mine:NAME or path:VMLINUZ,modules=DIR"
BUILT = "mine"
"""Kernels that were built here (``ajuste kernel build``)."""

_NUMBER = r"(?:0|[1-9][0-9]{0,3})"
_VERSION = re.compile(rf"{_NUMBER}(?:\.{_NUMBER}){{0,2}}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,79}")
_RELEASE = re.compile(rf"{_NUMBER}\.{_NUMBER}[+~.\-0-9a-zA-Z]*")


class PackagedKernel(BaseModel):
    """A kernel of a distribution. ``version`` is ``7`` (the newest of it), ``6.1`` (likewise) or ``6.12.94``; or else
    ``release`` is exactly what ``uname -r`` says. ``flavour`` is a name in the catalogue.
    """

    model_config = ConfigDict(frozen=True)
    source: str
    version: str = ""
    release: str = ""
    flavour: str

    def __str__(self) -> str:
        if self.release:
            return f"{self.source}:{self.release}"
        default = kernel_sources()[self.source].default_flavour
        return f"{self.source}:{self.version}" + ("" if self.flavour == default else f"/{self.flavour}")

    @property
    def exact(self) -> bool:
        """Whether it names one kernel for ever, and not the newest of a series."""
        return bool(self.release) or self.version.count(".") == 2

    def names(self, release: str, upstream: str, flavour: str) -> bool:
        """Whether the kernel of that release, upstream version (``6.12.94``) and flavour is meant."""
        if self.release:
            return release == self.release
        return flavour == self.flavour and (upstream + ".").startswith(self.version + ".")


class KernelFile(BaseModel):
    """A kernel of one's own, as a file; ``modules`` is its ``lib/modules/RELEASE`` or a directory above that."""

    model_config = ConfigDict(frozen=True)
    vmlinuz: Path
    modules: Path | None = None

    def __str__(self) -> str:
        return f"path:{self.vmlinuz}" + (f",modules={self.modules}" if self.modules else "")


class OwnKernel(BaseModel):
    """A kernel that was built here, by its name."""

    model_config = ConfigDict(frozen=True)
    name: str

    def __str__(self) -> str:
        return f"{BUILT}:{self.name}"


KernelSpec = PackagedKernel | KernelFile | OwnKernel


def check_name(name: str) -> str:
    """``name``, if it can be one of a built kernel. Raises RequestError."""
    if not _NAME.fullmatch(name):
        raise RequestError(
            f"{name!r} is not a kernel name; expected letters, digits and . _ + -, starting with a letter or digit"
        )
    return name


def parse_spec(text: str) -> KernelSpec:
    """Read a spec; nothing is looked up on disk or network. Raises RequestError that says what would be right."""
    kind, colon, rest = text.strip().partition(":")
    if kind == "path" and colon:
        return _kernel_file(text, rest)
    if kind == BUILT and colon:
        return OwnKernel(name=check_name(rest))
    sources = kernel_sources()
    if colon and kind in sources:
        return _packaged(text, sources[kind], rest)
    if not colon:
        raise RequestError(f"{text!r} is not a kernel; expected {FORMS}", hint=_guess(text.strip()))
    kinds = [*sources, BUILT, "path"]
    near = did_you_mean(f"{one}:{rest}" for one in nearest_names(kind, kinds))
    raise RequestError(
        f"unknown kernel source {kind!r}; expected one of {', '.join(kinds)}",
        hint=near or f"write {FORMS}",
    )


def _guess(text: str) -> str:
    if _VERSION.match(text):
        return f"did you mean debian:{text}?"
    return f"write path:{text} for a file" if "/" in text else "list kernels with ajuste kernel list"


def _kernel_file(text: str, rest: str) -> KernelFile:
    vmlinuz, comma, modules = rest.partition(",modules=")
    if not vmlinuz:
        raise RequestError(f"{text!r} lacks a file; expected path:VMLINUZ or path:VMLINUZ,modules=DIR")
    if comma and not modules:
        raise RequestError(f"{text!r} lacks the modules directory; expected path:VMLINUZ,modules=DIR")
    if "\0" in rest:
        raise RequestError(f"{text!r} has a NUL character; expected a path without it")
    return KernelFile(vmlinuz=Path(vmlinuz), modules=Path(modules) if modules else None)


def _packaged(text: str, source: KernelSource, rest: str) -> PackagedKernel:
    version, slash, flavour = rest.partition("/")
    if slash and flavour not in source.flavours:
        near = nearest_names(flavour, source.flavours, likeness=50)
        raise RequestError(
            f"{text!r}: flavour {flavour!r} not found in {source.name}; expected one of {', '.join(source.flavours)}",
            hint=did_you_mean(f"{source.name}:{version}/{one}" for one in near),
        )
    if _VERSION.fullmatch(version):
        _check_series(text, source, version)
        return PackagedKernel(source=source.name, version=version, flavour=flavour or source.default_flavour)
    named = source.flavour_of(version)
    if named and _RELEASE.fullmatch(version):
        if slash and flavour != named:
            raise RequestError(f"{text!r}: flavour {flavour} conflicts with the release's flavour; expected {named}")
        _check_series(text, source, version)
        return PackagedKernel(source=source.name, release=version, flavour=named)
    raise RequestError(
        f"{text!r}: {version!r} is not a kernel version; expected a version such as {source.name}:5.10, "
        f"{source.name}:6.12.94 or {source.name}:7",
        hint="list kernels with ajuste kernel list",
    )


def _check_series(text: str, source: KernelSource, version: str) -> None:
    """Refuse what the catalogue knows that no suite can have."""
    if not any(series.may_have(version) for series in source.series):
        near = _nearest(source, version)
        raise RequestError(
            f"{text!r}: kernel {version} not found in {source.name}; expected one of {source.series_names()}",
            hint=f"try {source.name}:{near}, or list kernels with ajuste kernel list",
        )


def _nearest(source: KernelSource, version: str) -> str:
    wanted = KernelVersion.parse(version + ".0" if version.isdigit() else version)

    def distance(since: str) -> int:
        known = KernelVersion.parse(since)
        return abs((known.major - wanted.major) * 20 + known.minor - wanted.minor)

    return min((s.since for s in source.series), key=distance)
