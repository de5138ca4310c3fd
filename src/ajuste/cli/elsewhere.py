"""What a person says about where trials are carried out, if not in this process."""

from __future__ import annotations

import os
from pathlib import Path

from ajuste.home import home
from ajuste.model.error import RequestError
from ajuste.study.schema import Study
from ajuste.target.cluster.channel import Channel, channel_to
from ajuste.target.cluster.connection import Cluster


def chosen_cluster(
    study: Study,
    address: str | None,
    workers: int | None,
    jobs: int | None = None,
    *,
    keys: Path | None = None,
    insecure: bool = False,
) -> Cluster | None:
    """The cluster that was asked for. Raises RequestError for words that make no sense, or not for that study."""
    if address is None and (keys is not None or insecure):
        raise RequestError("--cluster-keys and --insecure require --cluster")
    if address is None and workers is None:
        return None
    if address is not None and workers is not None:
        raise RequestError("--cluster and --workers are two places; expected one of them")
    if jobs is not None:
        raise RequestError("--jobs is for guests of this process", hint="leave it out: workers have their own number")
    channel = None
    if address is not None:
        channel = chosen_channel("--cluster", address, keys, insecure=insecure)
    if study.target.clock == "wall":
        _require_machines(study, workers)
    return Cluster(channel, workers or 0)


def _require_machines(study: Study, workers: int | None) -> None:
    """By the clock of a machine one thing at a time can be measured there. Raises RequestError."""
    if workers is not None:
        raise RequestError(
            "workers of one machine would disturb each other: what is measured by its clock goes one at a time",
            hint="--cluster shares whole blocks out among machines (ajuste worker --bench)",
        )
    if study.target.kind != "host":
        raise RequestError(
            "guests by the clock of a machine cannot be shared out",
            hint='leave --cluster out, or take clock = "virtual"',
        )


def chosen_channel(option: str, address: str, keys: Path | None, *, insecure: bool) -> Channel:
    """The way to the scheduler at ``address``. Raises RequestError."""
    return channel_to(option, address, keys or home().cluster_keys, insecure=insecure, root=os.geteuid() == 0)
