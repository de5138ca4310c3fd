"""Factors that set several things, variants of the workload, and what runs before and after trials."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ajuste.catalogue.loader import Catalogue
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelVersion
from ajuste.model.plan import Attributes
from ajuste.study.overrides import relocated
from ajuste.study.read import read_study
from ajuste.study.resolve import HOST_KERNEL, resolve
from ajuste.study.resolved import ResolvedStudy
from ajuste.study.site import GUEST, Site

Resolve = Callable[..., ResolvedStudy]
HOST = Site(bundled="/native/ajuste-workloads", directory="/home/ada/work", in_place=True)

LADDER = """\
schema = 1
name = "ladder"

[[factor]]
name = "isolation"

[factor.settings.plain]

[factor.settings.favoured]
nice = -20
"workload.size" = 7

[factor.settings.alone]
affinity = "0"
sched_min_granularity_ns = 10000000
kernel_arguments = "isolcpus=1 nohz_full=1"

[workload]
kind = "matrix"

[target]
kernel = "debian:5.10"

[analysis]
metrics = ["elapsed"]
"""

COMMANDS = """\
schema = 1
name = "commands"

[[factor]]
name = "command"
levels = ["fast one", "slow one"]

[workload]
setup = ["mkdir", "work"]
prepare = ["sync"]
cleanup = ["rmdir", "work"]

[[workload.variant]]
name = "slow one"
command = ["sleep", "2"]

[[workload.variant]]
name = "fast one"
command = ["dd", "if=/dev/zero"]

[[workload.metric]]
name = "iops"
pointer = "/jobs/0/iops"
direction = "higher"

[target]
kernel = "debian:5.10"

