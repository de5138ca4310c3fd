from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ajuste.catalogue.loader import Catalogue
from ajuste.catalogue.loader import catalogue as load_catalogue
from ajuste.kernel.spec import parse_spec
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelVersion
from ajuste.model.plan import Attributes, FileLocation, Flag, User
from ajuste.study.command_line.request import Request
from ajuste.study.command_line.study import adhoc_study
from ajuste.study.resolve import HOST_KERNEL, resolve
from ajuste.study.resolved import Load, ResolvedStudy, fingerprint
from ajuste.study.schema import Study
from ajuste.study.site import GUEST_HOME, GUEST_USER, Site

KERNELS = {
    "debian:5.10": KernelVersion(major=5, minor=10),
    "debian:6.1": KernelVersion(major=6, minor=1),
    "debian:6.12": KernelVersion(major=6, minor=12),
}
Resolve = Callable[..., ResolvedStudy]


@pytest.fixture
def resolved(read: Callable[..., Study], catalogue: Catalogue) -> Resolve:
    def resolving(*parts: Any, programs: tuple[str, ...] = ("hackbench", "dd")) -> ResolvedStudy:
        paths = {name: f"/usr/bin/{name}" for name in programs}
        return resolve(read(*parts), catalogue, KERNELS, lambda name: paths.get(name))

    return resolving


KERNEL = 'kernel = "debian:5.10"'
WITH_SUCCESSOR = ("7500000]", "7500000]\nsuccessor = true")


@pytest.mark.parametrize(
    ("kernel", "path"),
    [
        ("debian:5.10", "/proc/sys/kernel/sched_min_granularity_ns"),
        ("debian:6.1", "/sys/kernel/debug/sched/min_granularity_ns"),
    ],
)
def test_a_tunable_is_written_where_that_kernel_has_it(resolved: Resolve, kernel: str, path: str) -> None:
    study = resolved((KERNEL, f'kernel = "{kernel}"'))
    assert [c.writes[0].location for c in study.configurations] == [FileLocation(path=path)] * 2
    assert [c.writes[0].value for c in study.configurations] == ["750000", "7500000"]
    assert [c.configuration.baseline for c in study.configurations] == [True, False]
    assert study.names == ("sched_min_granularity_ns=750000", "sched_min_granularity_ns=7500000")
    assert {c.kernel for c in study.configurations} == {kernel}


def test_a_flag_is_written_as_a_flag(resolved: Resolve) -> None:
    study = resolved(("sched_min_granularity_ns", "sched_feat_hrtick"), ("[750000, 7500000]", "[false, true]"))
    assert study.configurations[1].writes[0].location == Flag(path="/sys/kernel/debug/sched_features", name="HRTICK")
    assert [c.writes[0].value for c in study.configurations] == ["0", "1"]


def test_a_kernel_without_the_tunable_is_refused_with_those_that_have_it_and_the_successor(resolved: Resolve) -> None:
    with pytest.raises(RequestError) as caught:
        resolved((KERNEL, 'kernel = "debian:6.12"'))
    error = caught.value
    assert "sched_min_granularity_ns is not supported by Linux 6.12" in error.message
    assert "up to 6.5" in error.message
    assert error.hint is not None
    assert "base_slice_ns, a related but different tunable" in error.hint
    assert "successor = true" in error.hint
    assert error.place is not None
    assert error.place.line == 5


def test_a_successor_is_varied_only_when_asked_and_named_as_such_everywhere(resolved: Resolve) -> None:
    study = resolved((KERNEL, 'kernel = "debian:6.12"'), WITH_SUCCESSOR)
    assert study.names == ("base_slice_ns=750000", "base_slice_ns=7500000")
    assert study.factors[0].name == "base_slice_ns"
    assert study.configurations[0].configuration.levels == {"base_slice_ns": "750000"}
    assert study.configurations[0].writes[0].tunable == "base_slice_ns"
    assert [e.name for e in study.explained] == ["base_slice_ns"]
    assert "successor of sched_min_granularity_ns" in study.explained[0].note
    assert len(study.notes) == 1
    assert "successor base_slice_ns, a related but different tunable" in study.notes[0]


