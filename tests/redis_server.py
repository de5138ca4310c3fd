"""A Redis server of the tests' own, on a socket, without any network or data on disk."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest


@dataclass
class Server:
    socket: Path
    process: subprocess.Popen[bytes]

    def ask(self, *words: str) -> list[str]:
        """Return what redis-cli prints, an independent client."""
        command = ["redis-cli", "-s", str(self.socket), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()

    def value(self, name: str) -> str:
        return self.ask("CONFIG", "GET", name)[1]


@contextmanager
def server(*options: str) -> Iterator[Server]:
    if shutil.which("redis-server") is None:
        pytest.skip("there is no Redis server here")
    with TemporaryDirectory(prefix="redis-") as place:
        socket = Path(place, "socket")
        command = ["redis-server", "--port", "0", "--unixsocket", str(socket), "--save", "", "--dir", place, *options]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + 60
            while not socket.exists():
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.01)
            yield Server(socket, process)
        finally:
            process.kill()
            process.wait()
