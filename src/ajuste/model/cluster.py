"""The address of a cluster: of its scheduler, with the place of its key."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ajuste.model.error import RequestError
from ajuste.model.wording import visible_line

KEY: Final = "cluster.pem"
"""The private key with its certificate, which is its own authority."""

_ADDRESS: Final = re.compile(r"(tcp|tls)://(\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]+):(\d{1,5})")


@dataclass(frozen=True)
class Cluster:
    """A scheduler at tls://HOST:PORT with ``key``; or at tcp://HOST:PORT, in the clear."""

    address: str
    host: str
    port: int
    key: Path | None

    def __str__(self) -> str:
        return f"the cluster {self.address}"


def cluster_at(option: str, address: str, keys: Path, *, insecure: bool, root: bool) -> Cluster:
    """Return the cluster at ``address``, with the key in the directory ``keys``.

    Raises:
        RequestError: The address is malformed, or plain TCP without ``insecure`` or as ``root``.
    """
    match = _ADDRESS.fullmatch(address)
    if not match or not 0 < int(match[3]) < 65536:
        raise RequestError(
            f"{option} {visible_line(address)!r}: expected the address of a scheduler, such as tls://host:8786"
        )
    host = match[2].strip("[]")
    if match[1] == "tls":
        return Cluster(address, host, int(match[3]), keys / KEY)
    hint = f"use tls://{match[2]}:{match[3]} with the key from `ajuste cluster keys`"
    if root:
        raise RequestError(
            f"{option} {address}: root does not use plain TCP, where anyone on the way can run commands as root",
            hint=f"{hint} (`ajuste help several-machines`)",
        )
    if not insecure:
        raise RequestError(
            f"{option} {address}: anyone who reaches a plain TCP port can run commands on every worker",
            hint=f"{hint}, or add --insecure",
        )
    return Cluster(address, host, int(match[3]), None)
