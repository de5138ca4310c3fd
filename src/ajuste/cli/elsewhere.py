"""What a person says about where trials are carried out, if not in this process."""

from __future__ import annotations

import re
from typing import Final

from ajuste.model.error import RequestError
from ajuste.study.schema import Study
from ajuste.target.cluster.connection import Cluster

_ADDRESS: Final = re.compile(r"(tcp|tls)://[^\s/]+:\d{1,5}")


def chosen_cluster(study: Study, address: str | None, workers: int | None, jobs: int | None = None) -> Cluster | None:
    """The cluster that was asked for. Raises RequestError for words that make no sense, or not for that study."""
    if address is None and workers is None:
        return None
    if address is not None and workers is not None:
        raise RequestError("--cluster and --workers are two places; expected one of them")
    if jobs is not None:
        raise RequestError("--jobs is for guests of this process", hint="leave it out: workers have their own number")
    if address is not None:
        check_address("--cluster", address)
    if study.target.clock == "wall":
        _require_machines(study, workers)
    return Cluster(address=address or "", workers=workers or 0)


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


def check_address(option: str, address: str) -> None:
    """Whether that can be where a scheduler is. Raises RequestError."""
    if not _ADDRESS.fullmatch(address):
        raise RequestError(f"{option} {address!r}: expected the address of a scheduler, such as tcp://host:8786")