[analysis]
metrics = ["iops"]
"""


@pytest.fixture
def resolved(write: Callable[..., Any], catalogue: Catalogue) -> Resolve:
    def resolving(text: str, *changes: tuple[str, str], site: Site = GUEST) -> ResolvedStudy:
        for change in changes:
            assert change[0] in text
            text = text.replace(*change)
        study = read_study(write(text), catalogue)
        kernels = {spec: KernelVersion.parse(spec.partition(":")[2]) for spec in study.kernels}
        kernels = kernels or {HOST_KERNEL: KernelVersion.parse("6.1")}
        return resolve(study, catalogue, kernels, lambda name: f"/bin/{name}", site)

    return resolving


def test_each_level_sets_what_its_table_says_and_nothing_else(resolved: Resolve) -> None:
    plain, favoured, alone = resolved(LADDER).configurations
    assert [c.configuration.name for c in (plain, favoured, alone)] == [
        "isolation=plain",
        "isolation=favoured",
        "isolation=alone",
    ]
    assert plain.configuration.baseline
    assert plain.configuration.levels == {"isolation": "plain"}
    assert (plain.writes, plain.workload.attributes, plain.kernel_arguments) == ((), Attributes(), ())
    assert favoured.workload.attributes == Attributes(nice=-20)
    assert favoured.workload.argv[1:3] == ("matrix", "--size")
    assert favoured.workload.argv[3] == "7"
    assert [(w.tunable, w.value) for w in alone.writes] == [("sched_min_granularity_ns", "10000000")]
    assert alone.workload.attributes == Attributes(affinity=(0,))
    assert alone.kernel_arguments == ("isolcpus=1", "nohz_full=1")


def test_it_is_explained_by_itself_and_by_what_it_sets(resolved: Resolve) -> None:
    explained = {e.name: e for e in resolved(LADDER).explained}
    assert list(explained) == [
        "isolation",
        "nice",
        "workload.size",
        "affinity",
        "sched_min_granularity_ns",
        "kernel_arguments",
    ]
    assert "plain: nothing; favoured: nice = -20, workload.size = 7" in explained["isolation"].what


def test_levels_of_settings_use_a_successor_when_asked(resolved: Resolve) -> None:
    with pytest.raises(
        RequestError, match=r"factor\[1\]\.settings: sched_min_granularity_ns is not supported by Linux 6.12"
    ):
        resolved(LADDER, ("debian:5.10", "debian:6.12"))
    study = resolved(LADDER, ("debian:5.10", "debian:6.12"), ('"isolation"', '"isolation"\nsuccessor = true'))
    assert study.configurations[2].writes[0].tunable == "base_slice_ns"
    assert "varies instead" in study.notes[0]


OF_KERNELS = LADDER.replace("nice = -20\n", 'kernel = "debian:6.12"\n')
"""A level with a kernel of its own, beside one with a tunable which that kernel does not have."""


def test_a_level_can_have_a_kernel_of_its_own(resolved: Resolve) -> None:
    study = resolved(OF_KERNELS)
    assert [c.kernel for c in study.configurations] == ["debian:5.10", "debian:6.12", "debian:5.10"]
    assert study.study.kernels == ("debian:5.10", "debian:6.12")
    assert [write.tunable for write in study.configurations[2].writes] == ["sched_min_granularity_ns"]


def test_a_kernel_that_only_some_levels_name_is_chosen_nowhere_else(resolved: Resolve) -> None:
    study = resolved(OF_KERNELS).study
    with pytest.raises(RequestError, match="--kernel conflicts with the factor kernel"):
        study.with_choices(kernel="debian:6.1")
    with pytest.raises(RequestError, match="varies the isolation by booting guests"):
        relocated(study, "host")


def test_only_one_factor_names_kernels(resolved: Resolve) -> None:
    with pytest.raises(RequestError, match='"kernel" is also set by the factor "isolation"'):
        resolved(OF_KERNELS, ("[workload]", '[[factor]]\nname = "kernel"\nlevels = ["debian:6.1"]\n[workload]'))


WRONG = {
    "a level of a setting out of range": (
        ("nice = -20", "nice = -21"),
        r"study.toml:10: factor\[1\].settings.favoured.nice: nice = -21 is out of range",
    ),
    "an unknown setting": (
        ("nice = -20", "nicer = -20"),
        r"study.toml:10: factor\[1\].settings.favoured.nicer: tunable 'nicer' not found",
    ),
    "a setting that another factor has": (
        ("[workload]", '[[factor]]\nname = "nice"\nlevels = [0, 1]\n[workload]'),
        r'study.toml:19: factor\[2\].name: "nice" is also set by the factor "isolation"',
    ),
    "two factors with settings of one thing": (
        ("[workload]", '[[factor]]\nname = "other"\nsettings.x.affinity = "0"\nsettings.y.nice = 1\n[workload]'),
        r'"affinity" is also set by the factor "isolation"',
    ),
    "a command among the settings": (("nice = -20", 'command = "true"'), "make it a separate factor"),
    "no kernel for a level without one of its own": (
        ("[target]\nkernel = ", "[target]\nkernel_arguments = [] # "),
        "target.kernel: is required",
    ),
    "settings called like something else": (('"isolation"', '"kernel"'), '"kernel" is reserved'),
    "an unknown parameter": (('"workload.size"', '"workload.sise"'), 'no parameter "sise"; did you mean size'),
    "a baseline that is no level": (
        ('"isolation"', '"isolation"\nbaseline = "none"'),
        'found "none", which is not a level',
    ),
    "levels that are not those of the settings": (
        ('"isolation"', '"isolation"\nlevels = ["plain"]'),
        "settings must have one table for each level",
    ),
    "a line feed for the kernel's command line": (('"isolcpus=1 ', '"a\\nb '), "expected words for the kernel's"),
}


@pytest.mark.parametrize(("change", "message"), WRONG.values(), ids=WRONG.keys())
def test_wrong_settings_are_refused_with_their_place(resolved: Resolve, change: tuple[str, str], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        resolved(LADDER, change)


def test_variants_are_the_levels_of_the_factor_command(resolved: Resolve) -> None:
    study = resolved(COMMANDS)
    assert study.names == ("fast one", "slow one")
    assert [c.workload.argv for c in study.configurations] == [("/bin/dd", "if=/dev/zero"), ("/bin/sleep", "2")]
    assert [c.configuration.baseline for c in study.configurations] == [True, False]
    assert set(study.programs) == {"/bin/dd", "/bin/sleep", "/bin/sync", "/bin/mkdir", "/bin/rmdir"}
    assert [p.pointer for p in study.pointers] == ["/jobs/0/iops"]
    assert study.explained[0].what == "What is run. slow one: sleep 2; fast one: dd if=/dev/zero"


def test_a_variant_runs_in_a_directory_of_its_own(resolved: Resolve, tmp_path: Path) -> None:
    """The directory is there in a guest if the study has files in it."""
    for name in ("fast", "slow"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "data.txt").touch()
    in_own = [(f'name = "{name} one"\n', f'name = "{name} one"\ndirectory = "{name}"\n') for name in ("fast", "slow")]
    beside = resolved(COMMANDS, *in_own)
    assert [configuration.workload.directory for configuration in beside.configurations] == ["/tmp", "/tmp"]
    files = ("[workload]", '[workload]\nfiles = ["fast/data.txt", "slow/data.txt"]')
    there = resolved(COMMANDS, *in_own, files)
    assert [configuration.workload.directory for configuration in there.configurations] == [
        "/study/fast",
        "/study/slow",
    ]
    assert [configuration.workload.directory for configuration in resolved(COMMANDS, files).configurations] == [
        "/study",
        "/study",
    ]
    here = resolved(COMMANDS, *in_own, ('kernel = "debian:5.10"', 'kind = "host"'), site=HOST)
    assert [configuration.workload.directory for configuration in here.configurations] == [
        str(tmp_path / "fast"),
        str(tmp_path / "slow"),
    ]


@pytest.mark.parametrize(
    ("directory", "message"),
    [
        ("nowhere", r'workload.variant\[1\].directory: directory ".*/nowhere" not found'),
        ("../x", r'"../x" is outside the directory of the study; expected a relative path without ".."'),
        ("/tmp", r'"/tmp" is outside the directory of the study'),
        ("away", r'"away" leads outside the directory of the study; expected a directory below it'),
    ],
)
def test_the_directory_of_a_variant_is_below_that_of_the_study(
    resolved: Resolve, tmp_path: Path, directory: str, message: str
) -> None:
    (tmp_path / "away").symlink_to("/")
    with pytest.raises(RequestError, match=message):
        resolved(COMMANDS, ('name = "slow one"\n', f'name = "slow one"\ndirectory = "{directory}"\n'))


def test_in_a_guest_every_trial_is_set_up_and_cleaned_up(resolved: Resolve) -> None:
    study = resolved(COMMANDS)
    assert (study.setup, study.cleanup) == ((), ())
    for configuration in study.configurations:
        assert [c.argv for c in configuration.before] == [("/bin/mkdir", "work"), ("/bin/sync",)]
        assert [c.argv for c in configuration.after] == [("/bin/rmdir", "work")]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('"slow one"]', '"slow two"]'), 'variant "slow two" not found; expected one of slow one, fast one'),
        (('name = "fast one"', 'name = "slow one"'), 'the variant "slow one" is given twice'),
        (('"command"\nlevels = ["fast one", "slow one"]', '"nice"\nlevels = [0, 1]'), "variants require the factor"),
        (("[workload]", '[workload]\nkind = "matrix"'), 'expected kind = "…" or command = '),
        (('"/jobs/0/iops"', '"jobs/0/iops"'), "workload.metric.*pointer: .*is not a JSON pointer"),
    ],
)
def test_wrong_variants_are_refused(resolved: Resolve, change: tuple[str, str], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        resolved(COMMANDS, change)


def test_without_a_factor_there_is_one_configuration_named_like_the_command(resolved: Resolve) -> None:
    study = LADDER[: LADDER.index("[[factor]]")] + "factor = []\n" + LADDER[LADDER.index("[workload]") :]
    resolved_study = resolved(study)
    assert resolved_study.names == ("matrix",)
    assert resolved_study.configurations[0].configuration.baseline
    resolved_study = resolved(study, ('kind = "matrix"', 'command = ["sh", "-c", "exit 0"]'))
    assert resolved_study.names == ("sh -c 'exit 0'",)


def test_one_at_a_time_is_the_baseline_and_each_other_level(resolved: Resolve) -> None:
    second = '[[factor]]\nname = "policy"\nlevels = ["other", "batch", "idle"]\n[design]\ncombine = "one-at-a-time"\n'
    study = resolved(LADDER, ("[workload]", f"{second}[workload]"))
    assert study.names == (
        "isolation=plain policy=other",
        "isolation=favoured policy=other",
        "isolation=alone policy=other",
        "isolation=plain policy=batch",
        "isolation=plain policy=idle",
    )
    assert sum(c.configuration.baseline for c in study.configurations) == 1
