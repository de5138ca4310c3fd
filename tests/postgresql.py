"""A PostgreSQL server of the tests' own: Debian's, on a socket of its own, without any network."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest

USER = "postgres"


@dataclass
class Server:
    directory: Path
    _numbers: Iterator[int] = field(default_factory=count)

    def new_database(self) -> str:
        """The URL of an empty database."""
        name = f"d{next(self._numbers)}"
        with psycopg.connect(host=str(self.directory), user=USER, dbname="postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return f"postgresql://{USER}@/{name}?host={self.directory}"


@contextmanager
def server(*more: str) -> Iterator[Server]:
    """A server with the options ``more`` of its command line."""
    directories = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not directories:
        pytest.skip("there is no PostgreSQL server here")
    # The server refuses to be root, and a socket's path has at most 107 bytes.
    as_user = ["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups"] if os.geteuid() == 0 else []
    with TemporaryDirectory(prefix="pg-") as place:
        directory = Path(place)
        if as_user:
            shutil.chown(directory, USER, USER)

        def run(program: str, *words: str) -> None:
            subprocess.run(
                [*as_user, directories[-1] / program, *words],
                check=True,
                cwd="/",
                stdout=subprocess.DEVNULL,
                timeout=60,
            )

        data = str(directory / "data")
        run("initdb", "--auth=trust", "--no-sync", "--no-locale", "--encoding=UTF8", f"--username={USER}", data)
        options = f"-c listen_addresses= -c unix_socket_directories={directory} -c fsync=off"
        options = " ".join([options, *more])
        run("pg_ctl", "start", "--wait", "--silent", f"--log={directory / 'log'}", f"--options={options}", "-D", data)
        try:
            yield Server(directory)
        finally:
            run("pg_ctl", "stop", "--mode=immediate", "--silent", "-D", data)