def test_a_successor_changes_nothing_where_it_is_not_needed(resolved: Resolve) -> None:
    assert resolved(WITH_SUCCESSOR).notes == ()
    assert resolved(WITH_SUCCESSOR).configurations == resolved().configurations


def test_levels_are_checked_against_the_successor_too(resolved: Resolve) -> None:
    with pytest.raises(RequestError, match=r"base_slice_ns = 750000000 is out of range") as caught:
        resolved((KERNEL, 'kernel = "debian:6.12"'), WITH_SUCCESSOR, ("7500000]", "750000000]"))
    assert caught.value.place is not None
    assert caught.value.place.field == "factor[1].levels[2]"


def test_kernels_as_factor_use_the_knob_of_each(resolved: Resolve) -> None:
    study = resolved(
        (KERNEL, ""),
        (
            "7500000]",
            '7500000]\nsuccessor = true\n[[factor]]\nname = "kernel"\nlevels = ["debian:5.10", "debian:6.12"]',
        ),
    )
    assert study.names == (
        "sched_min_granularity_ns=750000 kernel=debian:5.10",
        "base_slice_ns=750000 kernel=debian:6.12",
        "sched_min_granularity_ns=7500000 kernel=debian:5.10",
        "base_slice_ns=7500000 kernel=debian:6.12",
    )
    assert [f.name for f in study.factors] == ["sched_min_granularity_ns/base_slice_ns", "kernel"]
    assert all(set(c.configuration.levels) == {f.name for f in study.factors} for c in study.configurations)
    assert [c.kernel for c in study.configurations] == ["debian:5.10", "debian:6.12"] * 2
    assert [c.writes[0].tunable for c in study.configurations] == ["sched_min_granularity_ns", "base_slice_ns"] * 2


def test_attributes_and_parameters_vary_the_workload_and_only_it(resolved: Resolve) -> None:
    study = resolved(
        ("sched_min_granularity_ns", "nice"),
        ("[750000, 7500000]", '[0, 4]\nbaseline = 4\n[[factor]]\nname = "workload.size"\nlevels = [10, 20]'),
        (
            'kind = "matrix"',
            'kind = "matrix"\nparameters.repetitions = 3\nattributes.policy = "batch"\n'
            '[[workload.background]]\nkind = "spin"\ncount = 2\nattributes.nice = 9',
        ),
    )
    assert [c.workload.argv[1:] for c in study.configurations[:2]] == [
        ("matrix", "--size", "10", "--repetitions=3"),
        ("matrix", "--size", "20", "--repetitions=3"),
    ]
    assert [c.workload.attributes for c in study.configurations[1:3]] == [
        Attributes(nice=0, policy="batch"),
        Attributes(nice=4, policy="batch"),
    ]
    assert [c.configuration.baseline for c in study.configurations] == [False, False, True, False]
    assert study.names[2] == "nice=4 workload.size=10"
    assert all(c.background == study.configurations[0].background for c in study.configurations)
    assert len(study.configurations[0].background) == 2
    assert study.configurations[0].background[0].attributes == Attributes(nice=9)
    assert study.configurations[0].loads == (Load(number=1, endless=True),) * 2
    assert all(c.writes == () for c in study.configurations)


def test_a_priority_goes_with_the_real_time_policies_only(resolved: Resolve) -> None:
    study = resolved(
        ("sched_min_granularity_ns", "policy"),
        ("[750000, 7500000]", '["other", "fifo", "rr"]'),
        ("[target]", 'attributes = { priority = 30, affinity = "0" }\n[target]'),
    )
    assert [c.workload.attributes for c in study.configurations] == [
        Attributes(policy="other", affinity=(0,)),
        Attributes(policy="fifo", priority=30, affinity=(0,)),
        Attributes(policy="rr", priority=30, affinity=(0,)),
    ]


