"""``ajuste kernel prove``: what a running kernel has, with evidence."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from ajuste.cli.options import Json, example
from ajuste.cli.showing import telling
from ajuste.machine.home import home
from ajuste.model.kernel import Proof, Shown
from ajuste.model.wording import visible_line
from ajuste.report.console import Console
from ajuste.report.sheet import sheet


@example("ajuste kernel prove debian:6.1 numa kyber no-sched_ext")
def prove_kernel(
    kernel: Annotated[str, typer.Argument(metavar="KERNEL", help="debian:6.1, path:VMLINUZ,modules=DIR, …")],
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
    from ajuste.kernel.fetch import fetch_kernel
    from ajuste.run.proofs.prove import prove
    from ajuste.run.proofs.registry import parse_claims

    claimed = parse_claims(claims or ())
    place, say = home(), telling()
    proof = prove(fetch_kernel(kernel, place, say=say), claimed, place, say, tuple(arguments or ()))
    if as_json:
        print(json.dumps({**proof.model_dump(mode="json"), "holds": not proof.broken}, indent=2, ensure_ascii=False))
    else:
        print_proof(proof, Console())
    if proof.broken:
        raise typer.Exit(1)


# How ``ajuste kernel prove`` looks on a terminal.


def print_proof(proof: Proof, console: Console) -> None:
    """A line for each feature, below it what was seen and the options of the kernel's configuration."""
    with sheet(console) as out:
        out.heading(f"{visible_line(proof.kernel)}: {visible_line(proof.release)}")
        out.say(visible_line(proof.build), style="dim")
        for shown in proof.features:
            out.blank()
            out.table(_table(shown), indent=0)


def _table(shown: Shown) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(min_width=12, no_wrap=True)
    table.add_column(overflow="fold")
    state = Text(shown.state, style="bold" if shown.present else "bold yellow")
    table.add_row(Text(shown.feature, style="bold"), state + Text(f"  {shown.title}", style="dim"))
    if shown.claim:
        words = "holds" if shown.holds else "does NOT hold"
        table.add_row(Text(""), Text(f"claimed: {shown.claim}; it {words}", style="green" if shown.holds else "red"))
    for sight in shown.evidence:
        table.add_row(Text(""), Text(f"{sight.what}: ", style="dim") + Text(visible_line(sight.found)))
    options = "  ".join(f"{name}={value}" for name, value in shown.options.items())
    table.add_row(Text(""), Text(f"configuration: {options}", style="dim"))
    return table
