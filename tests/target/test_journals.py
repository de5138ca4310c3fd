"""What is made of journals that were left behind."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ajuste.model.error import RequestError
from ajuste.target.journals import leftovers, old_values, require_none_left, restore_from
from ajuste.this_boot import boot_id

EXPIRE = Path("/proc/sys/vm/dirty_expire_centisecs")


def header(boot: str) -> str:
    fields = {"journal": 1, "session": "s", "boot": boot, "pid": 1, "started_ticks": 2, "began_s": 3}
    return json.dumps(fields) + "\n"


def step(before: str, tunable: str = "vm.dirty_expire_centisecs", path: Path = EXPIRE) -> str:
    location = {"kind": "file", "path": str(path)}
    return json.dumps({"undo": "value", "tunable": tunable, "location": location, "before": before}) + "\n"


def journal(directory: Path, name: str, text: str) -> Path:
    directory.mkdir(exist_ok=True)
    path = directory / f"{name}.journal"
    path.write_text(text)
    path.chmod(0o600)
    return path


def test_those_of_this_boot_matter_and_those_of_another_do_not(tmp_path: Path) -> None:
    own = journal(tmp_path, "b", header(boot_id()))
    old = journal(tmp_path, "a", header("of another boot") + step("1"))
    torn = journal(tmp_path, "c", '{"journal":1,"sess')
    odd = journal(tmp_path, "d", "no journal at all\n")
    (tmp_path / "e.txt").write_text("nothing of ours")
    found = leftovers(tmp_path)
    assert found.left == (own, odd)
    assert found.void == (old, torn)
    assert leftovers(tmp_path / "nowhere") == leftovers(tmp_path / "e.txt")


def test_one_that_is_left_stands_in_the_way_and_says_what_to_do(tmp_path: Path) -> None:
    path = journal(tmp_path, "a", header(boot_id()))
    with pytest.raises(RequestError, match=str(path)) as caught:
        require_none_left(tmp_path, None)
    assert caught.value.exit_code == 2
    assert "ajuste restore" in (caught.value.hint or "")


def test_one_of_another_home_is_named(tmp_path: Path) -> None:
    other = tmp_path / "other"
    journal(other, "a", header(boot_id()))
    with pytest.raises(RequestError, match="of another home") as caught:
        require_none_left(tmp_path / "own", other)
    assert f"ajuste restore {other}" in (caught.value.hint or "")


def test_one_of_an_earlier_boot_is_removed_with_a_note(tmp_path: Path) -> None:
    path = journal(tmp_path, "a", header("of another boot"))
    (note,) = require_none_left(tmp_path, tmp_path)
    assert "earlier boot" in note
    assert not path.exists()


def test_what_would_be_put_back_is_told(tmp_path: Path) -> None:
    path = journal(tmp_path, "a", header(boot_id()) + step("3000") + '{"undo":"made","path":"/x"}\n' + step("77")[:9])
    assert [(value.tunable, value.before) for value in old_values(path)] == [("vm.dirty_expire_centisecs", "3000")]
    with pytest.raises(RequestError, match="no journal that can be read"):
        old_values(journal(tmp_path, "b", "nonsense\nnonsense\n"))


@pytest.mark.skipif(os.geteuid() != 0, reason="changing settings needs root")
@pytest.mark.usefixtures("machine_lock")
class TestPuttingBack:
    def test_the_agent_puts_back_what_a_journal_says(self, tmp_path: Path) -> None:
        before = EXPIRE.read_text().strip()
        path = journal(tmp_path, "a", header(boot_id()) + step(before))
        EXPIRE.write_text("1234\n")
        restoration = restore_from([path])
        assert EXPIRE.read_text().strip() == before
        assert restoration.done
        assert [event["event"] for event in restoration.events] == ["restored", "journal"]
        assert not path.exists()

    def test_a_journal_that_anybody_can_write_is_not_carried_out(self, tmp_path: Path) -> None:
        before = EXPIRE.read_text()
        path = journal(tmp_path, "a", header(boot_id()) + step("1234"))
        path.chmod(0o666)
        assert not restore_from([path]).done
        assert EXPIRE.read_text() == before
        assert path.exists()

    def test_a_journal_cannot_make_root_write_anywhere(self, tmp_path: Path) -> None:
        victim = tmp_path / "victim"
        victim.write_text("precious")
        path = journal(tmp_path, "a", header(boot_id()) + step("gone", path=victim))
        assert not restore_from([path]).done
        assert victim.read_text() == "precious"


def test_with_nothing_to_do_nobody_is_asked() -> None:
    assert restore_from([]).done
