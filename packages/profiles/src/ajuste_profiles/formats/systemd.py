"""A unit that applies at boot and undoes when stopped, and a drop-in for a service's process.

Source: systemd.service(5), systemd.exec(5), systemd.resource-control(5).
"""

from __future__ import annotations

import re
from typing import Final

from ajuste.model.plan import Attributes
from ajuste_profiles.export import BOOT, NO_WORDS, PROCESS, Export, ExportFile, LeftOut, Rendered, comment, not_here
from ajuste_profiles.formats import shell

NAME: Final = "systemd"

_LIMITS: Final = {
    "memory.max": "MemoryMax",
    "memory.high": "MemoryHigh",
    "memory.low": "MemoryLow",
    "memory.min": "MemoryMin",
    "memory.swap.max": "MemorySwapMax",
    "pids.max": "TasksMax",
}
_NUMBER: Final = re.compile(r"[0-9]+")


def render(export: Export) -> Rendered:
    """Return the script of ``--format shell`` with a unit for it, and ``NAME.conf`` for what belongs to a process."""
    script = shell.render(export)
    process_lines, unknown = _drop_in(export.attributes)
    left_out = [setting for setting in script.left_out if setting.why not in (PROCESS, BOOT)]
    left_out += [*unknown, *(LeftOut(word, BOOT) for word in export.kernel_arguments)]
    files = [*script.files]
    if files:
        unit = f"{export.name}.service"
        files.append(ExportFile(unit, _unit(export, left_out), f"/etc/systemd/system/{unit}"))
    if process_lines:
        lines = comment([*export.evidence, "For the service that it was measured for. To go back: delete this file."])
        lines += [*not_here(left_out), "", "[Service]", *process_lines]
        place = f"/etc/systemd/system/YOUR.service.d/{export.name}.conf"
        files.append(ExportFile(f"{export.name}.conf", "\n".join(lines) + "\n", place))
    return Rendered(tuple(files), tuple(left_out))


def _unit(export: Export, left_out: list[LeftOut]) -> str:
    about = f"To use it: systemctl enable --now {export.name}. To go back: systemctl disable --now {export.name}."
    return "\n".join(
        [
            *comment([*export.evidence, about]),
            *not_here(left_out),
            "",
            "[Unit]",
            f"Description=Settings that an experiment supports ({export.name})",
            "After=systemd-sysctl.service systemd-modules-load.service",
            "",
            "[Service]",
            "Type=oneshot",
            "RemainAfterExit=yes",
            f"ExecStart=/usr/local/sbin/{export.name} apply",
            f"ExecStop=/usr/local/sbin/{export.name} undo",
            "",
            "[Install]",
            "WantedBy=multi-user.target",
            "",
        ]
    )


def _drop_in(attributes: Attributes) -> tuple[list[str], list[LeftOut]]:
    lines, left_out = [], []
    if attributes.nice is not None:
        lines.append(f"Nice={attributes.nice}")
    if attributes.policy is not None:
        lines.append(f"CPUSchedulingPolicy={attributes.policy}")
    if attributes.priority is not None:
        lines.append(f"CPUSchedulingPriority={attributes.priority}")
    if attributes.affinity is not None:
        lines.append(f"CPUAffinity={' '.join(map(str, attributes.affinity))}")
    if attributes.cgroup_weight is not None:
        lines.append(f"CPUWeight={attributes.cgroup_weight}")
    for name, value in attributes.cgroup_limits.items():
        line = _limit(name, value)
        if line is None:
            left_out.append(LeftOut(f"{name} = {value}", NO_WORDS))
        else:
            lines.append(line)
    return lines, left_out


def _limit(name: str, value: str) -> str | None:
    if name in _LIMITS and (_NUMBER.fullmatch(value) or value == "max"):
        return f"{_LIMITS[name]}={'infinity' if value == 'max' else value}"
    quota, _, period = value.partition(" ")
    if name == "cpu.max" and _NUMBER.fullmatch(quota) and _NUMBER.fullmatch(period) and int(period):
        return f"CPUQuota={100 * int(quota) / int(period):g}%\nCPUQuotaPeriodSec={period}us"
    return None
