"""A damaged store: the right answer or one clear error, never another figure, and what is intact can be kept."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ajuste.model.explanation import Recorded
from ajuste.store.schema import sealed
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
            code, output, complained = commands.run(*words)
            what = f"byte {place}, bit {bit}: {words}: {complained}"
            if code == 0:
                assert output == right[words][1], what
            else:
                assert code == 1, what
                assert "ajuste store salvage" in complained, what
                assert "Traceback" not in complained, what
                noticed += 1
    assert noticed, "none of the bits was in anything that is read"


FIGURES = "UPDATE trials SET figures = CAST(replace(CAST(figures AS TEXT), '{}', '{}') AS BLOB) WHERE {}"
FIRST, FOURTH = f"run_id = '{DECIDED}' AND block = 0 AND position = 0", f"run_id = '{DECIDED}' AND block = 1"
DAMAGE = {
    "a metric": (FIGURES.format(":11.0", ":10.0", FIRST), "block 0, trial 0"),
    "a status": (FIGURES.format('"ok"', '"failed"', FOURTH), "block 1, trial 0"),
    "a seed": (FIGURES.format("2989240760703465", "1", FOURTH), "block 1, trial 0"),
    "another type": (f"UPDATE trials SET figures = 12345678901 WHERE {FIRST}", "block 0, trial 0"),
    "no JSON": (f"UPDATE trials SET figures = x'00ff' WHERE {FIRST}", "block 0, trial 0"),
    "a block": (f"UPDATE trials SET block = 9 WHERE {FIRST}", "block 9, trial 0"),
    "events": (f"UPDATE trials SET outputs = outputs || '' WHERE {FIRST}", "block 0, trial 0"),
    "a machine": (f"UPDATE trials SET machine = 'lab2' WHERE {FIRST}", "block 0, trial 0"),
    "a trial that is gone": (f"DELETE FROM trials WHERE {FIRST}", "run .* has 6 of 7 trials"),
    "a trial of another run": (f"UPDATE trials SET run_id = '{DECIDED}' WHERE block = 3", "is damaged"),
    "the study": (
        "UPDATE documents SET document = CAST(replace(CAST(document AS TEXT), '75000000', '75000001') AS BLOB)"
        " WHERE kind = 'study'",
        "the record of run",
    ),
    "a study that is gone": ("DELETE FROM documents WHERE kind = 'study'", "the record of run .* is missing"),
    "the name": ("UPDATE runs SET study = 'smaller'", "the entry of run"),
    "a run that is gone": (f"DELETE FROM runs WHERE id = '{GOING_ON}'", "the store has 1 of 2 runs"),
    "the number of trials": ("UPDATE runs SET trials = 6", "the entry of run"),
    "the kept digest": ("UPDATE documents SET document = x'30' WHERE kind = 'digest'", "the kept digest"),
    "the number of runs": ("UPDATE store SET runs = 3", "the count of runs is damaged"),
    "no layout": ("DROP TABLE store", "its layout is missing"),
    "another layout": ("INSERT INTO alembic_version VALUES ('2')", "it has several layouts: 1, 2"),
    "another row of the store": (
        'INSERT INTO store SELECT layout + 1, runs, "check" FROM store',
        "it has several layouts: 1, 2",
    ),
    "the layout": ("UPDATE alembic_version SET version_num = 5", "it has several layouts: 5, 1"),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_damage_is_named_and_nothing_is_shown(commands: Commands, what: str) -> None:
    statement, named = DAMAGE[what]
    changed(commands, statement)
    code, output, complained = commands.run("report", DECIDED, "--json")
    assert (code, output) == (1, "")
    assert re.search(named, complained), complained
    assert "ajuste store check" in complained
    code, output, _ = commands.run("store", "check", "--json")
    assert code == 1
    assert json.loads(output)["damaged"]


@pytest.mark.parametrize(
    "words", [("report",), ("report", DECIDED), ("store", "check"), ("store", "size")], ids=" ".join
)
def test_a_newer_layout_is_refused_with_a_sentence_and_left_alone(commands: Commands, words: tuple[str, ...]) -> None:
    row = sealed(7, 2)
    changed(commands, 'UPDATE store SET layout = ?, "check" = ?', row[0], row[-1])
    changed(commands, "UPDATE alembic_version SET version_num = '7'")
    with closing(sqlite3.connect(commands.store)) as connection:
        before = list(connection.iterdump())
    code, output, complained = commands.run(*words)
    assert (code, output) == (2, "")
    assert "has layout 7; expected at most 1" in complained
    assert "use a newer version of Ajuste" in complained
    with closing(sqlite3.connect(commands.store)) as connection:
        assert list(connection.iterdump()) == before


def test_a_recording_that_is_gone_or_stale_is_noticed(commands: Commands) -> None:
    with Store(f"sqlite:///{commands.store}") as store:
        for seed in (7, 8):
            store.keep_recorded(store.find_run(DECIDED), Recorded(configuration="a", block=0, seed=seed, problem="no"))
    assert commands.run("report", DECIDED)[0] == 0
    changed(commands, "DELETE FROM documents WHERE kind IN ('recorded', 'results')")
    code, _, complained = commands.run("report", DECIDED)
    assert (code, f"the recordings of run {DECIDED} are damaged" in complained) == (1, True)
    assert commands.run("store", "check")[0] == 1


def test_the_record_of_a_suite_is_verified_and_salvaged(commands: Commands, tmp_path: Path) -> None:
    with Store(f"sqlite:///{commands.store}") as store:
        store.keep_suite("suite-whole", "{}")
        store.keep_suite("suite-damaged", "{}")
    changed(commands, "UPDATE documents SET document = x'5b5d' WHERE run_id = 'suite-damaged'")
    code, _, complained = commands.run("report", "suite-whole")
    assert (code, "the record of suite suite-damaged is damaged" in complained) == (1, True)
    assert commands.run("store", "check")[0] == 1
    new = tmp_path / "new.sqlite"
    done = commands.json("store", "salvage", "-o", str(new))
    assert any("suite-damaged" in line for line in done["lost"])
    with Store(f"sqlite:///{new}") as store:
        assert store.suites() == ["{}"]


def test_check_says_that_all_is_intact(commands: Commands) -> None:
    inspection = commands.json("store", "check")
    assert (inspection["intact"], inspection["runs"], inspection["trials"], inspection["damaged"]) == (True, 2, 15, [])


def test_there_is_nothing_to_check_before_there_is_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = Commands(tmp_path, monkeypatch)
    for words in (("store", "check"), ("store", "salvage", "-o", str(tmp_path / "new"))):
        code, _, complained = commands.run(*words)
        assert (code, "not found" in complained) == (2, True)
    assert not commands.store.exists()
    assert not (tmp_path / "new").exists()


def test_salvage_keeps_what_is_intact_and_says_what_is_lost(commands: Commands, tmp_path: Path) -> None:
    changed(commands, f"UPDATE trials SET figures = x'00' WHERE {FIRST}")
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
        (page,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'sqlite_autoindex_runs_1'"
        ).fetchone()
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
