"""Where commands are run: what they find there, and whose they are."""

from __future__ import annotations

from dataclasses import dataclass

from ajuste.model.plan import User

GUEST_DIRECTORY = "/study"
"""Where a guest has the study's own files; also the working directory then."""

SCHEDULERS = "/ajuste/schedulers"
"""Where a guest has the programs of BPF schedulers (sched_ext)."""


GUEST_USER = User(uid=1000, gid=1000)
"""Whose the processes of a guest are, unless the study says ``as_root``."""

GUEST_HOME = "/tmp"
"""What that user may write everywhere: the home, and the working directory where the study has no files of its own."""


@dataclass(frozen=True)
class Site:
    """``bundled`` is the path of the program with Ajuste's own workloads. ``directory`` is where a command of one's own
    works.

    ``in_place``: the study's own files are beside the study file, not in ``directory``; a command has the environment
    of whoever called Ajuste, so that none is written down. ``user`` is whose the processes are, if not the agent's.
    ``cpus`` are those that a process may run on, if the study does not say it itself.
    """

    bundled: str
    directory: str
    in_place: bool
    user: User | None = None
    cpus: frozenset[int] | None = None


GUEST = Site(bundled="/ajuste/bin/ajuste-workloads", directory=GUEST_DIRECTORY, in_place=False, user=GUEST_USER)
