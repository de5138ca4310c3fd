"""``ajuste ablate``: which lines of a profile matter for a workload."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from ajuste.catalogue.loader import Catalogue, catalogue
from ajuste.cli import options
from ajuste.cli.choice import Choices, Machines, built_for_profiles, chosen_study, placed
from ajuste.cli.measuring import check_report, measure
from ajuste.cli.options import Only, example, option, spread
from ajuste.cli.plan import show_plan
from ajuste.cli.saving import check_save, save_study
from ajuste.cli.showing import Showing, command_line
from ajuste.kernel.spec import parse_spec
from ajuste.model.error import RequestError
from ajuste.run.experiment import resolved_study, unless_going_on
from ajuste.run.relevance import idle_from_the_start
from ajuste.run.testbed import RunOptions
from ajuste.study.check import check
from ajuste.study.command_line.option import Option
from ajuste.study.command_line.request import CommandLine, Request, split_commands
from ajuste.study.command_line.study import adhoc_document, study_without_profiles
from ajuste.study.overrides import with_kernels, with_machine
from ajuste.study.problem import error
from ajuste.study.profile import Placed
from ajuste.study.read import checked_study
from ajuste.study.schema import Study
from ajuste_search.ablation.study import ablation_document, ablation_study, line_names

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
@spread
def ablate(
    context: typer.Context,
    words: Words = None,
    study: Annotated[
        str | None, option("Measure the workload of this study instead of a command.", "STUDY", "--study")
    ] = None,
    *,
    request: Annotated[
        Request,
        Only(
            "vm clock memory machine setup prepare cleanup file min_effect confidence timeout seed as_root "
            "ignore_failure keep_output",
            profile=Option("tuned:NAME, tuned@SUITE:NAME, sysctl:FILE or a path.", "PROFILE"),
            kernel=Option("Run in a guest with this kernel, named as for `ajuste compare`.", "KERNEL"),
            background=Option("Run this command in the background (repeatable).", "COMMAND"),
            metric=Option("Metric that decides, as for `ajuste compare` (repeatable).", "METRIC"),
            max_time=Option("Stop after this time, decided or not (default: 30m).", "DURATION"),
            blocks=Option("Number of blocks; each block has all configurations.", "N or MIN..MAX"),
            name=Option("Name for `ajuste report` (default: ablate).", "NAME"),
        ),
    ],
    machines: Machines,
    save: options.Save = None,
    force: options.Force = False,
    dry_run: options.DryRun = False,
    fresh: options.Fresh = False,
    showing: Showing,
) -> None:
    """Find which lines of a profile matter for a command, and how much each contributes.

    Each line is tried alone, as the only one left out, and on the way from nothing to the whole profile, in randomised
    blocks until every line is decided: helps, harms, useless, or depends on the others.
    """
    if (profile := request.profile) is None:
        raise RequestError("--profile is required", hint="give one, such as --profile tuned:throughput-performance")
    check_report(showing.report)
    check_save(save)
    known, run_options, name_chosen = catalogue(), machines.run_options(), request.name is not None and study is None
    request = replace(
        request,
        commands=split_commands(tuple(words or ())),
        max_time=request.max_time or "30m",
        name=NAME if request.name is None else request.name,
    )
    command = command_line(context)
    bare = _without_profile(request, study, known, save)
    cluster = machines.cluster_for(bare)
    names = built_for_profiles([profile], bare, known, run_options, dry_run=dry_run, quiet=showing.silent)
    bare, request = with_kernels(bare, names), request.with_kernels(names)
    (placement,) = placed([profile], bare.target, known, run_options, tell=not (showing.silent or dry_run))
    chosen = _of_command(request, placement, known) if study is None else _of_study(bare, placement, known)
    run_options = replace(run_options, cluster=cluster)
    if idle := _idle(chosen, known, run_options):
        placement = placement.without(idle, line_names(placement.settings))
        chosen = _of_command(request, placement, known) if study is None else _of_study(bare, placement, known)
    if save is not None:
        save_study(_document(request, placement, known)[0], save, command, force=force)
    if dry_run:
        show_plan(chosen, known, run_options, as_json=showing.as_json)
        return

    measure(
        chosen,
        known,
        showing,
        named=command,
        run_options=run_options,
        anew=unless_going_on(fresh),
        name_chosen=name_chosen,
    )


def _idle(chosen: Study, known: Catalogue, run_options: RunOptions) -> dict[str, str]:
    # Reasons why lines cannot matter on the target, by line, known before anything is measured.
    if run_options.cluster is not None:
        return {}
    idle_lines = idle_from_the_start(resolved_study(chosen, known, run_options), known)
    return {line.factor: f"cannot matter here: {line.saw}" for line in idle_lines if not line.hardly}


def _without_profile(request: Request, study: str | None, known: Catalogue, save: Path | None) -> Study:
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
    chosen = chosen_study(study, known, Choices(request.kernel, request.seed))
    return with_machine(chosen, request.machine, known) if request.machine else chosen


def _of_command(request: Request, placement: Placed, known: Catalogue) -> Study:
    document, origin = _document(request, placement, known)
    return checked_study(document, origin, known, parse_kernel=parse_spec)


def _document(request: Request, placement: Placed, known: Catalogue) -> tuple[dict[str, Any], CommandLine]:
    document, origin = adhoc_document(request, known, (placement,))
    if not request.metric:  # The workload's own metric, or the modelled time, says enough; each takes more blocks.
        metrics = document["analysis"]["metrics"]
        document["analysis"]["metrics"] = metrics[-1:] if request.machine else metrics[:1]
    origin = CommandLine({**origin.options, ("factor",): f"--profile {request.profile}"}, command="ajuste ablate")
    return ablation_document(document, placement), origin


def _of_study(study: Study, placement: Placed, known: Catalogue) -> Study:
    apart = ablation_study(study, placement)
    if problems := check(apart, known, parse_spec):
        raise error(problems, study.source)
    return apart
