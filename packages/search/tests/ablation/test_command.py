"""Profiles on the command line: compared as a whole, and taken apart, on this machine and in a guest."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from guests import in_guests
from shell import Shell

WAKES = Path("/proc/sys/vm/dirty_writeback_centisecs")
OVERCOMMIT = Path("/proc/sys/vm/overcommit_memory")
EXPIRE = Path("/proc/sys/vm/dirty_expire_centisecs")

WRONG: dict[str, tuple[tuple[str, ...], str]] = {
    "no profile": (("ablate", "--", "true"), "--profile is required"),
    "a profile that is not there": (
        ("ablate", "--profile", "none.conf", "--", "true"),
        "profile 'none.conf' not found",
    ),
    "no command": (("ablate", "--profile", "own.conf"), "the command to measure is missing"),
    "two commands": (
        ("ablate", "--profile", "own.conf", "--", "true", "--", "false"),
        "found several commands; expected one",
    ),
    "a study and a command": (("ablate", "--profile", "own.conf", "--study", "small.toml", "--", "true"), "its own"),
    "no line": (("ablate", "--profile", "broken.conf", "--", "true"), r"broken.conf:2: expected NAME = VALUE"),
    "an unknown section": (("ablate", "--profile", "odd", "--", "true"), r"odd/tuned.conf:1: .*unknown tuned plug-in"),
    "a circle": (
        ("compare", "--profile", "one,two", "--", "true"),
        r"two/tuned.conf:2: .*include each other: one → two → one",
    ),
    "the same twice": (("compare", "--profile", "own.conf,own.conf", "--", "true"), "a profile is given twice"),
    "nothing between commas": (("compare", "--profile", "own.conf,", "--", "true"), "empty name between commas"),
    "a value that cannot be": (("ablate", "--profile", "far.conf", "--", "true"), r"far.conf:1: vm.swappiness = 900"),
    "several kernels": (
        ("compare", "--profile", "own.conf", "--kernel", "debian:5.10,debian:6.1", "--", "true"),
        "--profile does not support several kernels",
    ),
}


@pytest.fixture
def profiles(ajuste: Shell) -> Shell:
    files = {
        "own.conf": "vm.dirty_writeback_centisecs = 1111\nvm.dirty_expire_centisecs = 1234\nkernel.nothing = 1\n"
        "vm.overcommit_ratio = 61\n",
        "broken.conf": "vm.swappiness = 11\nvm.laptop_mode 1\n",
        "far.conf": "vm.swappiness = 900\n",
        "odd/tuned.conf": "[sysctrl]\nvm.swappiness = 1\n",
        "one/tuned.conf": "[main]\ninclude = two\n",
        "two/tuned.conf": "[main]\ninclude = one\n",
        "guest.conf": "kernel.sched_min_granularity_ns = 100000000\nvm.swappiness = 10\nvm.laptop_mode = 0\n",
    }
    for name, text in files.items():
        path = ajuste.directory / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return ajuste


@pytest.mark.parametrize(("words", "message"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_request_is_refused_with_one_clear_message(
    profiles: Shell, words: tuple[str, ...], message: str
) -> None:
    output, complained = profiles(*words, expect=2)
    flat = " ".join(complained.split())
    assert re.search(message, flat), flat
    assert output == ""
    assert "Traceback" not in complained


def test_a_plan_shows_what_each_line_writes_and_what_is_left_out(profiles: Shell) -> None:
    output, _ = profiles("ablate", "--dry-run", "--profile", "own.conf", "--save", "own.toml", "--", "true")
    flat = " ".join(output.split())
    assert "only vm.dirty_writeback_centisecs write 1111 to /proc/sys/vm/dirty_writeback_centisecs" in flat
    assert "kernel.nothing = 1 (is not in the catalogue)" in flat
    assert 'combine = "ablation"' in (profiles.directory / "own.toml").read_text()


@in_guests
def test_a_plan_counts_the_combinations_that_blocks_hold(profiles: Shell) -> None:
    lines = ("dirty_ratio = 31", "dirty_background_ratio = 7", "dirty_writeback_centisecs = 1111", "swappiness = 31")
    (profiles.directory / "four.conf").write_text("".join(f"vm.{line}\n" for line in lines))
    guest = ("--kernel", "debian:6.12", "--profile", "sysctl:four.conf")
    output, _ = profiles("ablate", "--dry-run", *guest, "--blocks", "3..10", "--", "true")
    assert "of 16 trials each: at most 160 trials" in " ".join(output.split())


@pytest.mark.skipif(OVERCOMMIT.read_text().strip() == "2", reason="the line matters on this machine")
def test_a_line_that_cannot_matter_is_not_measured_and_it_is_said_why(profiles: Shell) -> None:
    output, _ = profiles("ablate", "--dry-run", "--profile", "own.conf", "--", "true")
    flat = " ".join(output.split())
    assert "only vm.overcommit_ratio" not in flat
    assert "vm.overcommit_ratio = 61 (cannot matter here: vm.overcommit_memory is not 2)" in flat


@pytest.mark.skipif(os.geteuid() != 0, reason="changing settings takes root")
@pytest.mark.usefixtures("machine_lock")
def test_a_profile_is_taken_apart_on_this_machine_and_everything_is_put_back(profiles: Shell) -> None:
    before = WAKES.read_text(), EXPIRE.read_text()
    results: Any = json.loads(profiles("ablate", "--json", "--blocks", "3", "--profile", "own.conf", "--", "true")[0])
    assert (WAKES.read_text(), EXPIRE.read_text()) == before
    assert {line["line"]: line["sets"] for line in results["lines"] if line["kind"] == "line"} == {
        "vm.dirty_writeback_centisecs": {"vm.dirty_writeback_centisecs": "1111"},
        "vm.dirty_expire_centisecs": {"vm.dirty_expire_centisecs": "1234"},
    }
    assert len(results["configurations"]) == 4
    assert results["reproduce"] == ["ajuste ablate --blocks 3 --profile own.conf -- true"]


@pytest.mark.vm
@pytest.mark.slow
def test_in_a_guest_the_line_that_matters_is_named_and_no_other(profiles: Shell) -> None:
    words = ("--profile", "guest.conf", "--kernel", "debian:5.10", "--background", "spin", "--min-effect", "20%")
    job = ("--metric", "involuntary-switches", "--blocks", "5..8", "--", "matrix", "size=100", "repetitions=2")
    results: Any = json.loads(profiles("ablate", "--json", *words, *job)[0])
    roles = {line["line"]: line["role"] for line in results["lines"] if line["kind"] == "line"}
    assert roles["kernel.sched_min_granularity_ns"] in ("helps", "matters")
    assert roles["vm.swappiness"] == "useless"
    assert len(roles) == 2, "what is so already is left out"
    assert any("vm.laptop_mode = 0" in note for note in results["notes"])
    assert results["stopped"] == "decided"
