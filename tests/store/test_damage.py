"""A damaged store: the right answer or one clear error, never another figure, and what is intact can be kept."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ajuste.store.store import Store
from small_stores import DECIDED, DIGEST, GOING_ON, Commands, flipped

FLIPS = int(os.environ.get("AJUSTE_FUZZ", "24"))
"""Bits that are flipped, spread over the file; ``make fuzz`` flips many more."""
READING = (
    ("report", "--json"),
    ("report", DECIDED, "--json"),
    ("report", GOING_ON, "--trials", "--json"),
    ("report", DECIDED, "--format", "lkml"),
)


def changed(commands: Commands, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(commands.store)) as connection, connection:
        connection.execute(statement, values)


@pytest.mark.timeout(0 if FLIPS > 100 else 300)
def test_a_flipped_bit_gives_the_right_answer_or_one_clear_error(commands: Commands, tmp_path: Path) -> None:
    content = commands.store.read_bytes()
    right = {words: commands.run(*words)[:2] for words in READING}
    assert [code for code, _ in right.values()] == [0, 0, 0, 0]
    assert json.loads(right[READING[1]][1])["digest"] == DIGEST
    noticed = 0
    for number in range(FLIPS):
        place, bit = number * len(content) // FLIPS, number % 8
        for words in READING:
            commands.put(commands.store, flipped(content, place, bit))
            code, said, complained = commands.run(*words)
            what = f"byte {place}, bit {bit}: {words}: {complained}"
            if code == 0:
                assert said == right[words][1], what
            else:
                assert code == 1, what
                assert "ajuste store salvage" in complained, what
                assert "Traceback" not in complained, what
                noticed += 1
    assert noticed, "none of the bits was in anything that is read"


DAMAGE = {
    "a metric": ("UPDATE trials SET metrics = replace(metrics, '11', '10') WHERE number = 2", "block 0, trial 0"),
    "a status": ("UPDATE trials SET status = 'failed' WHERE number = 4", "block 2, trial 0"),
    "a seed": ("UPDATE trials SET seed = '1' WHERE number = 4", "block 2, trial 0"),
    "another type": ("UPDATE trials SET metrics = x'00ff' WHERE number = 4", "block 2, trial 0"),
    "a trial that is gone": ("DELETE FROM trials WHERE number = 4", "run .* has 6 of 7 trials"),
    "the study": ("UPDATE runs SET resolved = replace(resolved, '75000000', '75000001')", "the record of run"),
    "the name": ("UPDATE runs SET study = 'smaller'", "the entry of run"),
    "a run that is gone": (f"DELETE FROM runs WHERE id = '{GOING_ON}'", "the store has 1 of 2 runs"),
    "the count": ("UPDATE tallies SET rows = 6 WHERE kind = 'trials'", "the count of run"),
    "a packed column": ("UPDATE columns SET words = replace(words, '75', '76') WHERE name = 'configuration'", "packed"),
    "packed figures": ("UPDATE columns SET numbers = zeroblob(length(numbers)) WHERE name = 'block'", "packed"),
    "a column that is gone": ("DELETE FROM columns WHERE place = 3", "packed columns"),
    "the kept digest": ("UPDATE digests SET digest = replace(digest, '5', '6')", "the kept digest"),
    "the layout": ("UPDATE store_version SET version = 5", "it has two layouts, 5 and 4"),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_damage_is_named_and_nothing_is_shown(commands: Commands, what: str) -> None:
    statement, named = DAMAGE[what]
    changed(commands, "PRAGMA foreign_keys=OFF")
    if "trials" in statement and "tallies" not in statement:  # Else the figures are not read from the trials.
        changed(commands, "DELETE FROM columns")
    changed(commands, statement)
    code, said, complained = commands.run("report", DECIDED, "--json")
    assert (code, said) == (1, "")
    assert re.search(named, complained), complained
    assert "ajuste store check" in complained
    code, said, _ = commands.run("store", "check", "--json")
    assert code == 1
    assert json.loads(said)["damaged"]


def test_events_that_changed_are_noticed_by_the_digest_and_where_they_are_shown(commands: Commands) -> None:
    changed(commands, "UPDATE trials SET events = replace(events, 'checksum=1', 'checksum=3') WHERE number = 9")
    for words in (("report", GOING_ON), ("report", GOING_ON, "--trials")):
        code, _, complained = commands.run(*words)
        assert code == 1
        assert f"the output of run {GOING_ON}, block 0, trial 1 (attempt 0) is damaged" in complained


def test_a_machine_of_a_block_is_verified(commands: Commands) -> None:
    changed(commands, "UPDATE machines SET machine = 'lab2'")
    code, _, complained = commands.run("report", GOING_ON)
    assert (code, "machines" in complained) == (1, True)


def test_the_record_of_a_suite_is_verified_and_salvaged(commands: Commands, tmp_path: Path) -> None:
    with Store(f"sqlite:///{commands.store}") as store:
        store.keep_suite("suite-whole", "{}")
        store.keep_suite("suite-damaged", "{}")
    changed(commands, "UPDATE suites SET document = '[]' WHERE id = 'suite-damaged'")
    code, _, complained = commands.run("report", "suite-whole")
    assert (code, "the record of suite suite-damaged is damaged" in complained) == (1, True)
    assert commands.run("store", "check")[0] == 1
    new = tmp_path / "new.sqlite"
    done = commands.json("store", "salvage", "-o", str(new))
    assert any("suite-damaged" in line for line in done["lost"])
    with Store(f"sqlite:///{new}") as store:
        assert store.suites() == ["{}"]


def test_check_says_that_all_is_intact(commands: Commands) -> None:
    found = commands.json("store", "check")
    assert (found["intact"], found["runs"], found["trials"], found["damaged"]) == (True, 2, 15, [])
    assert sorted(found["unverified_before"]) == sorted([DECIDED, GOING_ON])


def test_there_is_nothing_to_check_before_there_is_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = Commands(tmp_path, monkeypatch)
    for words in (("store", "check"), ("store", "salvage", "-o", str(tmp_path / "new"))):
        code, _, complained = commands.run(*words)
        assert (code, "not found" in complained) == (2, True)
    assert not commands.store.exists()
    assert not (tmp_path / "new").exists()


def test_salvage_keeps_what_is_intact_and_says_what_is_lost(commands: Commands, tmp_path: Path) -> None:
    changed(commands, "UPDATE trials SET metrics = '{}' WHERE number = 2")
    before = commands.store.read_bytes()
    new = tmp_path / "new.sqlite"
    done = commands.json("store", "salvage", "-o", str(new))
    assert (done["runs"], done["trials"]) == (2, 14)
    assert any("block 0, trial 0" in line for line in done["lost"])
    assert f"run {DECIDED}: 1 of 7 trials; it can go on" in done["lost"]
    assert commands.store.read_bytes() == before
    commands.put(new)
    assert commands.json("store", "check")["intact"]
    stopped = {run["run"]: run["stopped"] for run in commands.json("report")}
    assert stopped == {DECIDED: "unfinished", GOING_ON: "unfinished"}
    assert commands.run("store", "salvage", "-o", str(new))[0] == 2, "nothing is written over"
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    assert commands.run("store", "salvage", "-o", str(tmp_path / "link"))[0] == 2, "no link is followed"
    assert not (tmp_path / "elsewhere").exists()


def test_of_a_malformed_file_what_can_be_read_is_kept(commands: Commands, tmp_path: Path) -> None:
    with closing(sqlite3.connect(commands.store)) as connection:
        (page,) = connection.execute("SELECT pageno FROM dbstat WHERE name = 'trials' AND pagetype = 'leaf'").fetchone()
    content = bytearray(commands.store.read_bytes())
    content[4096 * (page - 1) : 4096 * page] = bytes(4096)
    commands.put(commands.store, bytes(content))
    assert commands.run("report", DECIDED, "--trials")[0] == 1
    new = tmp_path / "new.sqlite"
    done = commands.json("store", "salvage", "-o", str(new))
    assert done["runs"] == 2
    assert 0 < done["trials"] < 15
    assert done["lost"]
    commands.put(new)
    assert commands.json("store", "check")["trials"] == done["trials"]


def test_a_run_does_not_go_on_in_a_malformed_store(commands: Commands) -> None:
    with closing(sqlite3.connect(commands.store)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'ix_runs_study'").fetchone()
    content = bytearray(commands.store.read_bytes())
    content[4096 * (page - 1) : 4096 * page] = bytes(4096)
    commands.put(commands.store, bytes(content))
    code, _, complained = commands.run("report")
    assert (code, "malformed" in complained) == (1, True)


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "made",
    [
        "CREATE TRIGGER sly AFTER INSERT ON runs BEGIN DELETE FROM trials; END",
        "CREATE VIEW sly AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT * FROM n",
        "ALTER TABLE trials RENAME TO hidden; CREATE VIEW trials AS "
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT i AS run_id FROM n",
    ],
)
def test_a_store_that_acts_when_it_is_read_or_written_is_refused(commands: Commands, tmp_path: Path, made: str) -> None:
    with closing(sqlite3.connect(commands.store)) as connection, connection:
        connection.executescript(made)
    assert commands.run("store", "check")[0] == 1
    assert commands.run("store", "salvage", "-o", str(tmp_path / "new.sqlite"))[0] in (0, 1)
    _, _, complained = commands.run("report")
    assert "which Ajuste did not make" in complained
