"""``ajuste ablate``: which lines of a profile matter for a workload."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import typer

from ajuste.catalogue.loader import Catalogue, catalogue
from ajuste.cli.choice import chosen_cluster, chosen_study, placed
from ajuste.cli.example import example
from ajuste.cli.job_options import (
    AsRoot,
    Cleanup,
    Clock,
    Confidence,
    DryRun,
    Files,
    Fresh,
    IgnoreFailure,
    Memory,
    MinEffect,
    Prepare,
    Report,
    Save,
    SeedOfOrder,
    Setup,
    Timeout,
    Vm,
    option,
)
from ajuste.cli.measuring import Showing, check_report, measure, unless_going_on
from ajuste.cli.options import AcceptRisk, ClusterAddress, ClusterKeys, Insecure, Jobs, Json, Quiet, Verbose, Workers
from ajuste.cli.plan import show_plan
from ajuste.cli.saving import save_study
from ajuste.cli.showing import command_line
from ajuste.kernel.spec import parse_spec
from ajuste.machine.home import home
from ajuste.model.error import RequestError
from ajuste.run.experiment import RunOptions
from ajuste.study.check import check
from ajuste.study.command_line.ablation import ablation_document, ablation_study
from ajuste.study.command_line.request import CommandLine, Request, split_commands
from ajuste.study.command_line.study import adhoc_document, profile_target
from ajuste.study.problem import error
from ajuste.study.read import checked_study
from ajuste.study.schema import Study

NAME: Final = "ablate"


Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="COMMAND [ARGUMENT]...",
        help="What is measured: a program with its arguments (no shell reads them), or a workload of the catalogue.",
        show_default=False,
    ),
]


@example(
    "ajuste ablate --profile tuned:throughput-performance --kernel debian:5.10 --dry-run -- hackbench groups=2",
    "ajuste ablate --profile sysctl:local.conf --dry-run -- ./job",
)
def ablate(
    words: Words = None,
    profile: Annotated[
        str | None, option("tuned:NAME, tuned@SUITE:NAME, sysctl:FILE or a path.", "PROFILE", "--profile")
    ] = None,
    study: Annotated[
        str | None, option("Measure what this study measures, instead of a command.", "STUDY", "--study")
    ] = None,
    kernel: Annotated[str | None, option("The kernel of a guest to run it in.", "KERNEL")] = None,
    vm: Vm = False,
    clock: Clock = None,
    memory: Memory = None,
    background: Annotated[list[str] | None, option("A load beside it (repeatable).", "COMMAND")] = None,
    setup: Setup = None,
    prepare: Prepare = None,
    cleanup: Cleanup = None,
    file: Files = None,
    metric: Annotated[list[str] | None, option("What decides, as for `ajuste compare` (repeatable).", "METRIC")] = None,
    min_effect: MinEffect = None,
    confidence: Confidence = None,
    max_time: Annotated[str | None, option("Stop then, decided or not; 30m.", "DURATION")] = None,
    blocks: Annotated[str | None, option("Blocks; each has all that is compared.", "N or MIN..MAX")] = None,
    timeout: Timeout = None,
    seed: SeedOfOrder = None,
    name: Annotated[str | None, option("What `ajuste report` will know it by; ablate.", "NAME")] = None,
    as_root: AsRoot = False,
    ignore_failure: IgnoreFailure = False,
    accept_risk: AcceptRisk = False,
    save: Save = None,
    dry_run: DryRun = False,
    fresh: Fresh = False,
    report: Report = None,
    jobs: Jobs = None,
    workers: Workers = None,
    cluster: ClusterAddress = None,
    cluster_keys: ClusterKeys = None,
    insecure: Insecure = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Find out which lines of a profile matter for a command, and share out what the whole does among them.

    Each line is tried alone, as the only one left out, and on the way from nothing to the whole profile, in randomised
    blocks until every line is decided: helps, harms, useless, or depends on the others.
    """
    if profile is None:
        raise RequestError("which profile?", hint="--profile tuned:throughput-performance, for example")
    check_report(report)
    known = catalogue()
    means = RunOptions(home(), jobs=jobs, accept_risk=accept_risk)
    request = Request(
        commands=split_commands(tuple(words or ())),
        profile=profile,
        kernel=kernel,
        vm=vm,
        clock=clock,
        memory=memory,
        background=tuple(background or ()),
        setup=setup,
        prepare=prepare,
        cleanup=cleanup,
        file=tuple(file or ()),
        metric=tuple(metric or ()),
        min_effect=min_effect,
        confidence=confidence,
        max_time=max_time or "30m",
        blocks=blocks,
        timeout=timeout,
        seed=seed,
        name=name or NAME,
        as_root=as_root,
        ignore_failure=ignore_failure,
    )
    command = command_line()
    tell = not (as_json or dry_run or quiet)
    if study is not None:
        if words or save:
            raise RequestError("--study brings its own command", hint="leave out the command and --save")
        chosen = _of_study(chosen_study(study, known, kernel, seed), profile, known, means, tell=tell)
    else:
        chosen = _of_command(request, known, means, save, command, tell=tell)
    means = replace(means, cluster=chosen_cluster(chosen, cluster, workers, jobs, keys=cluster_keys, insecure=insecure))
    if dry_run:
        show_plan(chosen, known, means, as_json=as_json)
        return

    measure(
        chosen,
        known,
        Showing(report, quiet, as_json, verbose),
        named=command,
        means=means,
        fresh=unless_going_on(fresh),
    )


def _of_command(
    request: Request, known: Catalogue, means: RunOptions, save: Path | None, command: str, *, tell: bool
) -> Study:
    if len(request.commands) > 1:
        raise RequestError("an ablation is of one command", hint="ajuste compare measures several")
    (found,) = placed([request.profile or ""], profile_target(request, known), known, means, tell=tell)
    document, origin = adhoc_document(request, known, (found,))
    if not request.metric:  # The workload's own metric says enough; each more takes more blocks.
        document["analysis"]["metrics"] = document["analysis"]["metrics"][:1]
    apart = ablation_document(document, found)
    if save is not None:
        save_study(apart, save, command)
    origin = CommandLine({**origin.said, ("factor",): f"--profile {request.profile}"})
    return checked_study(apart, origin, known, parse_kernel=parse_spec)


def _of_study(study: Study, profile: str, known: Catalogue, means: RunOptions, *, tell: bool) -> Study:
    (found,) = placed([profile], study.target, known, means, tell=tell)
    apart = ablation_study(study, found)
    if problems := check(apart, known, parse_spec):
        raise error(problems, study.source)
    return apart
