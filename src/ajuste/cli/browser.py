"""``--open``: a report in the caller's browser."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import typer

from ajuste.executor.host.caller import invoking_user
from ajuste.model.wording import visible_line

PROGRAM: Final = "xdg-open"
_DISPLAYS: Final = ("DISPLAY", "WAYLAND_DISPLAY")
_PATIENCE_S: Final = 5.0


def open_report(
    path: Path, environment: Mapping[str, str] = os.environ, run: Callable[..., Any] = subprocess.run
) -> None:
    """Open ``path`` in the browser of the user who called Ajuste, or say on standard error why that cannot be."""
    if problem := _problem(path, environment, run):
        typer.echo(visible_line(f"cannot open a browser: {problem}; the report is {path}"), err=True)


def _problem(path: Path, environment: Mapping[str, str], run: Callable[..., Any]) -> str:
    program = shutil.which(PROGRAM, path=environment.get("PATH"))
    if program is None:
        return f"{PROGRAM} not found (package xdg-utils)"
    if not any(environment.get(name) for name in _DISPLAYS):
        return "this session has no display"
    changes: dict[str, Any] = {}
    if (user := invoking_user(environment)) is not None:
        changes = {"user": user.uid, "group": user.gid, "extra_groups": user.groups}
        environment = _of_user(user.uid, environment)
    try:
        done = run(
            [program, path.absolute()],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            timeout=_PATIENCE_S,
            check=False,
            **changes,
        )
    except subprocess.TimeoutExpired:
        return ""  # the browser itself, which goes on
    except OSError as failure:
        return f"{program}: {failure.strerror}"
    return f"{PROGRAM} failed with exit code {done.returncode}" if done.returncode else ""


def _of_user(uid: int, environment: Mapping[str, str]) -> dict[str, str]:
    """The environment in which the desktop of the user is found."""
    runtime = f"/run/user/{uid}"
    return {name: value for name, value in environment.items() if not name.startswith("SUDO_")} | {
        "HOME": pwd.getpwuid(uid).pw_dir,
        "XDG_RUNTIME_DIR": runtime,
        "DBUS_SESSION_BUS_ADDRESS": f"unix:path={runtime}/bus",
    }
