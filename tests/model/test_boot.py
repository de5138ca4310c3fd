"""Levels of what this machine boots: words of its command line."""

from __future__ import annotations

import pytest

from ajuste.model.boot import BootState, boot_state, check_boot_level
from ajuste.model.error import RequestError


def test_levels_become_words_of_the_command_line() -> None:
    state = boot_state(
        [("boot.mitigations", "off"), ("boot.nosmt", "set"), ("boot.quiet", "unset"), ("boot.cgroup", "v1")]
    )
    assert state.applied_to(["ro", "quiet", "mitigations=auto"]) == (
        "ro",
        "mitigations=off",
        "nosmt",
        "systemd.unified_cgroup_hierarchy=0",
    )
    assert boot_state([("boot.mitigations", "default")]) == BootState()


@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("boot.root", "/dev/sda"),
        ("boot.init", "/bin/sh"),
        ("boot.mitigations", "off; reboot"),
        ("boot.mitigations", "off\nlinux /x"),
        ("boot.mitigations", "$(reboot)"),
        ("boot.x y", "1"),
        ("boot.kernel", "../../etc/passwd"),
        ("boot.cgroup", "v3"),
    ],
)
def test_levels_that_would_say_more_to_a_boot_loader_are_refused(name: str, level: str) -> None:
    with pytest.raises(RequestError):
        check_boot_level(name, level)
