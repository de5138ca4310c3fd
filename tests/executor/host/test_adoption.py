"""Adopted settings of a machine, by its records."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from ajuste.executor.host.adoption import (
    AdoptedValue,
    Adoption,
    BootFile,
    adopt,
    adopted_from,
    adoption_of,
    adoptions,
    require_latest,
    undo_command,
    withdraw,
)
from ajuste.executor.host.journals import record_of, require_none_left
from ajuste.machine.session import boot_id
from ajuste.model.error import RequestError
from ajuste.model.plan import FileLocation
from namespace import needs_root

EXPIRE = FileLocation(path="/proc/sys/vm/dirty_expire_centisecs")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "adopted").mkdir()
    return tmp_path / "adopted"


def journal(directory: Path, name: str) -> Path:
    """Write a journal of this boot with a value to restore, whose agent has ended."""
    header = {"journal": 1, "session": name, "boot": boot_id(), "pid": 1, "started_ticks": 2, "began_s": 3}
    step = {"undo": "value", "tunable": "vm.dirty_expire_centisecs", "location": EXPIRE.model_dump(), "before": "3000"}
    path = directory / f"{name}.journal"
    path.write_text(f"{json.dumps(header)}\n{json.dumps(step)}\n")
    path.chmod(0o600)
    return path


def adoption(run: str, *, journal: str = "", boot: str = "", files: tuple[Path, ...] = ()) -> Adoption:
    return Adoption(
        run=run,
        study="live",
        configuration="new",
        boot=boot or boot_id(),
        adopted="2026-01-02T03:04:05+00:00",
        probation_s=600,
        journal=f"{journal or run}.journal",
        values=(AdoptedValue(tunable="vm.dirty_expire_centisecs", before="3000", value="1500", places=(EXPIRE,)),),
        evidence=("took: improves",),
        files=tuple(BootFile(path=str(file), sha256=hashlib.sha256(file.read_bytes()).hexdigest()) for file in files),
    )


def test_only_the_record_makes_it_adopted(directory: Path) -> None:
    journal(directory, "1-7-8")
    registry = directory.with_name("journals")
    with pytest.raises(RequestError, match="1-7-8"):
        require_none_left(directory / "none", registry)
    adopt(adoption("run-1", journal="1-7-8"), directory)
    assert require_none_left(directory / "none", registry) == ()
    assert [record.run for record in adoptions(directory)] == ["run-1"]
    assert [record.run for record in adopted_from([EXPIRE], directory)] == ["run-1"]
    assert adopted_from([FileLocation(path="/proc/sys/vm/swappiness")], directory) == ()


def test_what_was_adopted_later_is_undone_first(directory: Path) -> None:
    for number in (1, 2):
        adopt(adoption(f"run-{number}", journal=f"{number}-7-8"), directory)
    with pytest.raises(RequestError) as refused:
        require_latest(adoption_of("run-1", directory), directory)
    assert refused.value.hint == f"run {undo_command('run-2')}"
    require_latest(adoption_of("run-2", directory), directory)
    for unclear in ("run", "run-3"):
        with pytest.raises(RequestError) as refused:
            adoption_of(unclear, directory)
        assert refused.value.hint == "name one of run-1, run-2"


def test_a_reboot_has_undone_it_and_its_file_goes_with_the_record(directory: Path, tmp_path: Path) -> None:
    files = (tmp_path / "own.conf", tmp_path / "edited.conf")
    for file in files:
        file.write_text("vm.dirty_expire_centisecs = 1500\n")
    adopt(adoption("run-1", boot="another", files=files), directory)
    files[1].write_text("vm.dirty_expire_centisecs = 1600\n")
    known = adoption_of("run-1", directory)
    assert "the last reboot" in str(known)
    assert adopted_from([EXPIRE], directory) == ()
    messages = withdraw(known, directory)
    assert [file.exists() for file in files] == [False, True]
    assert "edited.conf was edited since" in messages[-1]
    assert adoptions(directory) == ()


@needs_root
def test_a_directory_that_the_caller_made_a_link_leads_root_to_no_other_file(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUDO_UID", "54321")
    monkeypatch.setenv("SUDO_GID", "54321")
    with TemporaryDirectory() as shared:  # Where the caller may come.
        Path(shared).chmod(0o755)
        callers, system = Path(shared, "callers"), Path(shared, "system")
        for place in (callers, system):
            place.mkdir()
            (place / "own.conf").write_text("vm.dirty_expire_centisecs = 1500\n")
        adopt(adoption("run-1", boot="another", files=(callers / "own.conf",)), directory)
        callers.rename(Path(shared, "aside"))
        callers.symlink_to(system)
        os.chown(callers, 54321, 54321, follow_symlinks=False)
        messages = withdraw(adoption_of("run-1", directory), directory)
        assert (system / "own.conf").exists()
    assert "is a link owned by the user 54321" in messages[-1]
    assert adoptions(directory) == ()


@pytest.mark.parametrize(("text", "words"), [("a = 1\n", "set at boot by {}; undo"), ("a = 2\n", "(edited since)")])
def test_a_file_that_is_read_at_boot_keeps_the_value_in_force_until_it_is_edited(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, words: str
) -> None:
    file = tmp_path / "own.conf"
    file.write_text("a = 1\n")
    known = adoption("run-1", boot="another", files=(file,))
    adopt(known, directory)
    assert f"set at boot once {file} is installed" in str(known)
    monkeypatch.setattr("ajuste.executor.host.adoption.READ_AT_BOOT", {tmp_path})
    file.write_text(text)
    assert words.format(file) in str(known)
    assert [record.run for record in adopted_from([EXPIRE], directory)] == (["run-1"] if text == "a = 1\n" else [])


def test_a_damaged_record_is_none(directory: Path) -> None:
    record_of(directory / "1-7-8.journal").write_text("{")
    assert adoptions(directory) == ()


def test_the_command_that_undoes_it_is_one_for_root(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name, **_: f"/usr/bin/{Path(name).name}")
    monkeypatch.setattr("sys.argv", ["ajuste", "live"])
    for variable in ("AJUSTE_HOME", "AJUSTE_NATIVE"):
        monkeypatch.delenv(variable, raising=False)
    known = adoption("run-1")
    assert known.undo == known.as_json()["undo"] == "sudo ajuste restore --run run-1"
    assert str(known).endswith(f"undo with {known.undo}")
