"""A live experiment as a systemd service: it survives a log-out, resumes after a crash, and is removed at its end."""

from __future__ import annotations

import logging
import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from ajuste.machine.files import make_directory, write_text
from ajuste.machine.home import Home, as_root
from ajuste.machine.units import DIRECTORY, unit_assignment, unit_path, unit_word
from ajuste.model.error import RequestError, RunError

UNITS: Final = Path("/") / DIRECTORY
BOOTED: Final = Path("/run/systemd/system")
"""A directory that exists if systemd is the init system (sd_booted(3))."""
ENDED: Final = "AJUSTE_LIVE_ENDED"
"""Environment variable with the file that marks an ended experiment, which must not start again."""
PATIENCE_SECONDS: Final = 300.0
"""Seconds to wait for the measured service, which may come up later than the experiment after a boot."""
_PASSED_ON: Final = (
    *("AJUSTE_HOME", "AJUSTE_STORE", "AJUSTE_NATIVE", "HOME", "PATH", "XDG_DATA_HOME", "XDG_STATE_HOME"),
    *("SUDO_UID", "SUDO_GID", "SUDO_USER"),
)
_STUDY_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_LOG: Final = logging.getLogger(__name__)

Systemctl = Callable[..., None]


def systemctl(*words: str) -> None:
    """Run systemctl. Raises RunError."""
    done = subprocess.run(["systemctl", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        messages = done.stderr.strip().splitlines()
        raise RunError(f"systemctl {' '.join(words)} failed: {messages[-1] if messages else done.returncode}")


def require_systemd(booted: Path = BOOTED) -> None:
    """Raise RequestError if no unit can be installed."""
    if not booted.is_dir():
        raise RequestError(
            "--install requires systemd, which is not the init system here",
            hint="run the command without --install, in tmux or screen",
        )
    if os.geteuid() != 0:
        raise RequestError("--install requires root", hint=f"run {as_root()}")


def unit_name(study: str) -> str:
    """Return the unit's name for the experiment ``study``."""
    assert _STUDY_NAME.fullmatch(study), study
    return f"ajuste-live-{study}.service"


def install_unit(
    command: Sequence[str],
    study: str,
    home: Home,
    environment: Mapping[str, str],
    units: Path = UNITS,
    call: Systemctl = systemctl,
) -> str:
    """Write the unit that carries out ``command``, start it and return its name. Raises RunError, without leaving a
    unit.
    """
    unit = unit_name(study)
    ended = home.state / "live" / f"{study}.ended"
    make_directory(ended.parent)
    ended.unlink(missing_ok=True)
    try:
        write_text(units / unit, unit_text(command, study, ended, environment))
    except OSError as error:
        raise RequestError(f"cannot write {units / unit}: {error.strerror}", hint="run it without --install") from None
    try:
        call("daemon-reload")
        call("enable", unit)
        call("restart", unit)
    except RunError:
        remove_unit(study, units, call)
        raise
    return unit


def unit_text(command: Sequence[str], study: str, ended: Path, environment: Mapping[str, str]) -> str:
    """Return the unit file. The unit restarts after a crash, but not after an invalid request, nor with the file
    ``ended``.

    After a crash the agent still restores, so systemd must not kill it (``KillMode=process``). If it was killed
    nevertheless, ``ajuste restore`` runs before the experiment resumes.
    """
    variables = {key: environment[key] for key in _PASSED_ON if key in environment} | {ENDED: str(ended)}
    return "\n".join(
        [
            "[Unit]",
            f"Description=Ajuste: live experiment {study}",
            "Wants=network-online.target",
            "After=network-online.target",
            f"ConditionPathExists=!{unit_path(str(ended))}",
            "",
            "[Service]",
            "Type=exec",
            f"ExecStartPre={unit_word(command[0])} restore",
            f"ExecStart={' '.join(map(unit_word, command))}",
            *(f"Environment={unit_assignment(*variable)}" for variable in variables.items()),
            "Restart=on-failure",
            # An invalid request, and an interrupt by a person.
            "RestartPreventExitStatus=2 130",
            "RestartSec=10",
            "KillMode=process",
            "TimeoutStopSec=90",
            "",
            "[Install]",
            "WantedBy=multi-user.target",
            "",
        ]
    )


def is_installed(study: str, units: Path = UNITS) -> bool:
    """Return whether there is a unit of the experiment ``study``."""
    return bool(_STUDY_NAME.fullmatch(study)) and (units / unit_name(study)).exists()


def remove_unit(study: str, units: Path = UNITS, call: Systemctl = systemctl) -> None:
    """Remove the unit, so that it does not start at the next boot. A running experiment is not stopped."""
    unit = unit_name(study)
    for words in (("disable", unit), ("daemon-reload",)):
        try:
            call(*words)
        except RunError as failure:  # Removing the file is enough.
            _LOG.warning("unit not removed in full", extra={"unit": unit, "because": failure.message})
        (units / unit).unlink(missing_ok=True)


def is_unit(environment: Mapping[str, str]) -> bool:
    """Return whether systemd runs this process as the unit of an experiment."""
    return ENDED in environment


def leave_unit(environment: Mapping[str, str], units: Path = UNITS, call: Systemctl = systemctl) -> None:
    """Remove the unit that runs this process, if one does, as its experiment has ended."""
    if is_unit(environment):
        ended = Path(environment[ENDED])
        ended.touch()
        remove_unit(ended.stem, units, call)
