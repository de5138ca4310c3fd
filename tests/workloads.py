"""Workloads of the catalogue, run as the real programs that they name."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from ajuste.catalogue.level import arguments
from ajuste.machine.home import WORKLOADS, native_program
from ajuste.model.workload import WorkloadKind
from ajuste.outputs.programs import parser

NON_FREE = ("netperf",)
NOBODY = 65534


def run_workload(kind: WorkloadKind, parameters: dict[str, str], leaves: Sequence[str] | None = None) -> set[str]:
    """Return the metrics of what it prints. ``leaves``: the names that it may leave where it runs."""
    output = printed(kind, parameters, leaves)
    return set(parser(kind.parser)(output)) if kind.parser else set()


def printed(kind: WorkloadKind, parameters: dict[str, str], leaves: Sequence[str] | None = None) -> str:
    program = shutil.which(kind.program)
    if kind.program == WORKLOADS:
        program = str(native_program(WORKLOADS))
    for name, package in {kind.program: kind.package, **kind.needs}.items():
        if kind.program != WORKLOADS and shutil.which(name) is None:
            pytest.skip(
                f"{name} is not installed (package {package})"
                if package and package not in NON_FREE
                else f"no free package of Debian has {name}"
            )
    assert program is not None
    for name in ("source", "directory"):
        if name in kind.parameters and not Path(parameters[name]).is_dir():
            pytest.skip(f"{kind.name} needs a directory that is not here: {parameters[name]}")
    with where(kind) as (place, user), served(kind, user) as fill:
        words = [fill(word) for word in arguments(kind, parameters)]
        ended = subprocess.run(
            [program, *words], cwd=place, user=user, group=user, capture_output=True, text=True, timeout=120
        )
        left = sorted(path.name for path in place.iterdir())
    if any(words in ended.stderr for words in ("(sch_netem)", "(it takes root)")):
        # This machine's kernel may have no such queue, or give nobody a network.
        pytest.skip(ended.stderr)
    assert ended.returncode == 0, ended.stderr
    assert leaves is None or left == sorted(leaves)
    return ended.stdout


@contextmanager
def where(kind: WorkloadKind) -> Iterator[tuple[Path, int | None]]:
    """Yield where it runs, and as whom: PostgreSQL refuses root."""
    if os.geteuid() != 0 or "pgbench" not in kind.needs:
        yield Path.cwd(), None
        return
    with tempfile.TemporaryDirectory() as directory:
        os.chown(directory, NOBODY, NOBODY)
        yield Path(directory), NOBODY


@contextmanager
def served(kind: WorkloadKind, user: int | None) -> Iterator[Callable[[str], str]]:
    """Run the workload's servers; yield the function that fills in their port and data."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    with tempfile.TemporaryDirectory() as data:
        if user is not None:
            os.chown(data, user, user)

        def fill(word: str) -> str:
            return word.replace("{port}", str(port)).replace("{data}", data)

        for service in kind.services:
            if service.data:
                subprocess.run([*map(fill, service.data)], cwd=data, user=user, group=user, check=True)
        servers = [
            subprocess.Popen(
                [*map(fill, service.command)],
                cwd=data,
                user=user,
                group=user,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for service in kind.services
        ]
        try:
            end = time.monotonic() + 30
            while servers and not (listening(port) or [*Path(data).glob(".s.PGSQL.*")]):
                assert time.monotonic() < end, f"{kind.services} does not listen"
                time.sleep(0.02)
            yield fill
        finally:
            for server in servers:
                server.terminate()
                server.wait()


def listening(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
