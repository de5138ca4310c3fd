"""``ajuste kernel prove``: what a running kernel has, with evidence."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from ajuste.cli.example import example
from ajuste.cli.options import Json
from ajuste.cli.proof_sheet import print_proof
from ajuste.cli.telling import telling
from ajuste.home import home
from ajuste.report.visible import Console


@example("ajuste kernel prove debian:6.1 numa kyber no-sched_ext")
def prove_kernel(
    kernel: Annotated[str, typer.Argument(metavar="KERNEL", help="debian:6.1, path:VMLINUZ,modules=DIR, …")],
    claims: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FEATURE…]",
            help="numa, mptcp, kyber, bfq, preempt, rt, hz, autogroup, sched_ext, cgroup2, psi; no-numa to prove that "
            "it is absent, hz=250 or preempt=voluntary for a value. All that can be told if none is named.",
        ),
    ] = None,
    arguments: Annotated[
        list[str] | None,
        typer.Option("--argument", metavar="WORD", help="A word for the kernel's command line (repeatable)."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Boot a kernel and show what it has: evidence from the running kernel, with its configuration beside it.

    Exit code 1 if something that was named is not so.
    """
    from ajuste.kernel.fetch import fetch_kernel
    from ajuste.kernel.prove.prove import prove
    from ajuste.kernel.prove.registry import parse_claims

    claimed = parse_claims(claims or ())
    place, say = home(), telling()
    proof = prove(fetch_kernel(kernel, place, say=say), claimed, place, say, tuple(arguments or ()))
    if as_json:
        print(json.dumps({**proof.model_dump(mode="json"), "holds": not proof.broken}, indent=2, ensure_ascii=False))
    else:
        print_proof(proof, Console())
    if proof.broken:
        raise typer.Exit(1)
