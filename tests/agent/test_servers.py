"""Settings of running servers as places: what the agent writes there, judged by the servers' own clients."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.agent.conftest import Runner, registry_beside, until
from tests.agent.serving import Serving, shell
from tests.agent.test_guardian import end, guardian_of

import postgresql
from ajuste.model.event import Failed, ReadBack, Restored, Started, Written
from benchmarks import servers

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="PostgreSQL trusts the user of its own server")


@pytest.fixture(scope="module")
def redis() -> Iterator[servers.Redis]:
    _require_redis()
    with servers.redis() as server:
        yield server


def _require_redis() -> None:
    if shutil.which("redis-server") is None:
        pytest.skip("there is no Redis server here")


class Database:
    """A PostgreSQL server and a client of it that stays connected."""

    def __init__(self, server: postgresql.Server) -> None:
        self.socket = server.directory / ".s.PGSQL.5432"
        self.auto_conf = server.directory / "data/postgresql.auto.conf"
        url = {"host": str(server.directory), "user": postgresql.USER, "dbname": "postgres"}
        self.client = psycopg.connect(**url, autocommit=True)  # type: ignore[arg-type] # keywords of libpq

    def ask(self, query: str) -> str:
        (row,) = self.client.execute(query).fetchall()  # type: ignore[call-overload] # the tests' own words
        return str(row[0])

    def entries(self) -> list[str]:
        return [line for line in self.auto_conf.read_text().splitlines() if not line.startswith("#")]


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with postgresql.server() as server:
        yield Database(server)


def place(kind: str, address: Path | str, name: str) -> dict[str, str]:
    return {"kind": kind, "address": str(address), "name": name}


def write(kind: str, address: Path | str, name: str, value: str) -> dict[str, Any]:
    return {"tunable": f"{kind}.{name}", "location": place(kind, address, name), "value": value}


@pytest.fixture
def changing(agent: str, tmp_path: Path) -> Runner:
    (tmp_path / "journals").mkdir()
    return Runner(agent, tmp_path / "journals")


def test_a_setting_of_redis_is_set_during_the_workload_and_then_as_before(
    changing: Runner, redis: servers.Redis
) -> None:
    trial = changing.shell(
        f"redis-cli -s {redis.socket} CONFIG GET maxmemory-policy",
        writes=[write("redis", redis.socket, "maxmemory-policy", "allkeys-lru")],
    )
    assert trial.output().text.split() == ["maxmemory-policy", "allkeys-lru"]
    (written,), (restored,) = trial.of(Written), trial.of(Restored)
    assert (written.before, written.after) == ("noeviction", "allkeys-lru")
    assert (restored.found, restored.value) == ("allkeys-lru", redis.value("maxmemory-policy"))


def test_redis_at_a_port_of_the_loopback_interface_is_read(run: Runner) -> None:
    _require_redis()
    with servers.redis("--port", "21713", "--hz", "37") as server:
        assert server.value("hz") == "37"
        (read,) = run(reads=[{"tunable": "t", "location": place("redis", "127.0.0.1:21713", "hz")}]).of(ReadBack)
        assert read.value == "37"


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("maxmemory-policy", "best", "must be one of the following"),
        ("hz", "30\r\nFLUSHALL", "failed"),
        ("io-threads", "4", "immutable"),
        ("maxmemory", "1mb", "write 1048576"),
        ("lfu-*", "1", "no setting lfu-*"),
        ("nonsense", "1", "no setting nonsense"),
    ],
)
def test_what_redis_refuses_fails_with_its_reason_and_changes_nothing(
    changing: Runner, redis: servers.Redis, name: str, value: str, why: str
) -> None:
    redis.ask("SET", "key", "kept")
    before = redis.ask("CONFIG", "GET", "*")
    trial = changing.shell("true", writes=[write("redis", redis.socket, name, value)])
    assert why in trial.failed.message
    assert not trial.of(Started)
    assert redis.ask("CONFIG", "GET", "*") == before
    assert redis.ask("GET", "key") == ["kept"]


def test_a_redis_with_a_password_is_said_to_be_not_supported(run: Runner) -> None:
    _require_redis()
    with servers.redis("--requirepass", "secret") as server:
        (read,) = run(reads=[{"tunable": "t", "location": place("redis", server.socket, "hz")}]).of(ReadBack)
        assert "password is not supported" in (read.error or "")


@pytest.mark.parametrize("address", ["192.0.2.1:6379", "localhost:6379", "example.org:6379", "socket", ""])
def test_only_addresses_of_this_machine_are_connected_to(run: Runner, address: str) -> None:
    (read,) = run(reads=[{"tunable": "t", "location": place("redis", address, "hz")}]).of(ReadBack)
    assert "neither a socket nor an address of this machine" in (read.error or "")


def test_a_redis_that_ended_took_its_settings_with_it(changing: Runner) -> None:
    _require_redis()
    with servers.redis() as server:
        trial = changing.shell(
            f"kill -9 {server.process.pid}; while kill -0 {server.process.pid} 2>/dev/null && "
            f"! grep -q 'State:.Z' /proc/{server.process.pid}/status; do sleep 0.01; done",
            writes=[write("redis", server.socket, "hz", "30")],
        )
        assert "is gone" in trial.failed.message
        assert trial.exit_code == 1
        assert not list(Path(changing.arguments[3]).iterdir()), "there is nothing left to restore"


@needs_root
def test_a_setting_of_postgresql_is_in_force_for_connections_that_are_there(
    changing: Runner, database: Database
) -> None:
    (restored,) = changing.shell("true", writes=[write("postgresql", database.socket, "random_page_cost", "1.1")]).of(
        Restored
    )
    assert (restored.found, restored.value) == ("1.1", "4")
    serving = Serving(changing.arguments[0], Path(changing.arguments[3]))
    serving.send(writes=[write("postgresql", database.socket, "work_mem", "8MB")], workload=shell("sleep 1000"))
    serving.hear(Started)
    assert database.ask("SHOW work_mem") == "8MB"
    serving.process.terminate()
    serving.process.communicate()
    assert database.ask("SHOW work_mem") == "4MB"
    assert database.entries() == []


@needs_root
@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("shared_buffers", "1GB", "only after a restart"),
        ("log_connections", "on", "only for new connections"),
        ("block_size", "1", "cannot be changed"),
        ("work_mem", "8192", "write 8MB"),
        ("work_mem", "1'; DROP DATABASE postgres; --", "invalid value"),
        ('work_mem" = 1; --', "1", "no setting"),
        ("work_mem", "8MB\\'", "invalid value"),
    ],
)
def test_what_postgresql_refuses_fails_with_its_reason_and_changes_nothing(
    changing: Runner, database: Database, name: str, value: str, why: str
) -> None:
    trial = changing.shell("true", writes=[write("postgresql", database.socket, name, value)])
    assert why in trial.failed.message or "unrecognized configuration parameter" in trial.failed.message
    assert not trial.of(Started)
    assert database.entries() == []
    assert database.ask("SHOW work_mem") == "4MB"


@needs_root
def test_an_entry_that_was_there_is_there_again(changing: Runner, database: Database) -> None:
    database.client.execute("ALTER SYSTEM SET work_mem = '5120kB'")
    database.client.execute("SELECT pg_reload_conf()")
    until(lambda: database.ask("SHOW work_mem") == "5MB")
    try:
        changing.shell("true", writes=[write("postgresql", database.socket, "work_mem", "8MB")])
        assert database.entries() == ["work_mem = '5120kB'"]
        assert database.ask("SHOW work_mem") == "5MB"
        time.sleep(1.1)  # The server has the times of its files in whole seconds.
        database.client.execute("ALTER SYSTEM SET work_mem = '6MB'")
        trial = changing.shell("true", writes=[write("postgresql", database.socket, "work_mem", "8MB")])
        assert "reload it first" in trial.failed.message
        assert database.entries() == ["work_mem = '6MB'"]
    finally:
        database.client.execute("ALTER SYSTEM RESET work_mem")
        database.client.execute("SELECT pg_reload_conf()")


@needs_root
def test_a_value_of_the_servers_command_line_is_said_to_override(changing: Runner) -> None:
    with postgresql.server("-c work_mem=7MB") as server:
        database = Database(server)
        trial = changing.shell("true", writes=[write("postgresql", database.socket, "work_mem", "8MB")])
        assert "command line" in trial.failed.message
        assert database.entries() == []


def _restore(agent: str, journals: Path, boot: Path | None = None) -> subprocess.CompletedProcess[str]:
    places = json.loads(next(journals.iterdir()).read_text().splitlines()[1].partition(" ")[2])["back"]["location"]
    command = [agent, "restore", "--permit", "-", "--registry", str(registry_beside(journals)), str(journals)]
    if boot is not None:
        script = f'mount --bind {boot} /proc/sys/kernel/random/boot_id; exec "$@"'
        command = ["unshare", "--mount", "sh", "-c", script, "sh", *command]
    return subprocess.run(command, input=json.dumps([places]), capture_output=True, text=True, check=False)


def _left_by_a_killed_agent(agent: str, journals: Path, change: dict[str, Any]) -> None:
    serving = Serving(agent, journals)
    serving.send(writes=[change], workload=shell("sleep 1000"))
    started = serving.hear(Started)
    end(guardian_of(journals))
    serving.process.kill()
    serving.process.communicate()
    os.killpg(started.pid, signal.SIGKILL)


@needs_root
def test_after_a_reboot_postgresql_is_restored_and_redis_is_not(
    agent: str, tmp_path: Path, database: Database, redis: servers.Redis
) -> None:
    boot, journals = tmp_path / "boot", tmp_path / "journals"
    boot.write_text("11111111-2222-3333-4444-555555555555\n")
    journals.mkdir()
    _left_by_a_killed_agent(agent, journals, write("postgresql", database.socket, "work_mem", "9MB"))
    assert database.ask("SHOW work_mem") == "9MB"
    done = _restore(agent, journals, boot)
    assert (done.returncode, list(journals.iterdir())) == (0, []), done.stdout
    until(lambda: database.ask("SHOW work_mem") == "4MB")
    assert database.entries() == []

    _left_by_a_killed_agent(agent, journals, write("redis", redis.socket, "hz", "30"))
    done = _restore(agent, journals, boot)
    assert "of an earlier boot" in done.stdout
    assert redis.value("hz") == "30", "a server of another boot is another server"
    redis.ask("CONFIG", "SET", "hz", "10")


@needs_root
def test_a_postgresql_that_is_down_stays_in_the_journal_until_it_is_back(agent: str, tmp_path: Path) -> None:
    journals = tmp_path / "journals"
    journals.mkdir()
    with postgresql.server() as server:
        database = Database(server)
        _left_by_a_killed_agent(agent, journals, write("postgresql", database.socket, "work_mem", "9MB"))
        away = database.socket.with_name("away")
        database.socket.rename(away)
        done = _restore(agent, journals)
        assert done.returncode == 1
        assert "kept" in done.stdout
        away.rename(database.socket)
        assert _restore(agent, journals).returncode == 0
        until(lambda: database.ask("SHOW work_mem") == "4MB")
        assert not list(journals.iterdir())


@needs_root
def test_the_guardian_restores_both_servers(
    agent: str, tmp_path: Path, database: Database, redis: servers.Redis
) -> None:
    journals = tmp_path / "journals"
    journals.mkdir()
    serving = Serving(agent, journals)
    serving.send(
        writes=[
            write("postgresql", database.socket, "work_mem", "9MB"),
            write("redis", redis.socket, "hz", "30"),
        ],
        workload=shell("sleep 1000"),
    )
    serving.hear(Started)
    assert (database.ask("SHOW work_mem"), redis.value("hz")) == ("9MB", "30")
    serving.process.kill()
    serving.process.communicate()
    until(lambda: not list(journals.iterdir()))
    assert (database.ask("SHOW work_mem"), redis.value("hz")) == ("4MB", "10")
    assert database.entries() == []


@needs_root
def test_an_event_names_the_reason_of_a_server_that_does_not_answer(run: Runner, redis: servers.Redis) -> None:
    os.kill(redis.process.pid, signal.SIGSTOP)
    try:
        (read,) = run(reads=[{"tunable": "t", "location": place("redis", redis.socket, "hz")}]).of(ReadBack)
    finally:
        os.kill(redis.process.pid, signal.SIGCONT)
    assert "did not answer within 2 s" in (read.error or "")
    assert not run(reads=[]).of(Failed)
