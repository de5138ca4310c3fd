"""``ajuste kernel prove``: what a running kernel has, with evidence."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated

import typer

from ajuste.cli.options import Json, example
from ajuste.cli.showing import telling
from ajuste.kernel.spec import specs_to_build
from ajuste.machine.home import home
from ajuste.model.kernel import Proof, Shown
from ajuste.report.console import Console
from ajuste.report.document import Fact, Facts, Paragraph, Report, Section
from ajuste.report.progress import BuildProgress
from ajuste.report.terminal import print_report


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
    from ajuste.kernel.building.specified import build_specified
    from ajuste.kernel.fetch import fetch_kernel
    from ajuste.run.proofs.prove import prove
    from ajuste.run.proofs.registry import parse_claims

    claimed = parse_claims(claims or ())
    place, say = home(), telling()
    if specs_to_build([kernel]):
        with BuildProgress() as progress:
            kernel = build_specified([kernel], place, progress)[kernel].image.spec
    proof = prove(fetch_kernel(kernel, place, say=say), claimed, place, say, tuple(arguments or ()))
    if as_json:
        print(json.dumps({**proof.model_dump(mode="json"), "holds": not proof.broken}, indent=2, ensure_ascii=False))
    else:
        print_report(proof_report(proof), Console())
    if proof.broken:
        raise typer.Exit(1)


# A proof as a report.


def proof_report(proof: Proof) -> Report:
    """For each feature whether it is there, what was seen, and the options of the kernel's configuration."""
    parts = tuple(Section(shown.feature, (Facts(tuple(_facts(shown))),)) for shown in proof.features)
    headline = f"{proof.kernel}: {proof.release}"
    return Report(headline, headline, parts, lead=(Paragraph(proof.build, "dim"),))


def _facts(shown: Shown) -> Iterator[Fact]:
    yield Fact("seen", shown.state, shown.title, tone="bold" if shown.present else "warning")
    if shown.claim:
        words = "holds" if shown.holds else "does NOT hold"
        yield Fact("claimed", f"{shown.claim}; it {words}", tone="good" if shown.holds else "bad")
    yield from (Fact(sight.what, sight.found) for sight in shown.evidence)
    yield Fact("configuration", "  ".join(f"{name}={value}" for name, value in shown.options.items()), tone="dim")
