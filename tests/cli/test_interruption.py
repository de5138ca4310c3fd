"""Interrupted at any moment, a run keeps what it measured, leaves nothing behind, and goes on where it stopped."""

from __future__ import annotations

import re
import signal
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from shell import SMALL, Shell, small
from tiers import slow

pytestmark = pytest.mark.vm

PATIENCE_S = 120
BLOCKS = 20  # A few seconds: the signal comes before the end on a busy machine, too.


def wait_until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.02)


def stored_trials(home: Path) -> int:
    store = home / "data" / "store.sqlite"
    if not store.exists():
        return 0
    with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as connection:
        try:
            return int(connection.execute("SELECT count(*) FROM trials").fetchone()[0])
        except sqlite3.OperationalError:  # The tables are being made.
            return 0


def machines(home: Path) -> list[psutil.Process]:
    """The QEMU processes that belong to this home."""
    guests = []
    for process in psutil.process_iter(["name", "cmdline", "status"]):
        words = " ".join(process.info["cmdline"] or [])
        if str(home.resolve()) in words and "qemu" in words and process.info["status"] != psutil.STATUS_ZOMBIE:
            guests.append(process)
    return guests


def sessions(home: Path) -> list[Path]:
    return list((home / "state" / "sessions").glob("*"))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Digests of runs that nobody interrupted; filled by the first test that needs it."""
    return {}


def interrupt(ajuste: Shell, number: signal.Signals, moment: Callable[[], bool]) -> None:
    """Send the signal at that moment; nothing may remain but what was measured."""
    process = ajuste.start("run", "small.toml", "--json")
    wait_until(moment)
    process.send_signal(number)
    output, complained = process.communicate()
    assert output == ""
    assert number == signal.SIGKILL or "interrupted" in complained
    assert number == signal.SIGKILL or ("are kept" in complained) == (stored_trials(ajuste.home) > 0)
    assert "Traceback" not in complained
    assert process.returncode == (-number if number == signal.SIGKILL else 130)
    wait_until(lambda: not machines(ajuste.home) and not sessions(ajuste.home))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=lambda n: n.name)
@pytest.mark.slow
def test_nothing_remains_of_a_boot(ajuste: Shell, number: signal.Signals) -> None:
    interrupt(ajuste, number, lambda: bool(machines(ajuste.home)))
    assert stored_trials(ajuste.home) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, *slow(signal.SIGKILL)], ids=lambda n: n.name)
def test_a_run_goes_on_where_it_was_interrupted(
    ajuste: Shell, undisturbed: dict[str, str], number: signal.Signals
) -> None:
    (ajuste.directory / "small.toml").write_text(small(BLOCKS, BLOCKS))
    interrupt(ajuste, number, lambda: stored_trials(ajuste.home) >= 1)
    assert 1 <= stored_trials(ajuste.home) < 2 * BLOCKS
    results = ajuste.json("run", "small.toml")
    assert len(results["trials"]) == 2 * BLOCKS
    assert len(ajuste.json("report")) == 1, "it was the same run that went on"
    assert results["digest"] == undisturbed.setdefault("digest", results["digest"])


@pytest.mark.slow
def test_an_undisturbed_run_has_the_same_digest_from_snapshot_and_cold_boot(
    ajuste: Shell, undisturbed: dict[str, str]
) -> None:
    (ajuste.directory / "small.toml").write_text(small(BLOCKS, BLOCKS))
    results = ajuste.json("run", "small.toml")
    assert results["digest"] == undisturbed.setdefault("digest", results["digest"])
    (ajuste.directory / "block.toml").write_text(re.sub(r"(min|max)_blocks = \d+", r"\1_blocks = 1", SMALL))
    block = ajuste.json("run", "block.toml", "--fresh")
    cold = ajuste.json("run", "block.toml", "--fresh", "--no-snapshot", "--jobs", "1")
    assert cold["digest"] == block["digest"]
    assert ajuste.json("run", "block.toml", "--seed", "2")["digest"] != block["digest"]