def test_the_bundled_program_is_in_the_guest_and_others_are_taken_along(resolved: Resolve, tmp_path: Path) -> None:
    assert resolved().configurations[0].workload.argv[0] == "/ajuste/bin/ajuste-workloads"
    assert resolved().programs == ()
    study = resolved(('kind = "matrix"', 'kind = "hackbench"\nparameters.mode = "threads"\nprograms = ["dd"]'))
    assert study.configurations[0].workload.argv == ("/usr/bin/hackbench", "-T", "-g", "10")
    assert study.programs == ("/usr/bin/dd", "/usr/bin/hackbench")
    (tmp_path / "job").write_text("#!/bin/sh\n")
    (tmp_path / "data.txt").write_text("x")
    study = resolved(('kind = "matrix"', 'command = ["./job", "-x"]\nfiles = ["data.txt"]'))
    assert study.configurations[0].workload.argv == ("/study/job", "-x")
    assert study.configurations[0].workload.directory == "/study"
    assert study.files == {"data.txt": str(tmp_path / "data.txt"), "job": str(tmp_path / "job")}


def test_a_missing_program_is_named_with_its_package_and_line(resolved: Resolve) -> None:
    with pytest.raises(RequestError, match='"hackbench" not found') as caught:
        resolved(('kind = "matrix"', 'kind = "hackbench"'), programs=())
    assert caught.value.hint == "install it: apt install rt-tests"
    assert caught.value.place is not None
    assert caught.value.place.line == 9


def test_a_command_in_one_pair_of_quotes_is_no_program_to_install(resolved: Resolve) -> None:
    with pytest.raises(RequestError, match='program "sleep 1" not found') as caught:
        resolved(('kind = "matrix"', 'command = ["sleep 1"]'))
    assert caught.value.hint == "give the program and each argument as a word of its own, not quoted together"


def test_metrics_and_counters_follow_from_what_is_asked(resolved: Resolve) -> None:
    study = resolved(('metrics = ["elapsed"]', 'metrics = ["elapsed"]\ndescribe = ["task-clock"]'))
    assert [m.name for m in study.deciding] == ["elapsed"]
    assert [m.name for m in study.described] == ["task-clock"]
    assert study.counters == ("task-clock",)
    everything = resolved(('kind = "matrix"', 'kind = "hackbench"'))
    assert [m.name for m in everything.described] == ["hackbench.time", "task-clock", "involuntary-switches", "ipc"]
    assert set(everything.counters) == {"task-clock", "cycles", "instructions"}
    with_pattern = resolved(
        (
            'kind = "matrix"',
            'command = ["dd"]\n[[workload.metric]]\nname = "rate"\ndirection = "higher"\npattern = "(.)"',
        ),
        ('"elapsed"', '"rate"'),
    )
    assert (with_pattern.deciding[0].direction, with_pattern.deciding[0].title) == ("higher", "rate")
    assert with_pattern.patterns[0].metric == "rate"


def test_instructions_are_counted_where_a_study_names_them_and_the_lens_can_look(resolved: Resolve) -> None:
    plain = resolved()
    assert not plain.counts_instructions
    assert "user-instructions" not in {metric.name for metric in plain.described}
    counting = resolved(('metrics = ["elapsed"]', 'metrics = ["user-instructions"]'))
    assert counting.counts_instructions
    assert [metric.name for metric in counting.deciding] == ["user-instructions"]
    assert resolved(
        ('metrics = ["elapsed"]', 'metrics = ["elapsed"]\ndescribe = ["kernel-instructions"]')
    ).counts_instructions
    assert resolved(('metrics = ["elapsed"]', 'metrics = ["user-instructions@p95"]')).counts_instructions
    assert fingerprint(counting) != fingerprint(plain)


def test_a_fingerprint_covers_what_is_measured_and_nothing_else(resolved: Resolve) -> None:
    base = fingerprint(resolved())
    assert base == fingerprint(resolved())
    same = [
        ('name = "example"', 'name = "other"\ntitle = "T"\nquestion = "Q"'),
        ("[analysis]", "[budget]\nmax_blocks = 99\n[analysis]"),
        ("[analysis]", "[analysis]\nsmallest_effect = 0.5"),
    ]
    assert {fingerprint(resolved(part)) for part in same} == {base}
    different = [
        ("7500000]", "7500001]"),
        ("7500000]", "7500000]\nbaseline = 7500000"),
        (KERNEL, 'kernel = "debian:6.1"'),
        (KERNEL, KERNEL + "\nmemory_mib = 300"),
        ("[analysis]", "[design]\nseed = 2\n[analysis]"),
        ("[target]", "timeout_s = 2\n[target]"),
        ("[target]", "parameters.size = 3\n[target]"),
    ]
    assert len({base, *(fingerprint(resolved(part)) for part in different)}) == len(different) + 1
    assert fingerprint(resolved(), {"kernel": "x"}) != base


