"""A damaged store: the right answer or one clear error, never another figure, and what is intact can be kept."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from small_stores import DECIDED, DIGEST, GOING_ON, Commands, flipped, small_store

FLIPS = int(os.environ.get("AJUSTE_FUZZ", "24"))
"""Bits that are flipped, spread over the file; ``make fuzz`` flips many more."""
READING = (
    ("report", "--json"),
    ("report", DECIDED, "--json"),
    ("report", GOING_ON, "--trials", "--json"),
    ("export", DECIDED, "sched_min_granularity_ns=75000000", "--json"),
)


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    made = Commands(tmp_path / "home", monkeypatch)
    small_store(made.store)
    return made


def changed(commands: Commands, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(commands.store)) as connection, connection:
        connection.execute(statement, values)


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
