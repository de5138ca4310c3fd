"""A profile of TuneD, which puts everything back itself. Source: tuned.conf(5), tuned-profiles(7), TuneD 2.20."""

from __future__ import annotations

import re
from typing import Final

from ajuste.model.plan import Choice, Coalesce, CpuLatency, DeviceFeature, Ring
from ajuste.model.plan import FileLocation as PlainFile
from ajuste_profiles.export import (
    NO_WORDS,
    Export,
    ExportFile,
    ExportSetting,
    LeftOut,
    Rendered,
    comment,
    not_here,
    on_or_off,
    plain,
    setting_sysctl,
    what_became,
    without_process,
    without_words,
)

NAME: Final = "tuned"

# Values in which nothing has a meaning for TuneD: no variable, no comment, no comparison.
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.,:+/ -]*")


def render(export: Export) -> Rendered:
    """Return ``NAME/tuned.conf``: sysctls, files of sysfs, what ethtool sets, and words of the
    kernel's command line.
    """
    sections: dict[str, list[str]] = {}
    left_out = [*export.left_out, *without_process(export.attributes)]
    for setting in export.settings:
        line = _line(setting) if _PLAIN.fullmatch(plain(setting.became)) else None
        if line is None:
            left_out.append(without_words(setting))
        else:
            section, device, text = line
            begin = ["type=net", f"devices={device}"] if device else []
            sections.setdefault(section, begin).extend([*what_became(setting), text])
    words = [word for word in export.kernel_arguments if _PLAIN.fullmatch(word.replace("=", ""))]
    left_out += [LeftOut(word, NO_WORDS) for word in export.kernel_arguments if word not in words]
    if words:
        sections["bootloader"] = [f"cmdline_{export.name.replace('-', '_')}=+{' '.join(words)}"]
    if not sections:
        return Rendered((), tuple(left_out))
    lines = comment([*export.evidence, f"To use it: tuned-adm profile {export.name}. To go back: the profile before."])
    lines += [*not_here(left_out), "", "[main]", f"summary=Settings that an experiment supports ({export.name})"]
    for section, section_lines in sections.items():
        lines += ["", f"[{section}]", *section_lines]
    name = f"{export.name}/tuned.conf"
    return Rendered((ExportFile(name, "\n".join(lines) + "\n", f"/etc/tuned/{name}"),), tuple(left_out))


def _line(setting: ExportSetting) -> tuple[str, str, str] | None:
    # The section, the network device that it is for, and its line.
    value = plain(setting.became)
    if name := setting_sysctl(setting):
        return "sysctl", "", f"{name}={value}"
    match setting.location:
        case PlainFile(path=path) if path.startswith("/sys/"):
            return "sysfs", "", f"{path}={value}"
        case Choice(path=path) if path.startswith("/sys/") and not path.startswith("/sys/kernel/debug/"):
            return "sysfs", "", f"{path}={value}"
        case DeviceFeature(device=device, name=name):
            return f"net_{device}_{name}", device, f"features={name} {on_or_off(value)}"
        case Ring(device=device, name=name):
            return f"net_{device}_ring_{name}", device, f"ring={name} {value}"
        case Coalesce(device=device, name=name):
            return (
                f"net_{device}_{name}",
                device,
                f"coalesce={name} {on_or_off(value) if 'adaptive' in name else value}",
            )
        case CpuLatency():
            return "cpu", "", f"force_latency={value}"
    return None
