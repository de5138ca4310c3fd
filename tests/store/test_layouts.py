"""Stores of older layouts are brought to today's, whole or not at all."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ajuste.model.error import RunError
from ajuste.store.database import database_at
from ajuste.store.record import KeptRecord
from ajuste.store.store import Store
from ajuste.store.tallies import LAYOUT, STORE, TrialTally, keep_tally
from small_stores import DECIDED, DIGEST, GOING_ON, LAYOUT_2, Commands, layout_1, small_store


def test_a_store_of_layout_1_is_shown_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = Commands(tmp_path, monkeypatch)
    layout_1(commands.store)
    assert sorted(run["run"] for run in commands.json("report")) == sorted([GOING_ON, DECIDED])
    assert commands.json("report", DECIDED)["digest"] == DIGEST
    assert commands.json("report", "small")["run"] == GOING_ON, "it was taken up last"
    assert sorted(commands.json("store", "check")["unverified_before"]) == sorted([DECIDED, GOING_ON])


def test_nothing_of_layout_1_is_lost(tmp_path: Path) -> None:
    file = layout_1(tmp_path / "store.sqlite")
    names = "run_id, block, position, attempt, configuration, seed, warm_up, status, reason, metrics, not_supported,"
    query = f"SELECT {names} written, events, console, started, host_seconds FROM trials ORDER BY number"
    with closing(sqlite3.connect(file)) as connection:
        before = connection.execute(query).fetchall()
    with Store(f"sqlite:///{file}") as store:
        assert store.digest(store.find_run(DECIDED), 7) == DIGEST
        assert KeptRecord(store.find_run(GOING_ON), store).digest == DIGEST
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute(query).fetchall() == before
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    assert not [name for name in tables if name.startswith("layout_1") or name == "taken_up"]


def test_trials_that_changed_since_their_digest_was_kept_are_not_migrated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = Commands(tmp_path, monkeypatch)
    layout_1(commands.store)
    with closing(sqlite3.connect(commands.store)) as connection, connection:
        connection.execute("UPDATE trials SET metrics = replace(metrics, '100', '101') WHERE number = 1")
    with closing(sqlite3.connect(commands.store)) as connection:
        before = list(connection.iterdump())
    with pytest.raises(RunError, match=f"trials of run {DECIDED} do not match its digest") as refused:
        Store(f"sqlite:///{commands.store}")
    assert "ajuste store salvage" in str(refused.value.hint)
    with closing(sqlite3.connect(commands.store)) as connection:
        assert list(connection.iterdump()) == before, "a migration that fails changes nothing"
    done = commands.json("store", "salvage", "-o", str(tmp_path / "new.sqlite"))
    assert (done["runs"], done["trials"]) == (1, 7)
    assert DECIDED in done["lost"][0]


def test_a_store_of_layout_2_is_shown_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = Commands(tmp_path, monkeypatch)
    layout_1(commands.store, LAYOUT_2)
    assert commands.json("report", DECIDED)["digest"] == DIGEST
    assert commands.json("report", "small")["run"] == GOING_ON, "it was taken up last"
    listed = {run["run"]: run for run in commands.json("report")}
    assert listed[DECIDED]["kernel"] == "debian:5.10"
    assert listed[DECIDED]["workload"] == "matrix"
    assert listed[DECIDED]["answer"] == commands.json("report", DECIDED)["answer"]
    assert commands.json("store", "check")["intact"]


def test_a_store_of_layout_3_gets_room_for_suites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = Commands(tmp_path, monkeypatch)
    database = database_at(f"sqlite:///{small_store(commands.store)}")
    with closing(database), database.transaction(writes=True) as transaction:
        transaction.run("DROP TABLE suites")
        transaction.run("UPDATE store_version SET version = 3")
        keep_tally(transaction, STORE, LAYOUT, TrialTally(3))
    with Store(f"sqlite:///{commands.store}") as store:
        store.keep_suite("suite-one", "{}")
        assert store.suites() == ["{}"]
    assert commands.json("report", DECIDED)["digest"] == DIGEST
    assert commands.json("store", "check")["intact"]


def test_a_damaged_run_of_layout_2_is_not_migrated(tmp_path: Path) -> None:
    file = layout_1(tmp_path / "store.sqlite", LAYOUT_2)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE runs SET stopped_because = 'all is well' WHERE id = ?", [DECIDED])
    with pytest.raises(RunError, match=f"run {DECIDED} is damaged"):
        Store(f"sqlite:///{file}")


@pytest.mark.parametrize(
    "words", [("report",), ("report", DECIDED), ("store", "check"), ("store", "size")], ids=" ".join
)
def test_a_newer_layout_is_refused_with_a_sentence_and_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    commands = Commands(tmp_path, monkeypatch)
    layout_1(commands.store, LAYOUT_2)
    with closing(sqlite3.connect(commands.store)) as connection, connection:
        connection.execute("UPDATE store_version SET version = 5")
        before = list(connection.iterdump())
    code, said, complained = commands.run(*words)
    assert (code, said) == (2, "")
    assert "has layout 5; expected at most 4" in complained
    assert "use a newer version of Ajuste" in complained
    with closing(sqlite3.connect(commands.store)) as connection:
        assert list(connection.iterdump()) == before
