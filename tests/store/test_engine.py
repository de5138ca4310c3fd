"""Opening stores: what cannot be opened is said in one sentence, and no password is shown."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import psutil
import psycopg
import pytest
import sqlalchemy as sa

from ajuste.model.error import RequestError, RunError
from ajuste.model.trial import Slot, Trial
from ajuste.store.engine import unusable, upgrade
from ajuste.store.salvage import inspect_store
from ajuste.store.store import Store
from postgresql import Server


def test_a_new_store_is_what_the_layouts_make_step_by_step(tmp_path: Path) -> None:
    def content(file: Path) -> list[list[object]]:
        tables = "(SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name)"
        with closing(sqlite3.connect(file)) as database:
            names = (tables, "alembic_version", "store")
            return [database.execute(f"SELECT * FROM {name}").fetchall() for name in names]

    with Store(f"sqlite:///{tmp_path / 'new.sqlite'}"):
        pass
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'steps.sqlite'}")
    with engine.begin() as connection:
        upgrade(connection)
    engine.dispose()
    assert content(tmp_path / "new.sqlite") == content(tmp_path / "steps.sqlite")


def test_two_machines_that_share_a_store_do_not_measure_the_same_study_at_once(postgresql: Server) -> None:
    url = postgresql.new_database()
    with Store(url) as here, Store(url) as there:
        with (
            here.reserved("f", 1, "the study s"),
            there.reserved("f", 2, "another seed"),
            pytest.raises(RequestError, match="another process runs the study s"),
            there.reserved("f", 1, "the study s"),
        ):
            pass
        with there.reserved("f", 1, "the study s"):
            pass


def test_a_server_that_is_not_there_is_one_clear_error_without_the_password() -> None:
    with pytest.raises(RequestError, match="cannot be opened") as refused:
        Store("postgresql://someone:secret@/nothing?host=/nowhere")
    assert "someone:***@" in str(refused.value)
    assert "secret" not in str(refused.value) + str(refused.value.hint)


@pytest.mark.parametrize("at_once", [1, 20])
def test_a_connection_that_is_lost_is_told_once_and_replaced(
    at_once: int, postgresql: Server, capfd: pytest.CaptureFixture[str]
) -> None:
    url = postgresql.new_database()
    slots = [Slot(block=0, position=place, configuration="a", seed=1) for place in range(at_once)]
    trials = [Trial(slot=slot, status="ok") for slot in slots]
    with Store(url) as store:
        run = store.new_run(study="s", fingerprint="f", seed=1, ajuste="0", named="s", resolved="", environment={})
        with psycopg.connect(url, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        with pytest.raises(RunError, match="cannot be written") as lost:
            store.add_trials(run, trials)
        assert "resume" in (lost.value.hint or "")
        store.add_trials(run, trials)
        assert store.trials(run) == trials
    assert capfd.readouterr().err == ""


BEGINNING = """
import sys
from ajuste.store.store import Store

print("here", flush=True)
sys.stdin.readline()
with Store(sys.argv[1]) as store:
    named = dict(study=sys.argv[2], fingerprint=sys.argv[2], seed=1, ajuste="0", named="s", resolved="", environment={})
    store.new_run(**named)
"""


def test_those_who_begin_a_shared_store_at_once_find_one_store_with_all_their_runs(postgresql: Server) -> None:
    url = postgresql.new_database()
    with ExitStack() as stack:
        everybody = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", BEGINNING, url, str(number)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
            for number in range(6)
        ]
        for process in everybody:
            assert process.stdout is not None
            assert process.stdout.readline() == "here\n"
        for process in everybody:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        assert [process.communicate()[1] for process in everybody] == [""] * len(everybody)
    assert (inspect_store(url).damaged, inspect_store(url).runs) == ([], len(everybody))


INTERRUPTED = """
import sys
from ajuste.store.store import Store

with Store(sys.argv[1]) as store, store.reserved("f", 1, "a study"):
    print("reserved", flush=True)
    sys.stdin.readline()
    store.runs()
"""


def test_a_server_that_stands_still_keeps_nobody_who_interrupts(postgresql: Server) -> None:
    url = postgresql.new_database()
    with Store(url) as store:
        store.runs()
    command = [sys.executable, "-c", INTERRUPTED, url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as client:
        assert client.stdin is not None
        assert client.stdout is not None
        assert client.stdout.readline() == b"reserved\n"
        with psycopg.connect(url) as other:
            rows = other.execute(
                "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            ).fetchall()
        standing = [psutil.Process(pid) for (pid,) in rows]
        standing.append(standing[0].parent() or standing[0])  # It takes the request to cancel.
        try:
            for process in standing:
                process.suspend()
            client.stdin.write(b"\n")
            client.stdin.flush()
            time.sleep(1)
            client.send_signal(signal.SIGINT)
            client.wait(timeout=45)
        finally:
            for process in standing:
                with suppress(psutil.NoSuchProcess):  # Its client has left.
                    process.resume()
            client.kill()


def test_a_database_that_is_not_there_is_named(postgresql: Server) -> None:
    with pytest.raises(RequestError, match='database "nothing" does not exist'):
        Store(f"postgresql://postgres@/nothing?host={postgresql.directory}")


@pytest.mark.parametrize("url", ["nonsense", "", "redis://host/1", "postgresql+nothing://host/d"])
def test_what_is_no_url_of_a_store_is_told_what_one_looks_like(url: str) -> None:
    with pytest.raises(RequestError) as refused:
        Store(url)
    assert "postgresql://USER@HOST/DATABASE" in str(refused.value) + str(refused.value.hint)


def test_another_kind_of_database_is_refused_by_name() -> None:
    with pytest.raises(RequestError, match=r"mysql.* is not a store"):
        Store("mysql+mysqldb://host/d")


def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(RequestError, match="psycopg is not installed"):
        Store("postgresql://host/d")


def test_a_server_that_is_cut_off_is_no_damaged_store() -> None:
    failure = unusable("postgresql://h/d", OSError("connection is bad\n\tIs the server running?"), "read")
    assert isinstance(failure, RunError)
    assert "resume" in (failure.hint or "")
    assert "salvage" not in (failure.hint or "")


@pytest.mark.parametrize(("free", "word"), [(0, "is full"), (1 << 30, "disk I/O error")])
def test_a_full_disk_is_called_so(free: int, word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite calls it an I/O error where the file beside the store cannot grow."""
    usage = shutil.disk_usage(tmp_path)._replace(free=free)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_WRITE  # type: ignore[misc]
    failure = unusable(f"sqlite:///{tmp_path}/store", error, "written")
    assert word in failure.message
    assert "earlier measurements are kept" in (failure.hint or "")


@pytest.mark.timeout(20)
@pytest.mark.parametrize("open_store", [Store, inspect_store])
@pytest.mark.parametrize("what", ["FIFO", "directory", "device", "link to a FIFO"])
def test_a_store_that_is_no_file_is_said_so_at_once(
    what: str, open_store: Callable[[str], object], tmp_path: Path
) -> None:
    file = tmp_path / "store"
    os.mkfifo(tmp_path / "fifo")
    match what:
        case "directory":
            file.mkdir()
        case "device":
            file = Path("/dev/zero")
        case _:
            file = tmp_path / "fifo"
    if what == "link to a FIFO":
        file = tmp_path / "link"
        file.symlink_to("fifo")
    with pytest.raises(RequestError, match="is not a regular file"):
        open_store(f"sqlite:///{file}")
