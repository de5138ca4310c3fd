"""A live experiment as a service of systemd: it survives a log-out, goes on after a crash, and is done at its end."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from ajuste.machine.files import make_directory, write_text
from ajuste.machine.home import Home
from ajuste.model.error import RequestError, RunError
from ajuste.run.live.state import directory

UNITS: Final = Path("/etc/systemd/system")
BOOTED: Final = Path("/run/systemd/system")
"""Is there where systemd is the init system (sd_booted(3))."""
ENDED: Final = "AJUSTE_LIVE_ENDED"
"""Names the file that says that the experiment of a unit has ended: it is not begun anew at the next boot."""
_PASSED_ON: Final = ("AJUSTE_HOME", "AJUSTE_STORE", "AJUSTE_NATIVE", "HOME", "PATH", "XDG_DATA_HOME", "XDG_STATE_HOME")
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


def require_systemd(booted: Path = BOOTED) -> None:
    """Raises RequestError where no unit can be installed."""
    if not booted.is_dir():
        raise RequestError(
            "--install requires systemd, which is not the init system here",
            hint="run the command without --install, in tmux or screen",
        )
    if os.geteuid() != 0:
        raise RequestError("--install requires root", hint="run it with sudo")


def install_unit(
    command: Sequence[str], name: str, home: Home, environment: Mapping[str, str], units: Path = UNITS
) -> str:
    """Write the unit that carries out ``command`` and start it; returns its name. Raises RunError."""
    assert _NAME.fullmatch(name), name
    unit = f"ajuste-live-{name}.service"
    ended = directory(home) / f"{name}.ended"
    make_directory(ended.parent)
    ended.unlink(missing_ok=True)
    try:
        write_text(units / unit, unit_text(command, name, ended, environment))
    except OSError as error:
        raise RequestError(f"cannot write {units / unit}: {error.strerror}", hint="run it without --install") from None
    for words in (("daemon-reload",), ("enable", unit), ("restart", unit)):
        done = subprocess.run(["systemctl", *words], capture_output=True, text=True, check=False)
        if done.returncode:
            said = done.stderr.strip().splitlines()
            raise RunError(f"systemctl {' '.join(words)} failed: {said[-1] if said else done.returncode}")
    return unit


def unit_text(command: Sequence[str], name: str, ended: Path, environment: Mapping[str, str]) -> str:
    """The unit. It goes on after a crash, and not after a wrong request or once its experiment ``ended``."""
    own = {key: environment[key] for key in _PASSED_ON if key in environment} | {ENDED: str(ended)}
    return "\n".join(
        [
            "[Unit]",
            f"Description=Ajuste: live experiment {name}",
            "Wants=network-online.target",
            "After=network-online.target",
            f"ConditionPathExists=!{_escaped(str(ended))}",
            "",
            "[Service]",
            "Type=exec",
            f"ExecStart={' '.join(map(_word, command))}",
            *(f"Environment={_word(f'{key}={value}')}" for key, value in own.items()),
            "Restart=on-failure",
            "RestartPreventExitStatus=2 130",
            "RestartSec=10",
            "KillMode=mixed",
            "TimeoutStopSec=90",
            "",
            "[Install]",
            "WantedBy=multi-user.target",
            "",
        ]
    )


def _word(text: str) -> str:
    """One word of a command line (systemd.service(5)): no variable and no specifier in it is replaced."""
    quoted = _escaped(text).replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$").replace("\n", "\\n")
    return f'"{quoted}"'


def _escaped(text: str) -> str:
    return text.replace("%", "%%")


def say_ended(environment: Mapping[str, str]) -> None:
    """The experiment of the unit that runs this process, if one does, has ended."""
    if path := environment.get(ENDED):
        Path(path).touch()
