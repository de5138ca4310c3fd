"""A private Redis and PostgreSQL whose settings a live experiment changes, and the values that both show."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

USER: Final = "postgres"
_LONGEST_SECONDS: Final = 60.0
_REDIS_SETTINGS: Final = {"hz": "10,30", "active-expire-effort": "1,5", "lfu-decay-time": "1,3"}
_POSTGRESQL_SETTINGS: Final = {"random_page_cost": "4,1.1", "work_mem": "4MB,8MB"}


@dataclass(frozen=True)
class Redis:
    """A server that listens at ``socket``."""

    socket: Path
    process: subprocess.Popen[bytes]

    def ask(self, *words: str) -> list[str]:
        """Return what redis-cli prints."""
        command = ["redis-cli", "-s", str(self.socket), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()

    def value(self, name: str) -> str:
        """Return the value of a setting."""
        return self.ask("CONFIG", "GET", name)[1]


def _listens(path: Path) -> bool:
    # A socket's file is there before anyone listens at it.
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(path)) == 0


@contextmanager
def redis(*options: str) -> Iterator[Redis]:
    """A server without a port, and without data on disk."""
    with TemporaryDirectory(prefix="redis-") as place:
        address = Path(place, "socket")
        command = ["redis-server", "--port", "0", "--unixsocket", str(address), "--save", "", "--dir", place, *options]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + _LONGEST_SECONDS
            while not _listens(address):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError("redis-server does not start")
                time.sleep(0.01)
            yield Redis(address, process)
        finally:
            process.kill()
            process.wait()


def programs_of_postgresql() -> Path | None:
    """Return the directory of Debian's newest server."""
    return max(Path("/usr/lib/postgresql").glob("*/bin"), default=None)


@contextmanager
def postgresql(*options: str) -> Iterator[Path]:
    """The directory of a server: its socket, its ``data`` and its ``log``. ``options`` are of its command line."""
    programs = programs_of_postgresql()
    assert programs is not None
    # The server refuses to be root, and a socket's path has at most 107 bytes.
    as_user = ["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups"] if os.geteuid() == 0 else []
    with TemporaryDirectory(prefix="pg-") as place:
        directory = Path(place)
        if as_user:
            shutil.chown(directory, USER, USER)

        def run(program: str, *words: str) -> None:
            subprocess.run(
                [*as_user, programs / program, *words], check=True, cwd="/", stdout=subprocess.DEVNULL, timeout=60
            )

        data = str(directory / "data")
        run("initdb", "--auth=trust", "--no-sync", "--no-locale", "--encoding=UTF8", f"--username={USER}", data)
        words = ["-c listen_addresses=", f"-c unix_socket_directories={directory}", "-c fsync=off", *options]
        start = ("start", "--wait", "--silent", f"--log={directory / 'log'}", f"--options={' '.join(words)}")
        run("pg_ctl", *start, "-D", data)
        try:
            yield directory
        finally:
            run("pg_ctl", "stop", "--mode=immediate", "--silent", "-D", data)


@dataclass(frozen=True)
class Servers:
    """A Redis and a PostgreSQL, as a live experiment changes them."""

    redis: Redis
    postgresql: Path

    def values(self) -> dict[str, str]:
        """Return the settings in force, and all entries of PostgreSQL's own file."""
        values = {f"redis {name}": self.redis.value(name) for name in _REDIS_SETTINGS}
        psql = ["psql", "--host", str(self.postgresql), "--username", USER, "--no-psqlrc", "-Atc"]
        for name in _POSTGRESQL_SETTINGS:
            done = subprocess.run([*psql, f"SHOW {name}", "postgres"], capture_output=True, text=True, check=True)
            values[f"postgresql {name}"] = done.stdout
        entries = (self.postgresql / "data/postgresql.auto.conf").read_text()
        return values | {"postgresql.auto.conf": entries}

    def words(self) -> Sequence[str]:
        """Return the words of `ajuste live` that vary the settings."""
        addresses = {"redis": str(self.redis.socket), "postgresql": f"{self.postgresql}/.s.PGSQL.5432"}
        settings = {"redis": _REDIS_SETTINGS, "postgresql": _POSTGRESQL_SETTINGS}
        words = [word for kind, address in addresses.items() for word in ("--service", f"{kind}:{address}")]
        for kind, levels in settings.items():
            for name, text in levels.items():
                words += ["--set", f"service.{kind}.{name}={text}"]
        return words


@contextmanager
def servers() -> Iterator[Servers]:
    """A server of each kind, which ends with the context."""
    with ExitStack() as stack:
        yield Servers(stack.enter_context(redis()), stack.enter_context(postgresql()))
