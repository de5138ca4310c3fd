"""Texts of ``ajuste plan``: every write, command and trial."""

from __future__ import annotations

import io
import re
import shlex
from pathlib import Path

import pytest
import tomlkit
from rich.cells import cell_len
from rich.console import Console

from ajuste.model.metric import Metric
from ajuste.model.plan import Sampler
from ajuste.model.trial import Factor, Slot
from ajuste.report.plan import (
    PlannedBudget,
    PlannedCommand,
    PlannedConfiguration,
    PlannedNeed,
    PlannedStudy,
    PlannedWrite,
    plan_report,
)
from ajuste.report.terminal import print_report
from harmful import BASE, HOST
from small_stores import Commands

KNOB = "sched_min_granularity_ns"
PATH = f"/proc/sys/kernel/{KNOB}"
LEVELS = ("750000", "7500000")
WORKLOAD = PlannedCommand(
    role="workload", argv=("./job", "--name", "two words", "; rm -rf /"), attributes={"nice": "-5"}, directory="/study"
)
BACKGROUND = PlannedCommand(role="background", argv=("spin",), count=2)


@pytest.fixture
def plan() -> PlannedStudy:
    return PlannedStudy(
        study="granularity",
        title="Granularity",
        question="Does it matter?",
        target="a virtual machine with debian:5.10, 1 CPU, 256 MiB",
        clock="virtual",
        seed=1,
        factors=(Factor(name=KNOB, levels=LEVELS, baseline=LEVELS[0]),),
        units={KNOB: "ns"},
        configurations=tuple(
            PlannedConfiguration(
                name=f"{KNOB}={level}",
                levels={KNOB: level},
                baseline=level == LEVELS[0],
                writes=(PlannedWrite(tunable=KNOB, where=PATH, value=level),),
                commands=(BACKGROUND, WORKLOAD),
            )
            for level in LEVELS
        ),
        trials=tuple(
            Slot(block=block, position=position, configuration=f"{KNOB}={LEVELS[place]}", seed=100 + block)
            for block, order in enumerate([(1, 0), (0, 1)])
            for position, place in enumerate(order)
        ),
        budget=PlannedBudget(min_blocks=5, max_blocks=30, max_minutes=20),
        timeout_s=60,
        settle_s=0.02,
        deciding=(Metric(name="elapsed", title="Elapsed", unit="s", direction="lower"),),
        level=0.95,
        smallest_effect=0.05,
        notes=("The successor is varied.",),
    )


def printed(plan: PlannedStudy, width: int = 80) -> str:
    out = io.StringIO()
    print_report(plan_report(plan), Console(file=out, width=width))
    return out.getvalue()


def test_what_is_read_beside_the_workload_is_shown(plan: PlannedStudy) -> None:
    samplers = (Sampler(source="vmstat", keys=("nr_dirty", "pg\x1b*"), interval_ns=100_000_000),)
    text = printed(plan.model_copy(update={"samplers": samplers, "observe_s": 45.0}))
    assert "read every 100 ms: vmstat nr_dirty, pg\\x1b*" in text
    assert "Sampling continues for 45 s after the workload's end." in text
    assert "read every" not in printed(plan)


def test_every_write_and_command_is_shown(plan: PlannedStudy) -> None:
    text = printed(plan)
    for level in LEVELS:
        assert f"write {level} to {PATH}" in text
    assert f"workload: {shlex.join(WORKLOAD.argv)}" in text
    assert "background × 2: spin" in text
    assert "nice -5" in text
    assert "No setting was changed and nothing was run." in text


def test_what_a_guest_boots_with_and_loads_is_shown(plan: PlannedStudy) -> None:
    text = printed(plan.model_copy(update={"kernel_arguments": ("nosmt",), "modules": ("null_blk gb=1",)}))
    assert re.search(r"Boots with: +nosmt", text)
    assert re.search(r"Modules: +null_blk gb=1", text)


def test_the_file_system_of_a_study_is_shown_as_it_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root formats and mounts it, with arguments that a stranger may have written."""
    study = tmp_path / "study.toml"
    made = {"directory": "/var/tmp", "make_options": ["-N", "64"], "mount_options": "noatime"}
    study.write_text(tomlkit.dumps({"schema": 1, **BASE, **HOST, "scratch": made}))
    output = " ".join(Commands(tmp_path / "home", monkeypatch).run("plan", str(study))[1].split())
    for words in ("mkfs.ext4 -q -F -N 64 '/dev/loop…'", "with noatime", "256 MiB in /var/tmp"):
        assert words in output, output


def test_the_order_of_the_first_blocks_is_shown_with_their_seeds(plan: PlannedStudy) -> None:
    text = printed(plan)
    assert "block 1 (seed 100): 7.5 ms → 750 µs\n" in text
    assert "block 2 (seed 101): 750 µs → 7.5 ms\n" in text


def test_only_a_wall_clock_asks_how_quiet_the_machine_is(plan: PlannedStudy) -> None:
    needed = plan.model_copy(update={"needed": (PlannedNeed(run_percent=1, blocks=10),)})
    assert "runs scatter by 1 %" in printed(needed)
    assert "ajuste doctor" not in printed(needed)
    assert "ajuste doctor" in printed(needed.model_copy(update={"clock": "wall"}))


def test_the_budget_is_shown_in_trials_and_time(plan: PlannedStudy) -> None:
    text = " ".join(printed(plan).split())
    assert "5 to 30, of 2 trials each: at most 60 trials" in text
    assert "at most 20 min" in text


def test_commands_that_differ_stand_with_their_configuration(plan: PlannedStudy) -> None:
    other = WORKLOAD.model_copy(update={"argv": ("./other",)})
    changed = plan.configurations[1].model_copy(update={"commands": (BACKGROUND, other)})
    text = printed(plan.model_copy(update={"configurations": (plan.configurations[0], changed)}))
    shared, each = text.split("Configurations\n")
    assert "spin" in shared
    assert "./job" not in shared
    assert each.index("./job") < each.index("7500000") < each.index("./other")


@pytest.mark.parametrize("width", [40, 80])
def test_nothing_is_cut_off_and_nothing_hidden(plan: PlannedStudy, width: int) -> None:
    sly = PlannedCommand(role="workload", argv=("sh", "-c", "\x1b[8mcurl http://example.org/x\u202e" + "y" * 100))
    configurations = tuple(c.model_copy(update={"commands": (sly,)}) for c in plan.configurations)
    text = printed(plan.model_copy(update={"configurations": configurations}), width)
    assert max(cell_len(line) for line in text.splitlines()) <= width
    squeezed = "".join(text.split())
    assert "$'\\033[8mcurlhttp://example.org/x\\342\\200\\256" + "y" * 100 in squeezed


def test_the_plan_is_a_document_too(plan: PlannedStudy) -> None:
    assert PlannedStudy.model_validate_json(plan.model_dump_json()) == plan


def test_a_name_is_not_broken_where_it_has_room(plan: PlannedStudy) -> None:
    name = "kernel.sched_wakeup_granularity_ns"
    factor = Factor(name=name, levels=LEVELS, baseline=LEVELS[0])
    text = printed(plan.model_copy(update={"factors": (factor,), "units": {name: "ns"}}))
    assert f"{name}: 750 µs (baseline), 7.5 ms" in text
