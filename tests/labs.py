"""Two machines, as far as network, name, identity and locks go, with a cable between them. Made by root."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces are made by root")

_BECOME = (
    'mount -t tmpfs none /run/lock; [ ! -e /etc/machine-id ] || mount --bind "$1" /etc/machine-id; hostname "$2"; '
    'mkdir -p "$1.kept" /var/lib/ajuste; mount --bind "$1.kept" /var/lib/ajuste'
)


@dataclass(frozen=True)
class Host:
    """``address`` is its own, ``enter`` comes before a command on it."""

    name: str
    address: str
    enter: tuple[str, ...]

    def output(self, *words: str) -> str:
        """Return what a command there prints."""
        return subprocess.run((*self.enter, *words), check=True, capture_output=True, text=True).stdout.strip()


@contextmanager
def two_hosts(directory: Path) -> Iterator[tuple[Host, Host]]:
    """``lab1`` and ``lab2``; their identities lie in ``directory``."""
    hosts = []
    with ExitStack() as stack:
        for number in (1, 2):
            namespace = f"ajuste-{os.getpid()}-{number}"
            ip("netns", "add", namespace)
            stack.callback(ip, "netns", "delete", namespace)
            identity = directory / f"lab{number}.id"
            identity.write_text(f"{number:032x}\n")
            become = (f'{_BECOME}; shift 2; exec "$@"', "become", str(identity), f"lab{number}")
            enter = ("ip", "netns", "exec", namespace, "unshare", "--mount", "--uts", "sh", "-euc", *become)
            hosts.append(Host(f"lab{number}", f"10.213.77.{number}", enter))
        first, second = (host.enter[3] for host in hosts)
        ip("link", "add", "cable", "netns", first, "type", "veth", "peer", "name", "cable", "netns", second)
        for host in hosts:
            ip("-n", host.enter[3], "address", "add", f"{host.address}/24", "dev", "cable")
            ip("-n", host.enter[3], "link", "set", "cable", "up")
            ip("-n", host.enter[3], "link", "set", "lo", "up")
        yield hosts[0], hosts[1]


def ip(*words: str) -> None:
    subprocess.run(("ip", *words), check=True)


@contextmanager
def started(host: Host, *words: str, prints: str, home: Path) -> Iterator[subprocess.Popen[str]]:
    """A program of the environment on ``host``, from when it ``prints`` that on stderr."""
    program = [*host.enter, str(Path(sys.executable).parent / words[0]), *words[1:]]
    environment = {**os.environ, "AJUSTE_HOME": str(home)}
    with subprocess.Popen(program, env=environment, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        for line in running.stderr:
            if prints in line:
                break
        try:
            yield running
        finally:
            running.kill()


def scheduler(host: Host, keys: Path) -> tuple[str, ...]:
    """The words that start one on ``host``."""
    return ("ajuste", "cluster", "scheduler", "--listen", address_of(host), "--cluster-keys", str(keys))


def address_of(host: Host) -> str:
    """Return the address of the scheduler there."""
    return f"tls://{host.address}:8786"