def test_too_many_configurations_are_refused(resolved: Resolve) -> None:
    levels = ", ".join(str(100_000 + n) for n in range(101))
    sizes = ", ".join(str(1 + n) for n in range(100))
    with pytest.raises(RequestError, match="10100 configurations"):
        resolved(("750000, 7500000]", f'{levels}]\n[[factor]]\nname = "workload.size"\nlevels = [{sizes}]'))


def test_a_resolved_study_survives_being_stored(resolved: Resolve) -> None:
    study = resolved(
        ('kind = "matrix"', 'kind = "hackbench"\nattributes = { affinity = "0", policy = "rr" }'),
        ("7500000]", '7500000]\n[[factor]]\nname = "sched_feat_hrtick"\nlevels = [false, true]'),
    )
    again = ResolvedStudy.model_validate_json(study.model_dump_json())
    assert again.model_dump() == study.model_dump()
    assert fingerprint(again) == fingerprint(study)


HOST = Site(
    bundled="/native/ajuste-workloads",
    directory="/home/ada/work",
    in_place=True,
    user=User(uid=1000, gid=1000, groups=(27, 1000)),
    cpus=frozenset({0, 1}),
)
ON_HOST = ('kernel = "debian:5.10"', 'kind = "host"')


@pytest.fixture
def on_host(read: Callable[..., Study], catalogue: Catalogue) -> Resolve:
    def resolving(*parts: Any) -> ResolvedStudy:
        study = read(ON_HOST, *parts)
        return resolve(study, catalogue, {HOST_KERNEL: KERNELS["debian:5.10"]}, lambda name: f"/opt/{name}", HOST)

    return resolving


def test_on_a_host_commands_are_their_callers_where_they_are(on_host: Resolve) -> None:
    bundled = on_host()
    command = on_host(('kind = "matrix"', 'command = ["job", "-x"]')).configurations[0].workload
    assert {c.kernel for c in bundled.configurations} == {HOST_KERNEL}
    assert bundled.configurations[0].workload.argv[0] == "/native/ajuste-workloads"
    assert (command.argv, command.directory, command.environment) == (("/opt/job", "-x"), "/home/ada/work", {})
    assert command.user == HOST.user


def test_on_a_host_the_studys_own_files_stay_beside_it(on_host: Resolve, tmp_path: Path) -> None:
    (tmp_path / "job.sh").write_text("#!/bin/sh\n")
    command = on_host(('kind = "matrix"', 'command = ["./job.sh"]')).configurations[0].workload
    assert (command.argv, command.directory) == ((str(tmp_path / "job.sh"),), str(tmp_path))


def test_only_a_study_that_says_so_runs_as_root(on_host: Resolve) -> None:
    configuration = on_host(('kind = "matrix"', 'kind = "matrix"\nas_root = true')).configurations[0]
    assert [c.user for c in (configuration.workload, *configuration.background)] == [None] * (
        1 + len(configuration.background)
    )


def test_in_a_guest_commands_are_an_ordinary_users_unless_the_study_says_so(resolved: Resolve) -> None:
    ordinary = resolved().configurations[0]
    assert {c.user for c in (ordinary.workload, *ordinary.background)} == {GUEST_USER}
    assert (ordinary.workload.directory, ordinary.workload.environment["HOME"]) == (GUEST_HOME, GUEST_HOME)
    root = resolved(('kind = "matrix"', 'kind = "matrix"\nas_root = true')).configurations[0]
    assert {c.user for c in (root.workload, *root.background)} == {None}


