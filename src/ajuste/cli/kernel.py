"""``ajuste kernel``: which kernels there are, fetching them, and building them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import groupby
from typing import Annotated

import typer
from rich.table import Table

from ajuste.cli.kernel_bisect import bisect
from ajuste.cli.kernel_build import build, described, remove
from ajuste.cli.kernel_diff import diff
from ajuste.cli.kernel_prove import prove_kernel
from ajuste.cli.options import Json, example, examples, help_if_alone
from ajuste.cli.showing import telling
from ajuste.kernel.available import AvailableKernel, available_kernels
from ajuste.kernel.building.built import BuiltKernel, built_kernels
from ajuste.kernel.fetch import fetch_kernel
from ajuste.kernel.qemu import QemuImage, cached_qemu, fetch_qemu
from ajuste.kernel.spec import parse_spec
from ajuste.machine.home import Home, home
from ajuste.model.kernel import KernelImage
from ajuste.model.wording import Say, visible_line
from ajuste.report.console import Console

QEMU = "qemu"

app = typer.Typer(
    invoke_without_command=True,
    callback=help_if_alone,
    help=examples("List, fetch, build, prove and compare kernels; fetch QEMU.", "ajuste kernel list"),
)

app.command("build")(build)
app.command("remove")(remove)
app.command("diff")(diff)
app.command("bisect")(bisect)

Refresh = Annotated[
    bool, typer.Option("--refresh", help="Update the package lists and fetch the newest kernel of each series.")
]


@app.command("list")
@example("ajuste kernel list --all")
def list_kernels(
    as_json: Json = False,
    every: Annotated[
        bool, typer.Option("--all", help="Show every version, not only the newest of each series.")
    ] = False,
    refresh: Annotated[bool, typer.Option("--refresh", help="Update the package lists.")] = False,
) -> None:
    """List the kernels you can boot: what to type, the scheduler, and whether it is cached."""
    place = home()
    mine = built_kernels(place)
    kernels = available_kernels(place, telling(), every=every, refresh=refresh)
    qemu = cached_qemu(place)
    if as_json:
        document = {
            "kernels": [kernel.model_dump(mode="json") for kernel in kernels],
            "built": [described(kernel) for kernel in mine],
            "qemu": qemu.model_dump(mode="json") if qemu else None,
        }
        print(json.dumps(document, indent=2))
        return
    console = Console()
    if not console.is_terminal:
        for kernel in kernels:
            print("\t".join(_fields(kernel)))
        for own in mine:
            print("\t".join(_built_fields(own)))
        return
    for knob, group in groupby(kernels, key=lambda k: (k.scheduler, k.granularity)):
        console.print(f"{knob[0]}, granularity in {knob[1]}", style="bold", soft_wrap=True)
        console.print(_table(group))
    if mine:
        console.print("Built here", style="bold")
        console.print(_built_table(mine))
    print("debian:7 is the newest 7.x; use your kernel as path:VMLINUZ,modules=DIR")
    print("or built, as mine:NAME: ajuste kernel build")
    print(f"QEMU {qemu.version} is fetched" if qemu else "fetch QEMU 10 with: ajuste kernel fetch qemu")


app.command("prove")(prove_kernel)


@app.command("fetch")
@example("ajuste kernel fetch debian:5.10 qemu")
def fetch(
    specs: Annotated[list[str], typer.Argument(metavar="SPEC…", help="debian:5.10, debian:6.1/rt, …, or qemu.")],
    as_json: Json = False,
    refresh: Refresh = False,
) -> None:
    """Fetch kernels (or QEMU 10, as qemu) into the cache and print their paths. Cached ones need no network."""
    for spec in specs:
        if spec != QEMU:
            parse_spec(spec)
    fetched = []
    for spec in specs:
        image = _fetch_one(spec, home(), telling(), refresh)
        fetched.append({"spec": spec, **image.model_dump(mode="json")})
        if not as_json:
            print(f"{spec}: {_described(image)}")
    if as_json:
        print(json.dumps({"fetched": fetched}, indent=2))


def _fetch_one(spec: str, place: Home, say: Say, refresh: bool) -> KernelImage | QemuImage:
    if spec == QEMU:
        return fetch_qemu(place, say, refresh=refresh)
    return fetch_kernel(spec, place, say=say, refresh=refresh, thoroughly=True)


def _described(image: KernelImage | QemuImage) -> str:
    if isinstance(image, KernelImage):
        return f"{image.release} in {image.vmlinuz.parent}"
    return f"QEMU {image.version} in {image.binary.parent}"


def _table(kernels: Iterable[AvailableKernel]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 1))
    table.add_column(no_wrap=True, overflow="fold")
    for kernel in kernels:
        state = f"fetched, {_mb(kernel.disk_bytes)}" if kernel.cached else f"{_mb(kernel.download_bytes)} to fetch"
        name = "" if kernel.spec.endswith(":" + kernel.release) else kernel.release
        table.add_row(kernel.spec, name, state, style=None if kernel.cached else "dim")
    return table


def _fields(kernel: AvailableKernel) -> tuple[str, ...]:
    """For other programs: what to type, release, scheduler, file of the granularity, fetched or not, bytes."""
    size_bytes = kernel.disk_bytes if kernel.cached else kernel.download_bytes
    fetched = "fetched" if kernel.cached else "available"
    return (kernel.spec, kernel.release, kernel.scheduler, kernel.granularity, fetched, str(size_bytes))


def _built_table(kernels: Iterable[BuiltKernel]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 1))
    table.add_column(no_wrap=True, overflow="fold")
    for kernel in kernels:
        made = kernel.provenance
        asked = [made.config, *(f"{name}={value}" for name, value in made.settings.items())]
        asked += [patch.name for patch in made.patches]
        table.add_row(
            kernel.image.spec, visible_line(made.source), visible_line(" ".join(asked)), _mb(kernel.size_bytes)
        )
    return table


def _built_fields(kernel: BuiltKernel) -> tuple[str, ...]:
    """As ``_fields``, where there is something to say."""
    return (kernel.image.spec, kernel.image.release, "", "", "built", str(kernel.size_bytes))


def _mb(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:.0f} MB"
