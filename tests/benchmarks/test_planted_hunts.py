"""The planted bugs are whole, build, end well as a rule, and are real: a pause at the unlucky moment shows each."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
import tomllib
from pathlib import Path

import pytest
from benchmarks.hunt.planted import catalogue
from benchmarks.hunt.planted.catalogue import PlantedBug, build_bug, module_study, planted_bugs, read_bug
from pydantic import ValidationError

from ajuste.catalogue.loader import catalogue as known
from ajuste.kernel.spec import parse_spec
from ajuste.study.read import read_study
from looped import each

DIRECTORY = Path(catalogue.__file__).parent
BUGS = planted_bugs()
NATIVE = [bug for bug in BUGS if not bug.guest_only]
NEEDS_CC = pytest.mark.skipif(shutil.which("cc") is None, reason="needs cc")
PAUSE = "PAUSE_US=30000"
HUNG_S = 3.0
PATIENCE_S = 60.0


def by_name(bug: PlantedBug) -> str:
    return bug.name


def met(bug: PlantedBug, program: Path, limit_s: float) -> bool:
    """Return whether a run of the program meets the bug's goal."""
    start = time.monotonic()
    try:
        code = subprocess.run([program], timeout=limit_s, check=False, capture_output=True).returncode
    except subprocess.TimeoutExpired:
        return True
    if more := re.fullmatch(r"elapsed > ([0-9.]+)", bug.goal):
        assert code == 0, code
        return time.monotonic() - start > float(more[1])
    if bug.goal != "exit != 0":
        assert code == 0, code
    return code != 0


def ends_well(program: Path) -> bool:
    try:
        return subprocess.run([program], timeout=PATIENCE_S, check=False, capture_output=True).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def test_there_are_bugs_of_all_kinds_and_every_directory_has_one() -> None:
    sources = {path.parent.name for path in DIRECTORY.glob("*/*.c")}
    assert sources == {bug.name for bug in BUGS}
    assert len(BUGS) >= 20
    assert {bug.kind for bug in BUGS} == {"user", "module"}
    assert {bug.depth for bug in BUGS} >= {1, 2, 3}
    goals = {re.split("[: ]", bug.goal)[0] for bug in BUGS}
    assert goals == {"hung", "exit", "dmesg", "elapsed"}


@each(BUGS, by_name)
def test_a_description_is_whole(bug: PlantedBug) -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in bug.directory.glob("*.c"))
    assert "FIXED" in source
    assert "UNLUCKY(" in source
    assert bug.command[0] == f"./{bug.name}"
    assert any(f"{{out}}/{bug.name}" in command for command in bug.build)
    assert any("{flags}" in word for command in bug.build for word in command)
    assert bool(bug.modules) == (bug.kind == "module")
    # What costs time and no more has to end before the limit.
    if over := re.fullmatch(r"elapsed > ([0-9.]+)", bug.goal):
        assert float(over[1]) < bug.timeout_s


@each(["depth = 0", "cpus = 5", 'goal = "exit"', "unknown = 1", "build = []", 'kind = "other"'])
def test_a_wrong_field_is_refused(line: str) -> None:
    file = DIRECTORY / "lost-wakeup" / "bug.toml"
    field = line.split(" ")[0]
    lines = [text for text in file.read_text(encoding="utf-8").splitlines() if not text.startswith(f"{field} = ")]
    with pytest.raises(ValidationError, match=field):
        PlantedBug.model_validate(tomllib.loads("\n".join([*lines, line])))
    assert read_bug(file).name == "lost-wakeup"


def test_a_module_without_headers_is_refused(tmp_path: Path) -> None:
    module = next(bug for bug in BUGS if bug.kind == "module")
    with pytest.raises(ValueError, match=f"{module.name}: .* requires the headers of {module.kernel}"):
        build_bug(module, tmp_path)


def test_a_study_of_a_module_is_valid(tmp_path: Path) -> None:
    module = next(bug for bug in BUGS if bug.kind == "module")
    (tmp_path / module.name).touch()
    study = read_study(module_study(module, tmp_path, tmp_path / "vmlinuz"), known(), parse_kernel=parse_spec)
    assert study.target.modules == module.modules
    assert study.target.kernel == f"path:{tmp_path}/vmlinuz,modules={tmp_path}/modules"
    assert study.workload.timeout_s == module.timeout_s


@NEEDS_CC
def test_flags_choose_the_twin_and_the_source_stays_clean(tmp_path: Path) -> None:
    bug = next(bug for bug in BUGS if bug.name == "early-publication")
    before = sorted(bug.directory.iterdir())
    assert met(bug, build_bug(bug, tmp_path, define=[PAUSE]), PATIENCE_S)
    assert ends_well(build_bug(bug, tmp_path, fixed=True, define=[PAUSE]))
    assert sorted(bug.directory.iterdir()) == before


@NEEDS_CC
@pytest.mark.slow
@each([bug for bug in BUGS if bug.kind == "user"], by_name)
def test_a_bug_and_its_twin_build_and_end_well_as_a_rule(bug: PlantedBug, tmp_path: Path) -> None:
    program = build_bug(bug, tmp_path)
    assert bug.guest_only or any(not met(bug, program, PATIENCE_S) for _ in range(5))
    twin = build_bug(bug, tmp_path, fixed=True)
    assert bug.guest_only or all(ends_well(twin) for _ in range(3))


@NEEDS_CC
@pytest.mark.slow
@each(NATIVE, by_name)
def test_a_pause_at_the_unlucky_moment_shows_the_bug_and_never_its_twin(bug: PlantedBug, tmp_path: Path) -> None:
    program = build_bug(bug, tmp_path, define=[PAUSE])
    assert any(met(bug, program, max(HUNG_S, bug.timeout_s)) for _ in range(5))
    twin = build_bug(bug, tmp_path, fixed=True, define=[PAUSE])
    assert all(ends_well(twin) for _ in range(3))
