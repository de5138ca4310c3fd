"""Caches: shown, limited and cleared, and never removed while a program uses them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

import warm
from ajuste.machine import cache
from ajuste.machine.cache import ASKED_FOR, KINDS, LEFTOVERS, clear, make_room, remove_leftovers, survey
from ajuste.machine.files import holding, locked
from ajuste.machine.home import Home
from ajuste.model.error import RequestError
from namespace import needs_root

LONG_AGO = 1_000_000


@pytest.fixture
def place(tmp_path: Path) -> Home:
    return Home(tmp_path / "data", tmp_path / "cache", tmp_path / "state")


def kind_in(place: Home, name: str) -> cache.Kept:
    return next(area for area in survey(place) if area.kind == name)


def add(path: Path, *, used_s: float = LONG_AGO, size_bytes: int = 65536) -> Path:
    path.mkdir(parents=True)
    (path / "content").write_bytes(os.urandom(size_bytes))
    os.utime(path, (used_s, used_s))
    return path


def test_each_kind_says_how_much_there_is_and_since_when_unused(place: Home) -> None:
    for number in range(2):
        add(place.kernels / f"6.1.{number}", used_s=LONG_AGO + number)
    place.booted.mkdir(parents=True)
    (place.booted / "a.snapshot").write_bytes(os.urandom(65536))
    kernels = kind_in(place, cache.KERNELS)
    assert (kernels.count, kernels.last_used, kernels.in_use) == (2, LONG_AGO + 1, 0)
    assert 2 * 65536 <= kernels.size_bytes <= 2 * 65536 + 16384
    assert kind_in(place, cache.SNAPSHOTS).count == 1
    assert kind_in(place, cache.HEADERS).count == 0


def test_every_kind_has_a_limit_here_or_one_of_its_own() -> None:
    assert [name for name, kind in KINDS.items() if kind.limit_bytes is None] == [cache.COMPILER]


def test_nothing_that_is_kept_is_without_a_kind(place: Home) -> None:
    """Whatever names a directory of the cache in the sources is shown and cleared."""
    top = Path(__file__).parents[2]
    sources = [file for folder in (top / "src", *top.glob("packages/*/src")) for file in folder.rglob("*.py")]
    text = "".join(file.read_text() for file in sources if file != Path(cache.__file__))
    named = {part.split('"')[1] for part in text.split("home.cache / ")[1:] if part.startswith('"')}
    assert named >= {"modules", "headers", "build", "ccache"}
    places = {kind.place(place) for kind in KINDS.values()} | {place.cache / "ccache"}
    assert {place.cache / name for name in named} <= places


def test_what_was_not_used_for_longest_goes_first_and_what_is_used_stays(
    place: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(KINDS, cache.KERNELS, replace(KINDS[cache.KERNELS], limit_bytes=200_000))
    entries = [add(place.kernels / f"6.{number}", used_s=LONG_AGO + number) for number in range(5)]
    with holding(entries[1]):
        os.utime(entries[1], (LONG_AGO, LONG_AGO))
        make_room(cache.KERNELS, place)
        assert [entry.exists() for entry in entries] == [False, True, False, False, True]
    make_room(cache.KERNELS, place)
    assert [entry.exists() for entry in entries] == [False, True, False, False, True]


def test_what_another_process_uses_is_not_cleared_and_what_it_used_is(place: Home) -> None:
    entry = add(place.kernels / "6.1")
    user = subprocess.Popen(
        [sys.executable, "-c", "import sys; from pathlib import Path; from ajuste.machine.files import hold; "
         "hold(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()", entry],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert user.stdout is not None
    assert user.stdout.readline() == "held\n"
    assert kind_in(place, cache.KERNELS).in_use == 1
    (cleared,) = clear([cache.KERNELS], place)
    assert (cleared.count, cleared.in_use) == (0, 1)
    assert (entry / "content").exists()
    user.kill()
    user.wait()
    (cleared,) = clear([cache.KERNELS], place)
    assert (cleared.count, cleared.in_use) == (1, 0)
    assert list(place.kernels.iterdir()) == []


def test_a_tree_that_is_built_in_is_not_cleared_nor_its_compiler_cache(place: Home) -> None:
    tree = add(place.cache / "build" / ("0" * 16))
    add(place.cache / "ccache")
    with locked(tree / "lock"):
        assert [area.count for area in clear([cache.OBJECTS, cache.COMPILER], place)] == [0, 0]
    assert [area.count for area in clear([cache.OBJECTS, cache.COMPILER], place)] == [1, 1]


def test_whoever_waits_for_a_tree_that_is_cleared_makes_it_anew(place: Home) -> None:
    lock = add(place.cache / "build" / ("0" * 16)) / "lock"
    with locked(lock):
        pass
    clear([cache.OBJECTS], place)
    with locked(lock):
        assert lock.exists()
        assert not (lock.parent / "content").exists()


def test_a_dry_run_says_the_same_and_removes_nothing(place: Home) -> None:
    entry = add(place.kernels / "6.1")
    preview = clear([cache.KERNELS], place, dry_run=True)
    assert entry.exists()
    assert clear([cache.KERNELS], place) == preview


def test_what_killed_commands_left_is_removed_by_the_next_and_what_is_being_made_is_not(place: Home) -> None:
    for name in (".fetching-x", ".building-y", ".removing-z"):
        add(place.cache / "headers" / name)
    place.booted.mkdir(parents=True)
    for name in ("a", "b"):
        (place.booted / f"{name}.snapshot.1.new").write_bytes(b"half")
        os.utime(place.booted / f"{name}.snapshot.1.new", (LONG_AGO, LONG_AGO))
    session = place.sessions / "vm-dead"
    session.mkdir(parents=True)
    (session / ".ajuste-session").write_text(json.dumps({"pid": 2**22 + 1, "boot": "another"}))
    with locked(place.cache / "headers/.lock"):
        assert kind_in(place, LEFTOVERS).in_use == 3
    being_made = place.booted / "b.snapshot.1.new"
    descriptor = os.open(being_made, os.O_RDONLY)
    with holding(being_made):
        os.utime(being_made, (LONG_AGO, LONG_AGO))
        remove_leftovers(place)
        assert list(place.booted.iterdir()) == [being_made]
    os.close(descriptor)
    os.utime(being_made, (LONG_AGO, LONG_AGO))
    remove_leftovers(place)
    assert list(place.booted.iterdir()) == []
    assert list(place.sessions.iterdir()) == []
    assert [path.name for path in (place.cache / "headers").iterdir()] == [".lock"]


def test_the_session_of_a_machine_that_shares_the_home_is_its_own(place: Home) -> None:
    session = place.sessions / "vm-elsewhere"
    session.mkdir(parents=True)
    (session / ".ajuste-session").write_text(json.dumps({"pid": 1, "boot": "theirs", "machine": "theirs"}))
    remove_leftovers(place)
    assert session.exists()


def test_the_package_lists_of_an_earlier_version_are_removed(place: Home) -> None:
    add(place.cache / "apt" / "debian")
    add(place.cache / "lists" / "debian")
    assert kind_in(place, LEFTOVERS).count == 1
    remove_leftovers(place)
    assert [*(place.cache / "apt").iterdir()] == []
    assert (place.cache / "lists/debian/content").is_file()


def ajuste(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return warm.run(words, home, {**os.environ, "AJUSTE_HOME": str(home)})


def test_the_command_shows_and_clears(tmp_path: Path) -> None:
    add(tmp_path / "cache/kernels/6.1")
    add(tmp_path / "cache/built" / ("a" * 64))
    (tmp_path / "data/reports").mkdir(parents=True)
    (tmp_path / "data/reports/1.html").write_text("report")
    areas = json.loads(ajuste(tmp_path, "cache", "--json").stdout)["cache"]
    assert {area["kind"]: area["count"] for area in areas if area["count"]} == {"kernels": 1, "built": 1, "reports": 1}
    assert {area["kind"] for area in areas} == {*KINDS, LEFTOVERS}
    table = [line.split("\t") for line in ajuste(tmp_path, "cache").stdout.splitlines()]
    last_used = datetime.fromtimestamp(LONG_AGO, UTC).isoformat(timespec="seconds")
    assert {row[0]: row[5] for row in table if row[5]}["kernels"] == last_used
    assert "kernels: 1 would be removed" in ajuste(tmp_path, "cache", "clear", "--dry-run").stdout
    cleared = json.loads(ajuste(tmp_path, "cache", "clear", "--json").stdout)["cleared"]
    assert {area["kind"]: area["count"] for area in cleared if area["count"]} == {"kernels": 1}
    assert not ASKED_FOR & {area["kind"] for area in cleared}
    assert ajuste(tmp_path, "cache", "clear", "built", "reports").returncode == 0
    assert [area["count"] for area in json.loads(ajuste(tmp_path, "cache", "--json").stdout)["cache"]] == [0] * (
        len(KINDS) + 1
    )


def test_a_kind_that_there_is_not_is_a_wrong_request(tmp_path: Path) -> None:
    done = ajuste(tmp_path, "cache", "clear", "snapshot")
    assert done.returncode == 2
    assert "did you mean snapshots?" in done.stderr


@needs_root
def test_root_empties_no_directory_through_the_link_of_another_user(place: Home, tmp_path: Path) -> None:
    add(tmp_path / "theirs" / "5.10")
    place.cache.mkdir()
    place.kernels.symlink_to(tmp_path / "theirs")
    os.lchown(place.kernels, 65534, 65534)
    with pytest.raises(RequestError, match="is a link owned by"):
        clear([cache.KERNELS], place)
    assert (tmp_path / "theirs" / "5.10" / "content").exists()
