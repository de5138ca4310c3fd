"""Reasons why a kernel may not have come up."""

from __future__ import annotations

from pathlib import Path

import pytest

from ajuste_guest.executor.snapshot import likely_causes

WHOLE = "".join(
    f"CONFIG_{name}=y\n"
    for name in (
        *("64BIT", "BLK_DEV_INITRD", "BINFMT_ELF", "DEVTMPFS", "PROC_FS", "SYSFS", "X86_IOPL_IOPERM", "FUTEX"),
        *("EPOLL", "MULTIUSER", "TTY", "SERIAL_8250_CONSOLE", "PRINTK"),
    )
)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("BLK_DEV_INITRD", "cannot use an initramfs"),
        ("SERIAL_8250_CONSOLE", "no serial console"),
        ("DEVTMPFS", "no devices in /dev"),
    ],
)
def test_an_option_that_a_guest_needs_is_named(tmp_path: Path, option: str, words: str) -> None:
    config = tmp_path / "config"
    config.write_text(WHOLE.replace(f"CONFIG_{option}=y", f"# CONFIG_{option} is not set"))
    cause = likely_causes(config, "")
    assert cause is not None
    assert (words in cause, f"({option} is off)" in cause, cause.count(" is off")) == (True, True, 1)


def test_a_whole_kernel_that_says_nothing_gives_no_cause(tmp_path: Path) -> None:
    (tmp_path / "config").write_text(WHOLE)
    assert likely_causes(tmp_path / "config", "booting") is None
    assert likely_causes(None, "booting") is None


def test_the_console_says_it_too() -> None:
    panic = "Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)"
    assert "did not use its initramfs" in str(likely_causes(None, panic))
