"""A file for /etc/sysctl.d. Source: sysctl.d(5)."""

from __future__ import annotations

from typing import Final

from ajuste_profiles.export import (
    Export,
    ExportFile,
    Rendered,
    beside_settings,
    comment,
    not_here,
    plain,
    setting_sysctl,
    what_became,
    without_words,
)

NAME: Final = "sysctl.d"


def render(export: Export) -> Rendered:
    """Return ``99-zz-NAME.conf`` with the sysctls among the settings."""
    named = [(setting_sysctl(setting), setting) for setting in export.settings]
    left_out = [without_words(setting) for name, setting in named if not name]
    left_out += beside_settings(export)
    known = [(name, setting) for name, setting in named if name]
    if not known:
        return Rendered((), tuple(left_out))
    # Of all files with the same sysctl the last one counts, and Debian's 99-sysctl.conf is /etc/sysctl.conf.
    file = f"99-zz-{export.name}.conf"
    before = [f"{name}={plain(setting.before)}" for name, setting in known if setting.before is not None]
    undo = f" (the run found {', '.join(before)})" if before else ""
    lines = comment([*export.evidence, f"To go back: delete this file and reboot{undo}."])
    lines += not_here(left_out)
    for name, setting in known:
        lines += ["", *what_became(setting), f"{name} = {plain(setting.became)}"]
    return Rendered((ExportFile(file, "\n".join(lines) + "\n", f"/etc/sysctl.d/{file}"),), tuple(left_out))
