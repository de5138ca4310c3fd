"""Kernels that ``ajuste compare`` builds itself: the source as it is, and with patches or options."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ajuste.home import home
from ajuste.model.error import RequestError


def built_kernels(
    source: str | None,
    patches: Sequence[Path],
    options: Sequence[str],
    *,
    kernel: str | None,
    dry_run: bool,
    quiet: bool,
) -> str | None:
    """What ``--kernel`` is to be: ``kernel`` as it was given, or else the two kernels of ``source``, without and with
    the changes. Raises RequestError, RunError where one cannot be built.
    """
    if source is None:
        if patches or options:
            raise RequestError("of which kernel? patches and options need its source", hint="--source debian:6.1")
        return kernel
    if not (patches or options):
        raise RequestError(
            f"--source {source}: what is it to be compared with?",
            hint="--patch FILE or --option NAME=VALUE; a kernel by itself: ajuste kernel build",
        )
    if kernel is not None:
        raise RequestError(f"--source {source} gives the kernels; leave --kernel {kernel} out")
    if dry_run:
        raise RequestError("--dry-run builds no kernels", hint="ajuste kernel build makes them ahead of time")
    from ajuste.kernel.build.build import BuildRequest, build_kernel
    from ajuste.report.build_progress import BuildProgress

    with BuildProgress(quiet=quiet) as progress:
        base = build_kernel(BuildRequest(source), home(), progress)
        changed = build_kernel(BuildRequest(source, settings=tuple(options), patches=tuple(patches)), home(), progress)
    if base.key == changed.key:
        raise RequestError("with these changes it is the very same kernel: there is nothing to compare")
    return f"{base.image.spec},{changed.image.spec}"
