"""``ajuste kernel build`` and ``remove``: your own kernels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ajuste.cli.options import Json, Quiet, example
from ajuste.kernel.building.build import BuildRequest, build_kernel
from ajuste.kernel.building.built import BuiltKernel, remove_built
from ajuste.kernel.spec import BUILT
from ajuste.machine.home import home
from ajuste.model.wording import visible_line
from ajuste.report.format import duration
from ajuste.report.progress import BuildProgress


@example(
    "ajuste kernel build --source debian:6.1 --name base",
    "ajuste kernel build --source debian:6.1 --set NUMA=n --name non-numa",
)
def build(
    source: Annotated[str, typer.Option(metavar="SOURCE", help="debian:6.1, a directory, or git:DIR[@REVISION].")],
    config: Annotated[
        str,
        typer.Option(
            metavar="CONFIG",
            help="lab (small, for experiments), lab-ext (with sched_ext), distro (as Debian's) or a .config.",
        ),
    ] = "lab",
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="OPTION=VALUE", help="Set this option, such as NUMA=n (repeatable)."),
    ] = None,
    patch: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Apply this patch (repeatable, in order).")
    ] = None,
    scheduler: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Keep this BPF scheduler with the kernel, such as scx_bpfland (repeatable)."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name the kernel mine:NAME (default: from the options).")
    ] = None,
    refresh: Annotated[bool, typer.Option("--refresh", help="Check for a newer source of the series.")] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Build a kernel to boot. Earlier builds and compiled objects are reused.
    Your sources are only read; building runs their Makefiles.
    """
    request = BuildRequest(source, config, tuple(set_ or ()), tuple(patch or ()), name, refresh, tuple(scheduler or ()))
    with BuildProgress(quiet=quiet) as progress:
        kernel = build_kernel(request, home(), progress)
    if as_json:
        print(json.dumps(described(kernel), indent=2))
        return
    print(f"{kernel.image.spec}: {_summary(kernel)}")
    for note in kernel.provenance.notes:
        print(f"  {visible_line(note)}")


@example("ajuste kernel remove non-numa")
def remove(
    names: Annotated[list[str], typer.Argument(metavar="NAME…", help="Names of built kernels, with or without mine:.")],
) -> None:
    """Remove built kernels. Compiled objects are kept for the next build."""
    for name in names:
        remove_built(name.removeprefix(f"{BUILT}:"), home())


def described(kernel: BuiltKernel) -> dict[str, object]:
    """For other programs."""
    return {
        "spec": kernel.image.spec,
        "key": kernel.key,
        "size_bytes": kernel.size_bytes,
        "kernel": kernel.image.model_dump(mode="json"),
        "provenance": kernel.provenance.model_dump(mode="json"),
    }


def _summary(kernel: BuiltKernel) -> str:
    made = kernel.provenance
    size = kernel.image.vmlinuz.stat().st_size / 1e6
    return (
        f"{kernel.image.release} from {visible_line(made.source)}, image {size:.1f} MB, "
        f"{made.compiled:,} objects compiled in {duration(made.seconds)}, in {kernel.directory}"
    )
