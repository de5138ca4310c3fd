"""``ajuste live``: an experiment on a running service, under its real load."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ajuste.cli import options
from ajuste.cli.command_line import Commands
from ajuste.cli.options import Only, example, examples, option, spread
from ajuste.cli.showing import Showing, command_line
from ajuste.machine.home import WATCH, Home, as_root, home, native_program
from ajuste.model.error import AjusteError, RequestError, RunError
from ajuste.model.wording import Say, block_name, count_of, visible_line
from ajuste.report.console import Console
from ajuste.study.command_line.option import Option
from ajuste.study.command_line.request import Request
from ajuste_live.request import LiveRequest

if TYPE_CHECKING:
    from ajuste.model.live import LiveDesign
    from ajuste.run.testbed import Experiment
    from ajuste.store.store import Run, Store
    from ajuste_live.adoption import AdoptionWish
    from ajuste_live.prediction import SlicesPrediction
    from ajuste_live.state import LiveState

_STOP_SECONDS = 20.0

RunName = Annotated[
    str | None, typer.Argument(metavar="[RUN]", help="A run (default: the latest live experiment).", show_default=False)
]


@spread
def live(
    context: typer.Context,
    *,
    live_request: LiveRequest,
    request: Annotated[
        Request,
        Only(
            "set baseline one_at_a_time min_effect confidence seed",
            name=Option("Name for `ajuste report` (default: live).", "NAME"),
        ),
    ],
    keep_winner: Annotated[
        Path | None,
        option(
            "At the end, write the proved winner to this directory, for sysctl.d; with --adopt, its files for the "
            "boot.",
            "DIRECTORY",
        ),
    ] = None,
    adopt: Annotated[
        bool,
        option("At the end, leave the proved winner in force, also at boot (see --probation).", None, "--adopt"),
    ] = False,
    probation: Annotated[
        str | None,
        option("With --adopt, check the guards under the winner for so long first (default: 10m).", "DURATION"),
    ] = None,
    install: Annotated[bool, option("Run as a systemd service that survives log-out and crash.", None, "--install")] = (
        False
    ),
    resume_after_reboot: Annotated[
        bool, option("Resume after a reboot of the machine.", None, "--resume-after-reboot")
    ] = False,
    accept_risk: options.AcceptRisk = False,
    wait: options.Wait = None,
    dry_run: options.DryRun = False,
    fresh: options.Fresh = False,
    showing: Showing,
) -> int:
    """Compare settings under the real load of a running service."""
    if context.invoked_subcommand is not None:
        return 0
    if len(sys.argv) <= 2 and not request.set:
        print(context.get_help())
        return 0
    from ajuste.catalogue.loader import catalogue
    from ajuste.cli.measuring import check_report
    from ajuste.report.console import Activity
    from ajuste.run.outcome import results_of
    from ajuste.store.store import Store
    from ajuste_live.experiment import LiveOptions, conduct_live, prepare_live, require_free
    from ajuste_live.request import live_design, live_study
    from ajuste_live.unit import PATIENCE_SECONDS, install_unit, is_unit, leave_unit, require_systemd

    check_report(showing.report)
    wait_s = options.wait_seconds(wait)
    if keep_winner is not None and not keep_winner.is_dir():
        raise RequestError(f"--keep-winner {keep_winner}: expected an existing directory")
    place, known = home(), catalogue()
    activity = Activity(log=True, quiet=showing.silent)
    activity.beat_s = None  # Each block has a line.
    design = live_design(live_request).model_copy(update={"stays": adopt})
    study = live_study(request, design, known, str(native_program(WATCH)), live_request.service)
    wanted = LiveOptions(
        place,
        accept_risk=accept_risk,
        say=activity.say,
        fresh=fresh,
        goes_on_after_boot=resume_after_reboot,
        wait_s=wait_s,
        dry=dry_run,
        patience_s=PATIENCE_SECONDS if is_unit(os.environ) else 0.0,
        adopt=_adoption_wish(adopt, probation, keep_winner, design),
    )
    experiment = prepare_live(study, design, known, wanted)
    if install and not dry_run:
        require_systemd()
    if dry_run or install:
        predicted, warnings = _predictions(experiment, place, activity.say if install else lambda _: None)
    if dry_run:
        _show_plan(experiment, design, predicted, warnings, wanted.adopt, as_json=showing.as_json)
        return 0
    if install:
        require_free(place, wait_s=wait_s, say=activity.say)
        unit = install_unit(_installed_command(), study.name, place, os.environ)
        _print("\n".join(prediction.words for prediction in predicted))
        typer.echo(f"started {unit}; see ajuste live status, end it with ajuste live stop")
        return 0
    with Store(place.store_url) as store:
        with activity:
            done = conduct_live(experiment, store, wanted, named=command_line(context))
        leave_unit(os.environ)
        results = results_of(done, store)
    showing.show(results)
    if keep_winner is not None and not adopt:
        _keep(done.id, keep_winner, as_json=showing.as_json)
    _require_success(done, as_json=showing.as_json)
    return 0


def _require_success(done: Run, *, as_json: bool) -> None:
    from ajuste_live.experiment import adoption_of_run

    adopted = adoption_of_run(done)
    if adopted is not None and not adopted.failed and not as_json:
        _print(visible_line(adopted.words))
    failure = f"the experiment ended: {done.stopped_because}" if done.stopped == "failed" else ""
    if adopted is not None and adopted.failed:
        failure = adopted.words
    if failure:
        raise RunError(failure, hint=f"ajuste report {done.id} shows it")


app = Commands(
    invoke_without_command=True,
    callback=live,
    help=examples(
        "Compare settings under the real load of a running service.\n\nEach slice of time has one configuration, in "
        "random order. Guards are checked every second; a breach restores the old values at once.",
        "ajuste live --set vm.dirty_background_ratio=10,2 --slice 60s --metric 'dirty,B,lower=proc:meminfo.Dirty' "
        "--dry-run",
    ),
)


@app.command("status")
@example("ajuste live status")
def status(as_json: options.Json = False) -> None:
    """Show what the live experiment does now, what is known so far, and which winners were adopted."""
    from ajuste.executor.host.adoption import adoptions
    from ajuste_live.state import kept_state

    state = kept_state(home())
    adopted = adoptions()
    if state is None and not adopted:
        raise RequestError("no live experiment found", hint="start one with ajuste live --set …")
    if as_json:
        document = state.model_dump(exclude={"boot", "started_ticks"}) if state else {}
        document["going_on"] = state is not None and state.is_alive
        run = None if state is None else _run_of(state)
        document["stopped"] = run.stopped if run else ""
        document["adopted"] = [adoption.as_json() for adoption in adopted]
        typer.echo(json.dumps(document, indent=2))
        return
    if state is not None:
        _print(_status_line(state) if state.is_alive else _end_line(state))
        if state.said:
            _print(visible_line(state.said))
        if state.is_alive and state.predicted:
            _print(visible_line(state.predicted))
    for adoption in adopted:
        _print(visible_line(str(adoption)))


def _print(text: str) -> None:
    console = Console()
    console.print(text, soft_wrap=not console.is_terminal)


def _end_line(state: LiveState) -> str:
    run = _run_of(state)
    name = f"run {state.run} ({visible_line(state.study)})"
    if run is None:
        return f"{name}: ended after {count_of(state.slices, 'slice')}"
    if run.stopped:
        return f"{name}: finished: {visible_line(run.stopped_because)}; see ajuste live result"
    again = as_root(shlex.split(run.named)[1:])
    return f"{name}: interrupted after {count_of(state.slices, 'slice')}; resume with {visible_line(again)}"


def _run_of(state: LiveState) -> Run | None:
    # None after its run was deleted, or with another store.
    from ajuste.store.store import Store

    with suppress(AjusteError), Store(home().store_url) as store:
        return store.find_run(state.run)
    return None


def _status_line(state: LiveState) -> str:
    from ajuste_live.state import ON_PROBATION

    count = count_of(state.slices, "slice")
    count += f" ({state.predicted_slices:,} predicted)" if state.predicted_slices else ""
    now = f"trying {visible_line(state.configuration)}" if state.configuration else "nothing is changed now"
    if state.configuration and state.doing == ON_PROBATION:
        now = f"{visible_line(state.configuration)} is on probation"
    waits = f", {visible_line(state.doing)}" if state.doing and not state.configuration else ""
    return f"run {state.run} ({visible_line(state.study)}): {count}, {block_name(state.block)}; {now}{waits}"


@app.command("stop")
@example("ajuste live stop")
def stop() -> None:
    """End the live experiment: restore the old values and give the verdict so far."""
    from ajuste_live.experiment import require_free
    from ajuste_live.state import ask_to_stop, kept_state
    from ajuste_live.unit import is_installed, remove_unit, systemctl, unit_name

    place = home()
    state = kept_state(place)
    if state is not None and not state.is_alive and is_installed(state.study):
        systemctl("stop", unit_name(state.study))
        remove_unit(state.study)
        require_free(place)
        typer.echo(f"{unit_name(state.study)}, which was waiting to go on, is removed. See ajuste live result")
        return
    if state is None or not state.is_alive:
        raise RequestError("no live experiment is running", hint="see the last one with ajuste live result")
    ask_to_stop(place, state.run)
    deadline = time.monotonic() + _STOP_SECONDS
    while state.is_alive and time.monotonic() < deadline:
        time.sleep(0.1)
    if state.is_alive:
        raise RunError(f"run {state.run} did not end within {_STOP_SECONDS:.0f} s", hint="ajuste live status shows it")
    _print(f"run {state.run} ended; the old values are restored. See ajuste live result")


@app.command("result")
@example("ajuste live result")
def result(
    run: RunName = None, report: options.Report = None, verbose: options.Verbose = False, as_json: options.Json = False
) -> None:
    """Show the verdicts so far, also while the experiment goes on."""
    from ajuste.run.outcome import results_of
    from ajuste.store.store import Store

    place = home()
    with Store(place.store_url) as store:
        results = results_of(_live_run(store, place, run), store)
    Showing(report, verbose=verbose, as_json=as_json).show(results)


def _live_run(store: Store, place: Home, named: str | None) -> Run:
    from ajuste_live.state import kept_state

    if named is not None:
        return store.find_run(named)
    with suppress(RequestError):
        if (state := kept_state(place)) is not None:
            return store.find_run(state.run)
    raise RequestError("no live experiment found", hint="list all runs with ajuste report")


def _predictions(experiment: Experiment, place: Home, say: Say) -> tuple[tuple[SlicesPrediction, ...], dict[str, str]]:
    # With the warnings of metrics by name. Opening the sources also proves that every metric can be read now.
    from ajuste.machine.inventory.inventory import summarise, take_inventory
    from ajuste.store.store import Store
    from ajuste_live.prediction import known_before, predictions
    from ajuste_live.sources import opened

    resolved, machine = experiment.resolved, summarise(take_inventory())
    with opened(resolved.live_design, say=say) as sources, Store(place.store_url) as store:
        warnings = {name: source.warning for name, source in sources.items() if source.warning}
        return predictions(resolved, known_before(resolved, sources, store, machine)), warnings


def _adoption_wish(
    adopt: bool, probation: str | None, directory: Path | None, design: LiveDesign
) -> AdoptionWish | None:
    from ajuste.model.capability import asked_here
    from ajuste.study.command_line.request import seconds
    from ajuste_live.adoption import AdoptionWish

    if not adopt and probation is not None:
        raise RequestError("--probation requires --adopt", hint="add --adopt")
    if not adopt:
        return None
    asked_here().require("adoption", "--adopt")
    if not design.guards:
        raise RequestError(
            "--adopt requires a guard: what must hold while the winner is on probation?",
            hint="add --guard 'METRIC < LIMIT'",
        )
    if design.order != "random":
        raise RequestError(
            f"--adopt conflicts with --order {design.order}: only the random order tests whether an effect stays",
            hint="remove --order",
        )
    return AdoptionWish(seconds("--probation", probation or "10m"), directory)


def _show_plan(
    experiment: Experiment,
    design: LiveDesign,
    predicted: Sequence[SlicesPrediction],
    warnings: Mapping[str, str],
    adopt: AdoptionWish | None,
    *,
    as_json: bool,
) -> None:
    from ajuste.executor.host.adoption import adopted_from
    from ajuste.model.live import duration
    from ajuste.model.plan import location_words
    from ajuste_live.adoption import places_at_boot
    from ajuste_stats.switchback.design import STAY

    if as_json:
        document: dict[str, object] = {
            "study": experiment.resolved.study.name,
            "metrics": {metric.metric.name: f"{metric.kind}:{metric.where}" for metric in design.all_metrics},
            "guards": [guard.text for guard in design.guards],
            "slice_s": design.slice_s,
            "for_s": design.for_s,
            "warnings": dict(warnings),
            "predicted": [prediction.as_json() for prediction in predicted],
            "configurations": [
                {
                    "configuration": resolved.configuration.name,
                    "writes": [
                        {"tunable": write.tunable, "value": write.value, "where": location_words(write.location)}
                        for write in resolved.writes
                    ],
                }
                for resolved in experiment.resolved.configurations
            ],
        }
        if adopt is not None:
            boot = sorted(places_at_boot(experiment.resolved, adopt))
            document["adopt"] = {"probation_s": adopt.probation_s, "boot": boot, "stay_slices": STAY}
        typer.echo(json.dumps(document, indent=2))
        return
    slices = int(design.for_s // design.slice_s)
    typer.echo(f"Up to {slices} slices of {design.slice_s:g} s, each under one of:")
    for resolved in experiment.resolved.configurations:
        for write in resolved.writes:
            typer.echo(
                f"  {visible_line(resolved.configuration.name)}: {write.value} into {location_words(write.location)}"
            )
    typer.echo("Metrics:" if warnings else "Metrics, all of which can be read now:")
    for metric in design.all_metrics:
        warning = warnings.get(metric.metric.name)
        words = f"{metric.kind}:{metric.where}{f' ({warning})' if warning else ''}"
        typer.echo(f"  {metric.metric.name}: {visible_line(words)}")
    for guard in design.guards:
        typer.echo(f"Guard: {visible_line(guard.text)}; a breach restores the old values at once")
    if adopt is not None:
        typer.echo(
            f"Once one improves, blocks of stays follow: each configuration for {STAY} slices in a row, in random "
            f"order. Only what improves there, too, is proved."
        )
        places = " and ".join(sorted(places_at_boot(experiment.resolved, adopt))) or "no file"
        typer.echo(
            f"A proved winner stays in force if it keeps the guards for {duration(adopt.probation_s)} more; "
            f"{'its files for the boot are' if adopt.directory else 'at boot it would be set by'} "
            f"{visible_line(places)}"
        )
    for adoption in adopted_from(write.location for write in experiment.resolved.writes):
        typer.echo(visible_line(str(adoption)))
    for prediction in predicted:
        _print(prediction.words)
    typer.echo("Nothing was changed.")


def _installed_command() -> list[str]:
    program = shutil.which(sys.argv[0]) or sys.argv[0]
    return [str(Path(program).absolute()), *(word for word in sys.argv[1:] if word != "--install")]


def _keep(run: str, directory: Path, *, as_json: bool) -> None:
    from ajuste_profiles.commands.export import write_winner

    try:
        written = write_winner(run, directory)
    except RequestError as failure:
        typer.echo(f"no winner is kept: {failure.message}", err=True)
        return
    if not as_json:
        typer.echo(f"the winner is in {', '.join(map(str, written))}; apply it now with sysctl --system")
