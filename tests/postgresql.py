"""A PostgreSQL server of the tests' own: Debian's, on a socket of its own, without any network."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import psycopg
import pytest
from benchmarks.servers import USER, postgresql, programs_of_postgresql


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
def server(*options: str) -> Iterator[Server]:
    """A server with ``options`` of its command line."""
    if programs_of_postgresql() is None:
        pytest.skip("there is no PostgreSQL server here")
    with postgresql(*options) as directory:
        yield Server(directory)
