"""Who called Ajuste on this machine: whose the processes of a trial are, and what they find."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from pathlib import Path

from ajuste.model.plan import User
from ajuste.native import WORKLOADS, native_program
from ajuste.study.site import Site

_LARGEST_ID = 2**32 - 2
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
    """Whose commands are, if not ours: under sudo, the one who called it (``SUDO_UID``, ``SUDO_GID``; sudo(8)).

    ``None`` without sudo, where these make no sense, and where root called it.
    """
    if os.geteuid() != 0:
        return None
    uid, gid = (_number(environment.get(name, "")) for name in ("SUDO_UID", "SUDO_GID"))
    if not uid or gid is None:
        return None
    try:
        groups = os.getgrouplist(pwd.getpwuid(uid).pw_name, gid)
    except KeyError:
        groups = []
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


def _number(text: str) -> int | None:
    if not (text.isascii() and text.isdecimal() and len(text) <= 10):
        return None
    number = int(text)
    return number if number <= _LARGEST_ID else None
