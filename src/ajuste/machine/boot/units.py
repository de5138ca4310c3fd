"""The systemd units of an experiment: one goes on with it after each boot, two watch over boots of its own.

They are written and linked as ``systemctl enable`` does it, and removed at the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from ajuste.machine.boot.loader import MARK
from ajuste.machine.boot.mounts import content_of, remove_durably, write_durably
from ajuste.machine.files import sync_to_disk

DIRECTORY: Final = "etc/systemd/system"
CAME_UP: Final = "came-up"
"""The file that says, before anything else starts, that a kernel of the experiment came up."""
RESUMED: Final = "run/ajuste-resumed"
"""The file that says that the experiment goes on in this boot."""
DEADLINE: Final = "15min"
"""A boot of the experiment in which it does not go on by then is given up."""

_RESUME: Final = "ajuste-reboots.service"
_EARLY: Final = "ajuste-reboots-came-up.service"
_TIMER: Final = "ajuste-reboots-deadline.timer"
_DEADLINE: Final = "ajuste-reboots-deadline.service"
_WANTED: Final = {_RESUME: "multi-user.target", _EARLY: "sysinit.target", _TIMER: "sysinit.target"}


def install(root: Path, kept: Path, command: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Write and link the units; ``kept`` is the directory of the experiment, ``command`` what goes on with it, with
    that ``environment``. Whether anything was changed. May be done twice. Raises OSError.
    """
    directory, changed = root / DIRECTORY, False
    for name, text in _texts(kept, command, environment).items():
        if content_of(directory / name) != text.encode():
            write_durably(directory / name, text.encode(), 0o644)
            changed = True
    for name, target in _WANTED.items():
        link = directory / f"{target}.wants" / name
        if not link.is_symlink():
            link.parent.mkdir(exist_ok=True)
            link.symlink_to(f"../{name}")
            sync_to_disk(link.parent)
            changed = True
    return changed


def remove(root: Path) -> bool:
    """Remove the units. Whether there were any. May be done twice. Raises OSError."""
    found = [file for file in _files(root) if file.is_symlink() or file.exists()]
    for file in found:
        remove_durably(file)
    return bool(found)


def _files(root: Path) -> list[Path]:
    directory = root / DIRECTORY
    links = [directory / f"{target}.wants" / name for name, target in _WANTED.items()]
    return [*links, *(directory / name for name in (_TIMER, _DEADLINE, _EARLY, _RESUME))]


def _texts(kept: Path, command: Sequence[str], environment: Mapping[str, str]) -> dict[str, str]:
    variables = "".join(f"Environment={unit_assignment(*one)}\n" for one in sorted(environment.items()))
    came_up = unit_word(str(kept / CAME_UP))
    return {
        _RESUME: f"""[Unit]
Description=Ajuste: go on with an experiment across reboots
Documentation=man:ajuste(1)
After=network.target local-fs.target systemd-user-sessions.service
RequiresMountsFor={unit_word(str(kept))}
StartLimitIntervalSec=1h
StartLimitBurst=5

[Service]
Type=exec
{variables}ExecStart={" ".join(map(unit_word, command))}
StandardOutput=append:{unit_path(str(kept / "log"))}
StandardError=inherit
Restart=on-failure
RestartSec=5
RestartPreventExitStatus=1 2 130

[Install]
WantedBy=multi-user.target
""",
        _EARLY: f"""[Unit]
Description=Ajuste: a kernel of an experiment came up
DefaultDependencies=no
ConditionKernelCommandLine={MARK}
After=systemd-remount-fs.service
Before=sysinit.target
RequiresMountsFor={unit_word(str(kept))}

[Service]
Type=oneshot
ExecStart=cp --no-preserve=all /proc/cmdline {came_up}
ExecStart=sync {came_up}

[Install]
WantedBy=sysinit.target
""",
        _TIMER: f"""[Unit]
Description=Ajuste: give up a boot of an experiment that does not get ready
DefaultDependencies=no
ConditionKernelCommandLine={MARK}
IgnoreOnIsolate=yes

[Timer]
OnBootSec={DEADLINE}
Unit={_DEADLINE}

[Install]
WantedBy=sysinit.target
""",
        _DEADLINE: f"""[Unit]
Description=Ajuste: reboot, because this boot did not get ready
DefaultDependencies=no
ConditionKernelCommandLine={MARK}
ConditionPathExists=!/{RESUMED}
IgnoreOnIsolate=yes

[Service]
Type=oneshot
ExecStart=systemctl --force reboot
""",
    }


# Texts in units, also of others than these.


def unit_assignment(name: str, value: str) -> str:
    """As one word of ``Environment=`` (systemd.exec(5)), in which a dollar sign is only itself."""
    return f'"{_inside(f"{name}={value}")}"'


def unit_word(text: str) -> str:
    """As one word of a unit's command (systemd.service(5), systemd.syntax(7)): no variable and no specifier in it is
    replaced.
    """
    inside = _inside(text).replace("$", "$$")
    return f'"{inside}"' if inside != text or not text or any(c.isspace() or c in "'\";" for c in text) else text


def unit_path(text: str) -> str:
    """As a path that is no word of a list."""
    return text.replace("%", "%%")


def _inside(text: str) -> str:
    return unit_path(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