def test_a_cpu_that_the_host_does_not_offer_is_refused(on_host: Resolve) -> None:
    with pytest.raises(RequestError, match="CPU 2 is not available; expected CPUs among 0, 1"):
        on_host(('kind = "matrix"', 'kind = "matrix"\nattributes = { affinity = "1-3" }'))


def test_a_load_runs_only_with_the_levels_that_it_names(resolved: Resolve) -> None:
    study = resolved(
        ("sched_min_granularity_ns", "nice"),
        ("[750000, 7500000]", "[0, 4, 19]"),
        (
            'kind = "matrix"',
            'kind = "matrix"\n[[workload.background]]\nkind = "spin"\nwhen = { nice = 4 }\n'
            '[[workload.background]]\nkind = "matrix"\nwhen = { nice = [4, 19] }',
        ),
    )
    assert [[load.number for load in c.loads] for c in study.configurations] == [[], [1, 2], [2]]
    assert [len(c.background) for c in study.configurations] == [0, 2, 1]
    assert study.configurations[1].loads[0].endless
    assert not study.configurations[1].loads[1].endless


def test_a_quantile_of_a_metric_is_a_metric_and_needs_the_same_counters(resolved: Resolve) -> None:
    study = resolved(('metrics = ["elapsed"]', 'metrics = ["elapsed@p95", "task-clock@p50"]\ndescribe = ["elapsed"]'))
    assert [(m.name, m.column, m.quantile) for m in study.deciding] == [
        ("elapsed@p95", "elapsed", 0.95),
        ("task-clock@p50", "task-clock", 0.5),
    ]
    assert study.counters == ("task-clock",)
    assert [m.name for m in study.described] == ["elapsed"]


def test_levels_bring_the_modules_of_the_kernel_that_they_need() -> None:
    def brought(**options: Any) -> ResolvedStudy:
        request = Request((("true",),), kernel="debian:6.12", **options)
        study = adhoc_study(request, load_catalogue(), parse_kernel=parse_spec)
        return resolve(study, load_catalogue(), KERNELS, lambda name: f"/usr/bin/{name}")

    congestion = brought(set=("net.ipv4.tcp_congestion_control=cubic,bbr,dctcp", "net.core.default_qdisc=fq"))
    assert congestion.modules == ("sch_fq", "tcp_bbr", "tcp_dctcp")
    assert brought(set=("net.ipv4.tcp_congestion_control=reno,cubic",)).modules == ()
    assert brought(nice="0,5").modules == ()
    target = congestion.study.target.model_copy(update={"modules": ("tcp_bbr x=1",)})
    study = congestion.study.model_copy(update={"target": target})
    named = resolve(study, load_catalogue(), KERNELS, lambda name: f"/usr/bin/{name}")
    assert named.modules == ("sch_fq", "tcp_dctcp")
    assert fingerprint(congestion) != fingerprint(congestion.model_copy(update={"modules": ()}))


def test_file_systems_are_compared_from_the_command_line() -> None:
    def study_of(**options: Any) -> ResolvedStudy:
        study = adhoc_study(Request((("true",),), **options), load_catalogue(), parse_kernel=parse_spec)
        versions = KERNELS | {HOST_KERNEL: KernelVersion(major=6, minor=12)}
        return resolve(study, load_catalogue(), versions, lambda name: f"/sbin/{name}")

    here = study_of(scratch="ext4,xfs", scratch_size="1G")
    assert [c.scratch and (c.scratch.filesystem, c.scratch.size_bytes) for c in here.configurations] == [
        ("ext4", 1 << 30),
        ("xfs", 1 << 30),
    ]
    guest = study_of(scratch="btrfs,xfs", kernel="debian:6.12", scratch_size="1500MiB")
    assert guest.study.target.modules == ("null_blk gb=2 memory_backed=1",)
    assert set(guest.modules) == {"btrfs", "xfs"}
    assert {c.scratch.device for c in guest.configurations if c.scratch} == {"/dev/nullb0"}
    single = study_of(scratch="ext4", set=("fs.data=ordered,journal",))
    assert [factor.name for factor in single.factors] == ["fs.data"]
    with pytest.raises(RequestError, match="requires --scratch"):
        study_of(scratch_size="1G")
