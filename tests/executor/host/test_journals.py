"""Journals that were left behind, and what is made of them."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.agent.test_guardian import end, guardian_of

from ajuste.executor.host.host import HostExecutor
from ajuste.executor.host.journals import (
    OldValue,
    Scope,
    discard,
    journal_scope,
    journals_in,
    permitted,
    require_none_left,
    restore_all,
    restore_from,
)
from ajuste.machine.home import AGENT, Home, native_program
from ajuste.machine.session import boot_id
from ajuste.model.error import RequestError

EXPIRE = Path("/proc/sys/vm/dirty_expire_centisecs")
CORE_PATTERN = Path("/proc/sys/kernel/core_pattern")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="changing settings needs root")


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


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    return tmp_path / "registry"


def only(*places: Path, registry: Path) -> Scope:
    return Scope(places, registered=False, registry=registry)


def test_those_of_this_boot_matter_and_those_of_another_do_not(tmp_path: Path, registry: Path) -> None:
    directory = tmp_path / "own"
    paths = [
        journal(directory, "a", header("of another boot") + step("1")),
        journal(directory, "b", header(boot_id())),
        journal(directory, "c", '{"journal":1,"sess'),
        journal(directory, "d", "no journal at all\n"),
    ]
    (directory / "e.txt").write_text("nothing of ours")
    journals = journals_in(only(directory, registry=registry))
    assert [Path(journal.path) for journal in journals] == paths
    assert [journal.state for journal in journals] == ["foreign", "left", "foreign", "malformed"]
    assert [journal.stands_in_the_way for journal in journals] == [False, True, False, True]
    assert journals_in(journal_scope(tmp_path / "nowhere", registry)) == ()


def test_a_directory_that_cannot_be_read_is_unknown(tmp_path: Path, registry: Path) -> None:
    no_directory = tmp_path / "loop"
    no_directory.symlink_to(no_directory)
    (unreadable,) = journals_in(journal_scope(no_directory, registry))
    assert (unreadable.path, unreadable.state) == (str(no_directory), "unknown")
    with pytest.raises(RequestError, match="may have left values changed"):
        require_none_left(no_directory, registry)


def test_one_that_is_left_stands_in_the_way_and_says_what_to_do(tmp_path: Path, registry: Path) -> None:
    path = journal(tmp_path, "a", header(boot_id()))
    with pytest.raises(RequestError, match=str(path)) as caught:
        require_none_left(tmp_path, registry)
    assert caught.value.exit_code == 2
    assert "ajuste restore" in (caught.value.hint or "")


def test_one_of_another_machine_is_left_alone_and_stands_in_nobodys_way(tmp_path: Path, registry: Path) -> None:
    """A home on a network file system: the journal may be in use over there."""
    path = journal(tmp_path, "a", header("of another boot"))
    assert require_none_left(tmp_path, registry) == ()
    restored = restore_all(only(tmp_path, registry=registry))
    assert [event["state"] for event in restored.events] == ["foreign"]
    assert path.exists()


def test_what_would_be_put_back_is_listed(tmp_path: Path, registry: Path) -> None:
    journal(tmp_path, "a", header(boot_id()) + step("3000") + '{"undo":"made","path":"/x"}\n' + step("77")[:9])
    (left,) = journals_in(only(tmp_path, registry=registry))
    assert [(value.tunable, value.before) for value in left.old_values] == [("vm.dirty_expire_centisecs", "3000")]
    assert len(left.steps) == 2


def test_with_nothing_to_do_nobody_is_asked() -> None:
    assert restore_from(Scope(registered=False), ()).done


def old(tunable: str, path: str) -> OldValue:
    return OldValue.model_validate(
        {"undo": "value", "tunable": tunable, "location": {"kind": "file", "path": path}, "before": "1"}
    )


def test_only_places_of_the_catalogue_are_permitted_with_what_the_kernel_changes_along() -> None:
    places = permitted(
        [
            old("vm.dirty_bytes", "/proc/sys/vm/dirty_bytes"),
            old("kernel.core_pattern", str(CORE_PATTERN)),
            # The name is one of the catalogue, the place is not.
            old("vm.swappiness", str(CORE_PATTERN)),
        ]
    )
    paths = {getattr(place, "path", None) for place in places}
    assert {"/proc/sys/vm/dirty_bytes", "/proc/sys/vm/dirty_ratio", "/proc/sys/vm/swappiness"} <= paths
    assert str(CORE_PATTERN) not in paths


@needs_root
@pytest.mark.usefixtures("machine_lock")
class TestPuttingBack:
    def test_the_agent_puts_back_what_a_journal_says(self, tmp_path: Path, registry: Path) -> None:
        before = EXPIRE.read_text().strip()
        path = journal(tmp_path, "a", header(boot_id()) + step(before))
        EXPIRE.write_text("1234\n")
        restoration = restore_all(only(path, registry=registry))
        assert EXPIRE.read_text().strip() == before
        assert restoration.done
        assert [event["event"] for event in restoration.events] == ["restored", "journal"]
        assert not path.exists()

    def test_a_journal_that_anybody_can_write_is_not_carried_out(self, tmp_path: Path, registry: Path) -> None:
        before = EXPIRE.read_text()
        path = journal(tmp_path, "a", header(boot_id()) + step("1234"))
        path.chmod(0o666)
        assert not restore_all(only(path, registry=registry)).done
        assert EXPIRE.read_text() == before
        assert path.exists()

    @pytest.mark.parametrize("name", ["kernel.core_pattern", "vm.swappiness"])
    def test_a_journal_cannot_make_root_write_what_the_catalogue_lacks(
        self, tmp_path: Path, registry: Path, name: str
    ) -> None:
        before, expire = CORE_PATTERN.read_text(), EXPIRE.read_text()
        path = journal(
            tmp_path, "a", header(boot_id()) + step("|/bin/false", name, CORE_PATTERN) + step(expire.strip())
        )
        EXPIRE.write_text("1234\n")
        restoration = restore_all(only(path, registry=registry))
        try:
            assert CORE_PATTERN.read_text() == before
        finally:
            CORE_PATTERN.write_text(before)
        assert EXPIRE.read_text() == expire
        assert not restoration.done
        (refused,) = (event for event in restoration.events if event["event"] == "failed")
        assert (refused["tunable"], "the catalogue has no such tunable" in refused["message"]) == (name, True)
        assert path.exists()


@needs_root
@pytest.mark.usefixtures("machine_lock")
def test_one_that_a_dying_process_still_holds_is_waited_for(tmp_path: Path, registry: Path) -> None:
    path = journal(tmp_path, "a", header(boot_id()) + step(EXPIRE.read_text().strip()))
    holder = os.open(path, os.O_RDWR)
    fcntl.flock(holder, fcntl.LOCK_EX)
    dying = threading.Timer(0.5, os.close, [holder])
    dying.start()
    restored = restore_all(only(tmp_path, registry=registry))
    dying.join()
    assert restored.done, restored.events
    assert not path.exists()


@needs_root
@pytest.mark.usefixtures("machine_lock")
class TestAnotherHome:
    """The journal of a session of one home, killed with its guardian, and experiments of other homes."""

    @pytest.fixture
    def left(self, tmp_path: Path) -> Iterator[Path]:
        before = EXPIRE.read_text()
        journals = tmp_path / "first" / "state" / "journals"
        journals.mkdir(parents=True)
        argv: list[Any] = [native_program(AGENT), "serve", "--journal", journals]
        plan = {
            "id": "t",
            "writes": [
                {
                    "tunable": "vm.dirty_expire_centisecs",
                    "location": {"kind": "file", "path": str(EXPIRE)},
                    "value": "2987",
                }
            ],
            "workload": {"argv": ["/bin/sleep", "600"]},
        }
        assert before != "2987\n", "what another test left behind would look like this one's change"
        agent = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert agent.stdin is not None
        agent.stdin.write(json.dumps(plan) + "\n")
        agent.stdin.flush()
        while EXPIRE.read_text() != "2987\n":
            time.sleep(0.01)
        end(guardian_of(journals))
        agent.kill()
        agent.communicate()
        yield journals
        EXPIRE.write_text(before)
        if mine := [
            Path(journal.path) for journal in journals_in(journal_scope(journals)) if str(tmp_path) in journal.path
        ]:
            discard(mine)

    def test_a_refused_run_does_not_make_it_forgotten(self, left: Path, tmp_path: Path) -> None:
        other = Home(tmp_path / "d", tmp_path / "c", tmp_path / "s")
        for _ in range(3):
            with pytest.raises(RequestError, match=str(left)), HostExecutor(other):
                pytest.fail("an experiment began on leftover values")
        assert EXPIRE.read_text() == "2987\n"
        restored = restore_all(journal_scope(other.journals))
        assert restored.done
        assert EXPIRE.read_text() != "2987\n"
        with HostExecutor(other):
            pass

    def test_one_that_was_deleted_stands_in_the_way_too(self, left: Path, tmp_path: Path) -> None:
        other = Home(tmp_path / "d", tmp_path / "c", tmp_path / "s")
        (path,) = left.iterdir()
        path.unlink()
        with pytest.raises(RequestError, match="it was deleted") as caught, HostExecutor(other):
            pytest.fail("an experiment began on leftover values")
        assert f"ajuste restore --discard {path}" in (caught.value.hint or "")
        restore = subprocess.run(
            [Path(sys.executable).with_name("ajuste"), "restore"], capture_output=True, text=True, check=False
        )
        assert restore.returncode == 1
        assert "vm.dirty_expire_centisecs" in restore.stdout
        discard([path])
        with HostExecutor(other):
            pass
