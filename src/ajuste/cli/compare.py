"""``ajuste compare``: the question on the command line."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from ajuste.catalogue.loader import catalogue
from ajuste.cli import options
from ajuste.cli.choice import built_for, built_for_profiles, chosen_cluster, kernels_of_source, placed, savable
from ajuste.cli.measuring import Showing, check_report, means_of_boots, measure, unless_going_on
from ajuste.cli.options import example, option
from ajuste.cli.showing import command_line
from ajuste.kernel.spec import parse_spec
from ajuste.machine.home import home
from ajuste.run.testbed import RunOptions
from ajuste.study.command_line.condition import fail_conditions
from ajuste.study.command_line.guards import fleet_plan
from ajuste.study.command_line.request import Request, split_commands
from ajuste.study.command_line.study import adhoc_document, adhoc_study, study_without_profiles
from ajuste.study.overrides import with_kernels

if TYPE_CHECKING:
    from ajuste.profile.placing import Placed

Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="COMMAND [ARGUMENT]... [-- COMMAND ...]",
        help="The command to measure: a program with arguments (run without a shell), or a workload of the catalogue. "
        "Separate several with --; each is compared with the first.",
        show_default=False,
    ),
]


@example(
    "ajuste compare -- sleep 0.01",
    "ajuste compare -- sleep 0.01 -- sleep 0.02",
    "ajuste compare --nice 0,10 --background spin --max-time 5s -- linpack reps_to=8",
    "ajuste compare --kernel debian:5.10 --nice 0,10 --background spin -- matrix size=100 repetitions=2",
    "ajuste compare --boot mitigations=default,off --reboots --dry-run -- hackbench groups=2",
    "ajuste compare --kernel build:debian:6.1,build:debian:6.1+NUMA=n --dry-run -- hackbench groups=2",
    "ajuste compare --screen --dry-run --nice 0,5 --set workload.mode=processes,threads --set workload.fds=4,8 "
    "--set workload.loops=10,20 --set workload.size=100,1000 -- hackbench",
)
def compare(
    words: Words = None,
    set_: options.SetLevels = None,
    profile: Annotated[
        str | None,
        option(
            "Compare profiles with current settings: tuned:NAME, sysctl:FILE or a path.",
            "PROFILE,...",
            "--profile",
            panel=options.SETTINGS,
        ),
    ] = None,
    nice: options.Nice = None,
    policy: options.PolicyLevels = None,
    cpus: options.CpuLevels = None,
    cgroup_weight: options.CgroupWeight = None,
    boot: options.BootWords = None,
    boot_kernel: options.BootKernels = None,
    reboots: options.Reboots = False,
    reboot_each: options.RebootEach = None,
    loader: options.Loader = None,
    kernel: options.KernelLevels = None,
    source: options.SourceOfKernels = None,
    patch: options.Patches = None,
    kernel_option: options.KernelOptions = None,
    vm: options.Vm = False,
    clock: options.Clock = None,
    memory: options.Memory = None,
    machine: options.Machine = None,
    topology: options.Topology = None,
    one_at_a_time: options.OneAtATime = False,
    screen: Annotated[
        bool, option("Find which of many settings matter, from few combinations.", None, "--screen", panel=options.RARE)
    ] = False,
    baseline: options.Baseline = None,
    background: Annotated[
        list[str] | None,
        option("Run this background load: a command, or spin (repeatable).", "COMMAND", panel=options.COMMAND),
    ] = None,
    service: Annotated[
        list[str] | None,
        option(
            "Start this server before each run, and stop it after; {port} is a free port (repeatable).",
            "COMMAND",
            panel=options.COMMAND,
        ),
    ] = None,
    ready: Annotated[
        list[str] | None,
        option(
            "When the --service before it is ready: port (default with {port}), port:N, socket:PATH, log:PATTERN, "
            "command:COMMAND or none (repeatable).",
            "WHEN",
            panel=options.COMMAND,
        ),
    ] = None,
    setup: options.Setup = None,
    prepare: options.Prepare = None,
    cleanup: options.Cleanup = None,
    file: options.Files = None,
    package: options.Packages = None,
    metric: Annotated[
        list[str] | None,
        option(
            "Metric that decides: a known one, or one read from the output, such as NAME,UNIT,lower=regex:PATTERN or "
            "NAME,higher=json:/POINTER (repeatable).",
            "METRIC",
            panel=options.VERDICT,
        ),
    ] = None,
    min_effect: options.MinEffect = None,
    precision: options.Precision = None,
    confidence: options.Confidence = None,
    max_time: Annotated[
        str | None, option("Stop after this time, decided or not (default: 5m).", "DURATION", panel=options.VERDICT)
    ] = None,
    blocks: options.Blocks = None,
    warm_up: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Number of warm-up blocks, which do not count (default: 1, in a guest 0).",
            show_default=False,
            rich_help_panel=options.RARE,
        ),
    ] = None,
    timeout: options.Timeout = None,
    seed: options.SeedOfOrder = None,
    name: Annotated[
        str | None, option("Name for `ajuste report` (default: compare).", "NAME", panel=options.OUTPUT)
    ] = None,
    as_root: options.AsRoot = False,
    ignore_failure: options.IgnoreFailure = False,
    keep_output: options.KeepOutput = False,
    workers: options.Workers = None,
    cluster: options.ClusterAddress = None,
    cluster_keys: options.ClusterKeys = None,
    insecure: options.Insecure = False,
    canary: options.Canary = None,
    machine_each: options.MachineEach = None,
    guard: options.Guards = None,
    accept_risk: options.AcceptRisk = False,
    wait: options.Wait = None,
    fail_on: options.FailOn = None,
    save: options.Save = None,
    dry_run: options.DryRun = False,
    fresh: options.Fresh = False,
    report: options.Report = None,
    open_: options.Open = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    as_json: options.Json = False,
) -> int:
    """Measure a command, or compare commands or settings.

    Measures in randomised blocks until the answer is known, then restores all settings.
    """
    kernel, kernel_said = kernels_of_source(source, patch or (), kernel_option or (), kernel)
    request = Request(
        commands=split_commands(tuple(words or ())),
        set=tuple(set_ or ()),
        profile=profile,
        nice=nice,
        policy=policy,
        cpus=cpus,
        cgroup_weight=cgroup_weight,
        boot=tuple(boot or ()),
        boot_kernel=boot_kernel,
        reboots=reboots,
        reboot_each=reboot_each,
        kernel=kernel,
        kernel_said=kernel_said,
        vm=vm,
        clock=clock,
        memory=memory,
        machine=machine,
        topology=topology,
        one_at_a_time=one_at_a_time,
        screen=screen,
        baseline=tuple(baseline or ()),
        background=tuple(background or ()),
        service=tuple(service or ()),
        ready=tuple(ready or ()),
        setup=setup,
        prepare=prepare,
        cleanup=cleanup,
        file=tuple(file or ()),
        package=tuple(package or ()),
        metric=tuple(metric or ()),
        min_effect=min_effect,
        precision=precision,
        confidence=confidence,
        max_time=max_time,
        blocks=blocks,
        warm_up=warm_up,
        timeout=timeout,
        seed=seed,
        name=name,
        as_root=as_root,
        ignore_failure=ignore_failure,
        keep_output=keep_output,
    )
    check_report(report)
    if save is not None:
        from ajuste.cli.saving import check_save, save_study

        check_save(save)
    known = catalogue()
    means = RunOptions(home(), jobs=workers, accept_risk=accept_risk, wait_s=options.wait_seconds(wait))
    silent = as_json or quiet
    typed, names = request, dict[str, str]()
    profiles: tuple[Placed, ...] = ()
    if profile:
        bare, specs = study_without_profiles(request, known, parse_kernel=parse_spec), profile.split(",")
        chosen_cluster(bare, cluster, workers, keys=cluster_keys, insecure=insecure)
        names = built_for_profiles(specs, bare, known, means, dry_run=dry_run, quiet=silent)
        request = request.with_kernels(names)
        target = with_kernels(bare, names).target
        profiles = placed(specs, target, known, means, tell=not (silent or dry_run))
    study = adhoc_study(request, known, profiles, parse_kernel=parse_spec)
    conditions = fail_conditions(fail_on or (), study, known)
    means = replace(means, cluster=chosen_cluster(study, cluster, workers, keys=cluster_keys, insecure=insecure))
    plan = fleet_plan(canary, machine_each, guard or (), study, known, on_cluster=means.cluster is not None)
    means = replace(means, fleet=plan)
    if not dry_run:
        built = built_for(study, known, means, quiet=silent)
        if built:
            names |= built
            request = request.with_kernels(names)
            study = adhoc_study(request, known, profiles, parse_kernel=parse_spec)
    command = command_line()
    if save is not None:
        save_study(adhoc_document(savable(typed, names), known, profiles)[0], save, command)
    if dry_run:
        from ajuste.cli.plan import show_plan

        show_plan(study, known, means, as_json=as_json)
        return 0

    return measure(
        study,
        known,
        Showing(report, quiet, as_json, verbose, open_),
        named=command,
        means=means_of_boots(means, loader, reboots=reboots),
        fresh=unless_going_on(fresh),
        name_chosen=name is not None,
        fail_on=conditions,
    )
