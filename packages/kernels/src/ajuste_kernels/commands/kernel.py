"""``ajuste kernel``: which kernels there are, fetching them, and building them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from ajuste.cli.command_line import Commands
from ajuste.cli.options import Json, Quiet, example, examples, help_if_alone
from ajuste.kernel.spec import BUILT, parse_spec, specs_to_build
from ajuste.machine.home import home
from ajuste.model.kernel import KernelImage, Proof, ShownFeature
from ajuste.model.wording import visible_line
from ajuste.report.console import Activity, Console
from ajuste.report.document import Fact, Facts, Paragraph, Report, Section
from ajuste.report.format import duration
from ajuste.report.progress import BuildProgress
from ajuste.report.terminal import print_report
from ajuste_guest.kernel.fetch import AvailableKernel, available_kernels, fetch_kernel
from ajuste_guest.kernel.qemu import QemuImage, cached_qemu, fetch_qemu
from ajuste_kernels.building.build import BuildRequest, build_kernel
from ajuste_kernels.building.built import BuiltKernel, built_kernels, remove_built
from ajuste_kernels.commands.bisect import bisect
from ajuste_kernels.commands.diff import diff

# ``ajuste kernel build`` and ``remove``: your own kernels.


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
    console = Console()
    console.print(f"{kernel.image.spec}: {_summary(kernel)}", soft_wrap=not console.is_terminal)
    console.print(f"  in {kernel.directory}", soft_wrap=True)
    for note in kernel.provenance.notes:
        console.print(f"  {visible_line(note)}", soft_wrap=not console.is_terminal)


@example("ajuste kernel remove non-numa")
def remove(
    names: Annotated[list[str], typer.Argument(metavar="NAME…", help="Names of built kernels, with or without mine:.")],
) -> None:
    """Remove built kernels. Compiled objects are kept for the next build."""
    for name in names:
        remove_built(name.removeprefix(f"{BUILT}:"), home())


def described(kernel: BuiltKernel) -> dict[str, object]:
    """Return a built kernel as a JSON object."""
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
        f"{made.compiled:,} objects compiled in {duration(made.seconds)}"
    )


# ``ajuste kernel prove``: what a running kernel has, with evidence.


@example("ajuste kernel prove debian:6.1 numa kyber no-sched_ext")
def prove_kernel(
    kernel: Annotated[
        str,
        typer.Argument(
            metavar="KERNEL", help="debian:6.1, mine:NAME, build:debian:6.1+NUMA=n, path:VMLINUZ,modules=DIR, …"
        ),
    ],
    claims: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FEATURE…]",
            help="numa, mptcp, kyber, bfq, preempt, rt, hz, autogroup, sched_ext, cgroup2, psi; no-numa to prove that "
            "it is absent, hz=250 or preempt=voluntary for a value. Default: all.",
        ),
    ] = None,
    arguments: Annotated[
        list[str] | None,
        typer.Option("--argument", metavar="WORD", help="Add a word to the kernel's command line (repeatable)."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Boot a kernel and prove its features: evidence from the running kernel, beside its configuration.

    Exit code 1 if a named feature does not hold.
    """
    from ajuste_guest.kernel.fetch import fetch_kernel
    from ajuste_guest.proofs.prove import parse_claims, prove
    from ajuste_kernels.building.build import build_specified

    claimed = parse_claims(claims or ())
    place = home()
    if specs_to_build([kernel]):
        with BuildProgress() as progress:
            kernel = build_specified([kernel], place, progress)[kernel].image.spec
    with Activity(log=True) as activity:
        say = activity.say
        proof = prove(fetch_kernel(kernel, place, say=say), claimed, place, say, tuple(arguments or ()))
    if as_json:
        print(json.dumps({**proof.model_dump(mode="json"), "holds": not proof.broken}, indent=2, ensure_ascii=False))
    else:
        print_report(proof_report(proof), Console())
    if proof.broken:
        raise typer.Exit(1)


# A proof as a report.


def proof_report(proof: Proof) -> Report:
    """Return the report of a proof: each feature with its state, its evidence, and the configuration's options."""
    parts = tuple(Section(feature.feature, (Facts(tuple(_facts(feature))),)) for feature in proof.features)
    headline = f"{proof.kernel}: {proof.release}"
    return Report(headline, headline, parts, lead=(Paragraph(proof.build, "dim"),))


def _facts(feature: ShownFeature) -> Iterator[Fact]:
    yield Fact("seen", feature.state, feature.title, tone="bold" if feature.present else "warning")
    if feature.claim:
        words = "holds" if feature.holds else "does NOT hold"
        yield Fact("claimed", f"{feature.claim}; it {words}", tone="good" if feature.holds else "bad")
    yield from (Fact(sight.what, sight.found) for sight in feature.evidence)
    yield Fact("configuration", "  ".join(f"{name}={value}" for name, value in feature.options.items()), tone="dim")


QEMU = "qemu"

app = Commands(
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
    with Activity(log=True) as activity:
        kernels = available_kernels(place, activity.say, every=every, refresh=refresh)
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
            # Columns for other programs; their order is an interface.
            size_bytes = kernel.disk_bytes if kernel.cached else kernel.download_bytes
            fetched = "fetched" if kernel.cached else "available"
            columns = (kernel.spec, kernel.release, kernel.scheduler, kernel.granularity, fetched, str(size_bytes))
            print("\t".join(columns))
        for built in mine:
            print("\t".join((built.image.spec, built.image.release, "", "", "built", str(built.size_bytes))))
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
        with Activity(log=True) as activity:
            image: KernelImage | QemuImage
            if spec == QEMU:
                image = fetch_qemu(home(), activity.say, refresh=refresh)
                where = f"QEMU {image.version} in {image.binary.parent}"
            else:
                image = fetch_kernel(spec, home(), say=activity.say, refresh=refresh, thoroughly=True)
                where = f"{image.release} in {image.vmlinuz.parent}"
        fetched.append({"spec": spec, **image.model_dump(mode="json")})
        if not as_json:
            print(f"{spec}: {where}")
    if as_json:
        print(json.dumps({"fetched": fetched}, indent=2))


def _table(kernels: Iterable[AvailableKernel]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 1))
    table.add_column(no_wrap=True, overflow="fold")
    for kernel in kernels:
        state = f"fetched, {_mb(kernel.disk_bytes)}" if kernel.cached else f"{_mb(kernel.download_bytes)} to fetch"
        name = "" if kernel.spec.endswith(":" + kernel.release) else kernel.release
        table.add_row(kernel.spec, name, state, style=None if kernel.cached else "dim")
    return table


def _built_table(kernels: Iterable[BuiltKernel]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 1))
    table.add_column(no_wrap=True, overflow="fold")
    for kernel in kernels:
        made = kernel.provenance
        recipe = [made.config, *(f"{name}={value}" for name, value in made.settings.items())]
        recipe += [patch.name for patch in made.patches]
        table.add_row(
            kernel.image.spec, visible_line(made.source), visible_line(" ".join(recipe)), _mb(kernel.size_bytes)
        )
    return table


def _mb(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:.0f} MB"
