"""``ajuste run``: carry out a study, to a verdict and a report."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ajuste.catalogue.loader import catalogue
from ajuste.cli import options
from ajuste.cli.choice import chosen_cluster, chosen_study, require_disk_wanted
from ajuste.cli.measuring import Expected, Showing, check_report, means_of_boots, measure
from ajuste.cli.options import example, option
from ajuste.executor.host.prepared import disk_for_run
from ajuste.kernel.spec import is_to_build
from ajuste.machine.home import home
from ajuste.model.capability import Asked
from ajuste.model.error import Place, RequestError
from ajuste.report.display import Activity
from ajuste.run.testbed import RunOptions
from ajuste.study.command_line.condition import fail_conditions
from ajuste.study.command_line.guards import fleet_plan
from ajuste.study.command_line.request import block_range, seconds
from ajuste.study.job import DiskTable
from ajuste.study.overrides import (
    with_blocks,
    with_boots,
    with_machine,
    with_packages,
    with_precision,
    with_time,
    with_topology,
)
from ajuste.study.schema import Study

if TYPE_CHECKING:
    from ajuste.report.expected import Form


@example(
    "ajuste run granularity",
    "ajuste run my-study.toml --seed 7 --report report.html",
    "ajuste run my-study.toml --set sched_min_granularity_ns=3ms,30ms",
)
def run(
    study: options.StudyName,
    kernel: options.Kernel = None,
    seed: options.Seed = None,
    target: options.Target = None,
    set_: options.FactorLevels = None,
    parameter: options.Parameter = None,
    without: options.Without = None,
    machine: options.Machine = None,
    topology: options.Topology = None,
    package: options.Packages = None,
    blocks: options.Blocks = None,
    max_time: Annotated[
        str | None, option("Stop after this time, decided or not.", "DURATION", panel=options.VERDICT)
    ] = None,
    precision: options.Precision = None,
    disk: options.Disk = None,
    reboots: options.Reboots = False,
    reboot_each: options.RebootEach = None,
    loader: options.Loader = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Measure again; do not use the store's run.", rich_help_panel=options.OUTPUT)
    ] = False,
    report: options.Report = None,
    open_: options.Open = False,
    snapshot: Annotated[
        bool,
        typer.Option(help="Start every trial from one snapshot, or boot for each trial.", rich_help_panel=options.RARE),
    ] = True,
    workers: options.Workers = None,
    cluster: options.ClusterAddress = None,
    cluster_keys: options.ClusterKeys = None,
    insecure: options.Insecure = False,
    canary: options.Canary = None,
    machine_each: options.MachineEach = None,
    guard: options.Guards = None,
    accept_risk: options.AcceptRisk = False,
    build: Annotated[
        bool,
        typer.Option(
            "--build",
            help="Allow STUDY to build patches and BPF schedulers on this machine: read it first.",
            rich_help_panel=options.RARE,
        ),
    ] = False,
    scheduler: Annotated[
        list[Path] | None,
        option("Use this program of a BPF scheduler, such as build/scx_mine (repeatable).", "FILE", panel=options.RARE),
    ] = None,
    wait: options.Wait = None,
    fail_on: options.FailOn = None,
    junit: Annotated[
        Path | None, option("Write what the study expects as tests in JUnit XML.", "FILE", panel=options.RARE)
    ] = None,
    tap: Annotated[Path | None, option("... as TAP 14.", "FILE", panel=options.RARE)] = None,
    ktap: Annotated[Path | None, option("... as KTAP, as Linux's own tests.", "FILE", panel=options.RARE)] = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    as_json: options.Json = False,
) -> int:
    """Run STUDY to a verdict and a report.

    Boots its kernel, measures in randomised blocks, and stops when the answer is known.

    All measurements are kept. Run the same command again to resume, or to show a finished run.
    """
    check_report(report)
    forms: dict[Form, Path | None] = {"junit": junit, "tap": tap, "ktap": ktap}
    tests = {form: path for form, path in forms.items() if path is not None}
    for form, path in tests.items():
        check_report(path, f"--{form}")
    known = catalogue()
    given = {
        "--kernel": _several(kernel),
        "--set": set_,
        "--parameter": parameter,
        "--without": without,
        "--machine": [machine] if machine is not None else None,
        "--topology": [topology] if topology is not None else None,
        "--package": package,
        "--precision": [precision] if precision is not None else None,
        "--blocks": [blocks] if blocks is not None else None,
        "--max-time": [max_time] if max_time is not None else None,
        "--reboot-each": [str(reboot_each)] if reboot_each is not None else None,
    }
    with ExitStack() as stack:

        def opened(table: DiskTable) -> str:
            return stack.enter_context(disk_for_run(disk, table.size_mib, accept_risk=accept_risk))

        asked = Asked("study file", options=frozenset({"--build"} if build else ()))
        chosen = chosen_study(study, known, kernel, seed, target, parameter, opened, without, set_, asked)
        require_disk_wanted(chosen, disk)
        if machine is not None:
            chosen = with_machine(chosen, machine, known)
        if package:
            chosen = with_packages(chosen, package)
        if topology is not None:
            chosen = with_topology(chosen, topology, known)
        if precision is not None:
            chosen = with_precision(chosen, precision)
        if blocks is not None:
            chosen = with_blocks(chosen, *block_range("--blocks", blocks))
        if max_time is not None:
            chosen = with_time(chosen, seconds("--max-time", max_time))
        if reboots or reboot_each is not None:
            chosen = with_boots(chosen, reboot_each)
        place = chosen_cluster(chosen, cluster, workers, keys=cluster_keys, insecure=insecure)
        changed = any(given.values()) or (kernel, seed, target) != (None, None, None)
        notes: tuple[str, ...] = ()
        if chosen.schedulers or scheduler:
            from ajuste.run.contained import with_schedulers  # few studies contain any

            with Activity(quiet=quiet or as_json) as activity:
                found = with_schedulers(chosen, home(), asked, activity.say, scheduler or ())
            chosen, notes = found.study, found.notes
        expected = _expected(chosen, tests, changed=changed, notes=notes)
        chosen = chosen.model_copy(update={"expect": None})  # It is no part of the question.
        return measure(
            chosen,
            known,
            Showing(report, quiet, as_json, verbose, open_),
            named=_named(study, given),
            means=means_of_boots(
                RunOptions(
                    home(),
                    jobs=workers,
                    snapshot=snapshot,
                    accept_risk=accept_risk,
                    wait_s=options.wait_seconds(wait),
                    cluster=place,
                    fleet=fleet_plan(canary, machine_each, guard or (), chosen, known, on_cluster=place is not None),
                ),
                loader,
                reboots=reboots,
            ),
            fresh=lambda *_: fresh,
            fail_on=fail_conditions(fail_on or (), chosen, known),
            expected=expected,
        )


def _several(kernel: str | None) -> list[str] | None:
    """Kernels that the study says by no more than their names: several, and those to be built."""
    return [kernel] if kernel is not None and ("," in kernel or is_to_build(kernel)) else None


def _named(study: str, given: Mapping[str, list[str] | None]) -> str:
    """How the study was named, with what was said about it, quoted for a shell."""
    return shlex.join(
        [study, *(word for option, texts in given.items() for text in texts or () for word in (option, text))]
    )


def _expected(study: Study, tests: Mapping[Form, Path], *, changed: bool, notes: tuple[str, ...]) -> Expected | None:
    """What ``study`` expects, and the files for it. Raises RequestError for files without anything to put into them."""
    if study.expect is None:
        if tests:
            form, path = next(iter(tests.items()))
            raise RequestError(
                "the study expects nothing: [expect] not found",
                hint="write one with ajuste reproduce RUN -o FILE",
                place=Place(f"--{form} {path}"),
            )
        return None
    return Expected(study.name, study.expect, tests, changed=changed, notes=notes)
