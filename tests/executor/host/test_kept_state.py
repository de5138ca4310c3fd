"""The machine's state is kept before a run, and what is otherwise later is told: Ajuste's doing or not."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from ajuste.catalogue.loader import Catalogue, catalogue
from ajuste.executor.host.journals import MOST_KEPT, StateDifference, keep_state, kept_states, verify
from ajuste.machine.home import Home
from ajuste.model.error import RequestError, RunError
from ajuste.model.event import Hello, ReadBack
from ajuste.model.plan import FileLocation, Plan, Write
from ajuste.model.trial import Observation
from entries import entry, place

ONE, OTHER, ELSE = "/proc/sys/vm/one", "/proc/sys/vm/other", "/proc/sys/vm/else"
KNOWN = {
    tunable.name: tunable
    for tunable in (
        entry("vm.one", where=place("sysctl", ONE), companions=["vm.dirty_ratio"]),
        entry("vm.dirty_ratio", where=place("sysctl", "/proc/sys/vm/dirty_ratio")),
        entry("vm.else", where=place("sysctl", ELSE)),
        entry("cgroup.cpu.max", where=place("cgroup", attribute="cpu.max")),
    )
}
CATALOGUE = Catalogue(KNOWN, {}, {}, catalogue().parts)
WRITE = Write(tunable="vm.one", location=FileLocation(path=ONE), value="5")


class Machine:
    """A target that has ``values``; it can only be read."""

    def __init__(self, **values: str | None) -> None:
        self.values: dict[str, str | None] = {"vm.one": "1", "vm.dirty_ratio": "20", "vm.else": "3", **values}
        self.hello = Hello(
            at_ns=0,
            version=1,
            agent="0",
            kernel="6.12.1",
            build="",
            machine="x86_64",
            cpus=1,
            memory_bytes=1,
            guest=False,
        )

    def run(self, plan: Plan) -> Observation:
        assert not plan.writes
        assert plan.workload is None
        values = [(read.tunable, self.values.get(read.tunable)) for read in plan.reads]
        return Observation(
            events=tuple(
                ReadBack(at_ns=1, tunable=n, value=v, error=None if v is not None else "EIO") for n, v in values
            )
        )


@pytest.fixture
def place_(tmp_path: Path) -> Home:
    return Home(tmp_path / "data", tmp_path / "cache", tmp_path / "state")


def keep(home: Home, run: str, **values: str) -> None:
    keep_state(home, run, [WRITE], Machine(**values), CATALOGUE)  # type: ignore[arg-type]


def differences(home: Home, **values: Any) -> tuple[StateDifference, ...]:
    return verify(home, Machine(**values), CATALOGUE).differences  # type: ignore[arg-type]


def change(home: Home, **fields: object) -> None:
    for path in kept_states(home).iterdir():
        path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def test_nothing_differs_from_what_was_just_kept(place_: Home) -> None:
    keep(place_, "r1")
    verification = verify(place_, Machine(), CATALOGUE)  # type: ignore[arg-type]
    assert (verification.since.run, verification.checked, verification.differences) == ("r1", 3, ())


def test_what_ajuste_wrote_or_the_kernel_changed_along_is_told_from_what_others_changed(place_: Home) -> None:
    keep(place_, "r1")
    values = {"vm.one": "5", "vm.dirty_ratio": "0", "vm.else": "4"}
    assert differences(place_, **values) == (
        StateDifference("vm.one", "1", "5", by_ajuste=True),
        StateDifference("vm.dirty_ratio", "20", "0", by_ajuste=True),
        StateDifference("vm.else", "3", "4", by_ajuste=False),
    )


def test_what_cannot_be_read_any_more_differs(place_: Home) -> None:
    keep(place_, "r1")
    assert differences(place_, **{"vm.one": None}) == (StateDifference("vm.one", "1", None, by_ajuste=True),)


def test_the_way_a_number_is_written_does_not_matter(place_: Home) -> None:
    keep(place_, "r1", **{"vm.one": "0x10"})
    assert differences(place_, **{"vm.one": "16"}) == ()


def test_a_run_that_goes_on_is_compared_with_its_beginning(place_: Home) -> None:
    keep(place_, "r1")
    keep(place_, "r1", **{"vm.one": "7"})
    assert differences(place_, **{"vm.one": "7"}) == (StateDifference("vm.one", "1", "7", by_ajuste=True),)


def test_only_the_last_few_are_kept_in_the_order_in_which_they_came(place_: Home) -> None:
    for number in range(MOST_KEPT + 3):
        keep(place_, f"r{number}", **{"vm.one": str(number)})
    files = sorted(kept_states(place_).iterdir())
    assert [path.name.partition("-")[2] for path in files] == [f"r{n}.json" for n in range(3, MOST_KEPT + 3)]
    assert verify(place_, Machine(), CATALOGUE).since.run == f"r{MOST_KEPT + 2}"  # type: ignore[arg-type]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert stat.S_IMODE(kept_states(place_).stat().st_mode) == 0o700


def test_a_run_before_this_one_may_have_written_it(place_: Home) -> None:
    keep(place_, "r1")
    keep_state(
        place_,
        "r2",
        [WRITE.model_copy(update={"tunable": "vm.else", "location": FileLocation(path=ELSE)})],
        Machine(),  # type: ignore[arg-type]
        CATALOGUE,
    )
    assert [difference.by_ajuste for difference in differences(place_, **{"vm.one": "5", "vm.else": "5"})] == [
        True,
        True,
    ]


def test_without_a_state_that_is_said(place_: Home) -> None:
    with pytest.raises(RequestError, match="there is no state to compare with"):
        differences(place_)


def test_one_of_an_earlier_boot_is_none(place_: Home) -> None:
    keep(place_, "r1")
    change(place_, boot="another")
    with pytest.raises(RequestError, match="from an earlier boot"):
        differences(place_)


@pytest.mark.parametrize("content", [b"", b"{", b"[" * 100_000, b'{"values": 7}', b"\xff"])
def test_one_that_cannot_be_read_is_said(place_: Home, content: bytes) -> None:
    keep(place_, "r1")
    for path in kept_states(place_).iterdir():
        path.write_bytes(content)
    with pytest.raises(RunError, match="cannot read"):
        differences(place_)


def test_a_full_disk_leaves_no_half_of_one(place_: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        keep(place_, "r1")
    assert list(kept_states(place_).iterdir()) == []


def test_what_a_killed_process_was_writing_is_removed_by_the_next(place_: Home) -> None:
    keep(place_, "r1")
    half = kept_states(place_) / ".00000002-r2.json.4242"
    half.write_text('{"boot"')
    keep(place_, "r2")
    assert [path.name for path in sorted(kept_states(place_).iterdir())] == ["00000001-r1.json", "00000002-r2.json"]


def test_a_run_with_the_trials_of_another_is_found_too(place_: Home) -> None:
    keep(place_, "20261122-163035-00b9d1", **{"vm.one": "5"})
    keep(place_, "20261122-163035-00b9d1.2", **{"vm.one": "6"})
    assert verify(place_, Machine(), CATALOGUE).since.run == "20261122-163035-00b9d1.2"  # type: ignore[arg-type]
