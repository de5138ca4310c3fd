"""Who called Ajuste on this machine: whose the processes of a trial are, and what they find."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from pathlib import Path

from ajuste.model.error import RequestError
from ajuste.model.plan import User
from ajuste.native import WORKLOADS, native_program
from ajuste.ownership import SUDO_HINT, calling_ids
from ajuste.study.site import Site

_OWN = ("AJUSTE_", "SUDO_")


def host_site() -> Site:
    """This machine, as whoever calls Ajuste sees it."""
    return Site(
        bundled=str(native_program(WORKLOADS)),
        directory=str(Path.cwd()),
        in_place=True,
        user=invoking_user(),
        cpus=frozenset(os.sched_getaffinity(0)),
    )


def invoking_user(environment: Mapping[str, str] = os.environ) -> User | None:
    """Whose commands are, if not ours: under sudo, the user who called it (``SUDO_UID``, ``SUDO_GID``; sudo(8)).

    ``None`` without root, without sudo, and where root called it. Raises RequestError for anything else than two
    numbers of a user that the machine knows: a command that is not root's must never run as root.
    """
    if os.geteuid() != 0:
        return None
    ids = calling_ids(environment)
    if ids is None or ids[0] == 0:
        return None
    uid, gid = ids
    try:
        groups = os.getgrouplist(pwd.getpwuid(uid).pw_name, gid)
    except KeyError:
        raise RequestError(
            f"SUDO_UID = {uid} is no user of this machine, so the groups of your commands are unknown",
            hint=SUDO_HINT,
        ) from None
    return User(uid=uid, gid=gid, groups=tuple(sorted(set(groups))))


def user_here() -> str:
    """Who Ajuste itself is, in words."""
    uid = os.geteuid()
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def callers_environment(user: User | None, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What commands of ``user`` find: what Ajuste was called with, without its own variables and those of sudo."""
    kept = {name: value for name, value in environment.items() if not name.startswith(_OWN)}
    if user is None:
        return kept
    try:
        entry = pwd.getpwuid(user.uid)
    except KeyError:
        return kept
    return kept | {"HOME": entry.pw_dir, "USER": entry.pw_name, "LOGNAME": entry.pw_name}
