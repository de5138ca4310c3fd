"""``ajuste ablate``: which lines of a profile matter for a workload."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import typer

from ajuste.catalogue.loader import Catalogue, catalogue
from ajuste.cli import options
from ajuste.cli.choice import built_for_profiles, chosen_cluster, chosen_study, placed
from ajuste.cli.measuring import Showing, check_report, measure, unless_going_on
from ajuste.cli.options import example, option
from ajuste.cli.plan import show_plan
from ajuste.cli.saving import check_save, save_study
from ajuste.cli.showing import command_line
from ajuste.kernel.spec import parse_spec
from ajuste.machine.home import home
from ajuste.model.error import RequestError
from ajuste.profile.placing import Placed
from ajuste.run.experiment import resolved_study
from ajuste.run.relevance import idle_from_the_start
from ajuste.run.testbed import RunOptions
from ajuste.study.check import check
from ajuste.study.command_line.factors import ablation_document, ablation_study, line_names
from ajuste.study.command_line.request import CommandLine, Request, split_commands
from ajuste.study.command_line.study import adhoc_document, study_without_profiles
from ajuste.study.overrides import with_kernels, with_machine
from ajuste.study.problem import error
from ajuste.study.read import checked_study
from ajuste.study.schema import Study

NAME: Final = "ablate"


Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="COMMAND [ARGUMENT]...",
        help="The command to measure: a program with arguments (run without a shell), or a workload of the catalogue.",
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
        str | None, option("Measure the workload of this study instead of a command.", "STUDY", "--study")
    ] = None,
    kernel: Annotated[
        str | None, option("Run in a guest with this kernel, named as for `ajuste compare`.", "KERNEL")
    ] = None,
    vm: options.Vm = False,
    clock: options.Clock = None,
    memory: options.Memory = None,
    machine: options.Machine = None,
    background: Annotated[
        list[str] | None, option("Run this command in the background (repeatable).", "COMMAND")
    ] = None,
    setup: options.Setup = None,
    prepare: options.Prepare = None,
    cleanup: options.Cleanup = None,
    file: options.Files = None,
    metric: Annotated[
        list[str] | None, option("Metric that decides, as for `ajuste compare` (repeatable).", "METRIC")
    ] = None,
    min_effect: options.MinEffect = None,
    confidence: options.Confidence = None,
    max_time: Annotated[str | None, option("Stop after this time, decided or not (default: 30m).", "DURATION")] = None,
    blocks: Annotated[
        str | None, option("Number of blocks; each block has all configurations.", "N or MIN..MAX")
    ] = None,
    timeout: options.Timeout = None,
    seed: options.SeedOfOrder = None,
    name: Annotated[str | None, option("Name for `ajuste report` (default: ablate).", "NAME")] = None,
    as_root: options.AsRoot = False,
    ignore_failure: options.IgnoreFailure = False,
    keep_output: options.KeepOutput = False,
    accept_risk: options.AcceptRisk = False,
    wait: options.Wait = None,
    save: options.Save = None,
    dry_run: options.DryRun = False,
    fresh: options.Fresh = False,
    report: options.Report = None,
    open_: options.Open = False,
    workers: options.Workers = None,
    cluster: options.ClusterAddress = None,
    cluster_keys: options.ClusterKeys = None,
    insecure: options.Insecure = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    as_json: options.Json = False,
) -> None:
    """Find which lines of a profile matter for a command, and how much each contributes.

    Each line is tried alone, as the only one left out, and on the way from nothing to the whole profile, in randomised
    blocks until every line is decided: helps, harms, useless, or depends on the others.
    """
    if profile is None:
        raise RequestError("--profile is required", hint="give one, such as --profile tuned:throughput-performance")
    check_report(report)
    check_save(save)
    known = catalogue()
    means = RunOptions(home(), jobs=workers, accept_risk=accept_risk, wait_s=options.wait_seconds(wait))
    request = Request(
        commands=split_commands(tuple(words or ())),
        profile=profile,
        kernel=kernel,
        vm=vm,
        clock=clock,
        memory=memory,
        machine=machine,
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
        keep_output=keep_output,
    )
    command = command_line()
    silent = as_json or quiet
    bare = _without_profile(request, study, known, save)
    found_cluster = chosen_cluster(bare, cluster, workers, keys=cluster_keys, insecure=insecure)
    names = built_for_profiles([profile], bare, known, means, dry_run=dry_run, quiet=silent)
    bare, request = with_kernels(bare, names), request.with_kernels(names)
    (found,) = placed([profile], bare.target, known, means, tell=not (silent or dry_run))
    chosen = _of_command(request, found, known, save, command) if study is None else _of_study(bare, found, known)
    means = replace(means, cluster=found_cluster)
    if idle := _idle(chosen, known, means):
        found = found.without(idle, line_names(found.settings))
        chosen = _of_command(request, found, known, save, command) if study is None else _of_study(bare, found, known)
    if dry_run:
        show_plan(chosen, known, means, as_json=as_json)
        return

    measure(
        chosen,
        known,
        Showing(report, quiet, as_json, verbose, open_),
        named=command,
        means=means,
        fresh=unless_going_on(fresh),
        name_chosen=name is not None and study is None,
    )


def _idle(chosen: Study, known: Catalogue, means: RunOptions) -> dict[str, str]:
    """Why lines cannot matter on the target, as far as that is known before anything is measured: by their names."""
    if means.cluster is not None:
        return {}
    found = idle_from_the_start(resolved_study(chosen, known, means), known)
    return {one.factor: f"cannot matter here: {one.saw}" for one in found if not one.hardly}


def _without_profile(request: Request, study: str | None, known: Catalogue, save: Path | None) -> Study:
    """What the profile is tried on: a study of that name, or the command. Raises RequestError."""
    if study is None:
        if len(request.commands) > 1:
            raise RequestError(
                "found several commands; expected one", hint="use ajuste compare to measure several commands"
            )
        return study_without_profiles(request, known, parse_kernel=parse_spec)
    if any(request.commands) or save:
        raise RequestError(
            "--study conflicts with COMMAND and --save: the study has its own command",
            hint="remove the command and --save, or remove --study",
        )
    found = chosen_study(study, known, request.kernel, request.seed)
    return with_machine(found, request.machine, known) if request.machine else found


def _of_command(request: Request, found: Placed, known: Catalogue, save: Path | None, command: str) -> Study:
    document, origin = adhoc_document(request, known, (found,))
    if not request.metric:  # The workload's own metric, or the modelled time, says enough; each takes more blocks.
        metrics = document["analysis"]["metrics"]
        document["analysis"]["metrics"] = metrics[-1:] if request.machine else metrics[:1]
    apart = ablation_document(document, found)
    if save is not None:
        save_study(apart, save, command)
    origin = CommandLine({**origin.options, ("factor",): f"--profile {request.profile}"})
    return checked_study(apart, origin, known, parse_kernel=parse_spec)


def _of_study(study: Study, found: Placed, known: Catalogue) -> Study:
    apart = ablation_study(study, found)
    if problems := check(apart, known, parse_spec):
        raise error(problems, study.source)
    return apart
