"""Clusters that people bring: Dask's own packages start the workers, by SSH and by Slurm, here on one machine."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import dask
import pytest
from distributed import Security, SSHCluster

from ajuste.model.cluster import KEY
from ajuste_fleet.cluster.keys import make_key
from labs import needs_root
from own_home import own_home
from shell import SMALL, Shell

pytestmark = [pytest.mark.slow, pytest.mark.vm, pytest.mark.timeout(900), needs_root]

PATIENCE_SECONDS = 120
ROLES = ("client", "scheduler", "worker")


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    root = tmp_path_factory.mktemp("own-clusters")
    (root / "small.toml").write_text(SMALL)
    make_key(root / "keys")
    return Shell(root, own_home(root / "home"))


@pytest.fixture(scope="module")
def digest(shell: Shell) -> str:
    return str(shell.json("run", "small.toml")["digest"])


def digest_on(shell: Shell, address: str) -> str:
    there = ("--cluster", address, "--cluster-keys", "keys")
    return str(shell.json("run", "small.toml", "--fresh", *there)["digest"])


@contextmanager
def daemon(*words: object, environment: dict[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A program of /usr/sbin, until the test ends."""
    program = shutil.which(str(words[0]), path="/usr/sbin:/usr/bin")
    if program is None:
        pytest.skip(f"{words[0]} is not installed")
    with subprocess.Popen([program, *map(str, words[1:])], env={**os.environ, **(environment or {})}) as running:
        try:
            yield running
        finally:
            running.terminate()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def wait_for(happens: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not happens():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.1)


def answers(port: int) -> bool:
    with socket.socket() as trying:
        return trying.connect_ex(("127.0.0.1", port)) == 0


def test_workers_that_ssh_starts_measure_the_same(shell: Shell, digest: str, tmp_path: Path) -> None:
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name], check=True)
    port, key = free_port(), str(shell.directory / "keys" / KEY)
    options = {"ListenAddress": "127.0.0.1", "Port": port, "HostKey": tmp_path / "host", "StrictModes": "no"}
    options |= {"AuthorizedKeysFile": tmp_path / "user.pub", "PidFile": "none", "PermitRootLogin": "yes"}
    config = tmp_path / "sshd_config"
    config.write_text("".join(f"{name} {value}\n" for name, value in options.items()))
    Path("/run/sshd").mkdir(exist_ok=True)
    tls: dict[str, object] = {f"distributed.comm.tls.{role}.{part}": key for role in ROLES for part in ("cert", "key")}
    tls |= {"distributed.comm.tls.ca-file": key, "distributed.comm.require-encryption": True}
    login = {"port": port, "client_keys": [str(tmp_path / "user")], "known_hosts": None, "username": "root"}
    with ExitStack() as stack:
        stack.enter_context(daemon("sshd", "-D", "-f", config))
        wait_for(lambda: answers(port))
        stack.enter_context(dask.config.set(tls))
        cluster: Any = stack.enter_context(
            SSHCluster(
                ["127.0.0.1"] * 3,
                connect_options=login,
                scheduler_options={"port": 0, "protocol": "tls"},
                worker_options={"nthreads": 1},
                remote_python=sys.executable,
                security=Security(),
            )
        )
        assert digest_on(shell, cluster.scheduler_address) == digest


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Slurm with this machine as its only node."""
    host, ports = platform.node().partition(".")[0], (free_port(), free_port())
    (tmp_path / "munge.key").write_bytes(os.urandom(128))
    (tmp_path / "munge.key").chmod(0o600)
    (tmp_path / "slurm.conf").write_text(f"""\
ClusterName=loopback
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
AuthInfo=socket={tmp_path}/munge.socket
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
StateSaveLocation={tmp_path}/state
SlurmdSpoolDir={tmp_path}/spool
SlurmctldPidFile={tmp_path}/slurmctld.pid
SlurmdPidFile={tmp_path}/slurmd.pid
MpiDefault=none
NodeName={host} NodeAddr=127.0.0.1 CPUs={os.cpu_count()} RealMemory=4096
PartitionName=all Nodes=ALL Default=YES OverSubscribe=FORCE:4
""")
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "slurm.conf"))
    files = {name: f"--{name}={tmp_path}/munge.{name}" for name in ("socket", "pid-file", "log-file", "seed-file")}
    with ExitStack() as stack:
        munge = ("munged", "--foreground", "--force", f"--key-file={tmp_path}/munge.key", *files.values())
        stack.enter_context(daemon(*munge))
        wait_for((tmp_path / "munge.socket").exists)
        for name in ("slurmctld", "slurmd"):
            stack.enter_context(daemon(name, "-D"))
        wait_for(lambda: "idle" in subprocess.run(["sinfo"], capture_output=True, text=True, check=False).stdout)
        yield


@pytest.mark.usefixtures("slurm")
def test_workers_that_slurm_starts_measure_the_same(shell: Shell, digest: str, tmp_path: Path) -> None:
    from dask_jobqueue.slurm import SLURMCluster

    key = str(shell.directory / "keys" / KEY)
    files = {f"tls_{role}_{part}": key for role in ROLES for part in ("cert", "key")}
    security: Any = Security(require_encryption=True, tls_ca_file=key, **files)
    with SLURMCluster(
        cores=1,
        processes=1,
        memory="1GB",
        protocol="tls://",
        security=security,
        interface="lo",
        log_directory=str(tmp_path),
        python=sys.executable,
    ) as cluster:
        cluster.scale(jobs=2)
        cluster.wait_for_workers(2, timeout=PATIENCE_SECONDS)
        assert digest_on(shell, cluster.scheduler_address) == digest
