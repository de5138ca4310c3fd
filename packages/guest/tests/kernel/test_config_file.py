"""Reading a kernel's .config."""

from __future__ import annotations

from pathlib import Path

import pytest

from ajuste.model.error import RequestError
from ajuste_guest.kernel.config import ABSENT, OFF, ConfigSetting, parse_config, read_config

TEXT = """\
#
# Automatically generated file; DO NOT EDIT.
# Linux/x86 6.1.192 Kernel Configuration
#
CONFIG_CC_VERSION_TEXT="gcc-12 (Debian \\"12\\") 12.2.0"

#
# General setup
#
CONFIG_BUILD_SALT=""
# CONFIG_WERROR is not set

#
# Timers subsystem
#
CONFIG_HZ=250
# end of Timers subsystem

#
# A remark, which is no menu
#
CONFIG_ZRAM=m
# end of General setup

CONFIG_PHYSICAL_START=0x1000000
"""


def test_values_are_read_by_their_kind() -> None:
    config = parse_config(TEXT)
    assert config["HZ"] == ConfigSetting("number", "250")
    assert config["ZRAM"] == ConfigSetting("switch", "m")
    assert config["WERROR"] == OFF
    assert config["BUILD_SALT"] == ConfigSetting("text", "")
    assert config["PHYSICAL_START"] == ConfigSetting("hex", "0x1000000")
    assert config["NO_SUCH_OPTION"] == ABSENT


def test_the_versions_of_kernel_and_compiler_are_read() -> None:
    config = parse_config(TEXT)
    assert config.kernel == "6.1.192"
    assert config.compiler == 'gcc-12 (Debian "12") 12.2.0'


def test_menus_are_known_from_the_headings() -> None:
    menus = parse_config(TEXT).menus
    assert menus["HZ"] == ("General setup", "Timers subsystem")
    assert menus["ZRAM"] == ("General setup",)
    assert menus["PHYSICAL_START"] == ()


def test_only_what_is_in_the_kernel_is_on() -> None:
    config = parse_config(TEXT)
    assert [config[name].is_on for name in ("ZRAM", "HZ", "WERROR", "ABSENT")] == [True, True, False, False]


def test_what_is_written_is_read_again() -> None:
    config = parse_config(TEXT)
    assert parse_config(config.text()).settings == config.settings


def test_the_last_of_two_lines_counts() -> None:
    assert parse_config("CONFIG_A=y\n# CONFIG_A is not set\n")["A"] == OFF


@pytest.mark.parametrize("line", ["int main(void)", "CONFIG_A", "CONFIG_A=maybe", 'CONFIG_A="open', "CONFIG_A="])
def test_a_line_that_belongs_in_no_config_is_named(line: str) -> None:
    with pytest.raises(RequestError, match=r"x\.config:2"):
        parse_config(f"CONFIG_B=y\n{line}\n", "x.config")


def test_a_file_without_options_is_no_config(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("# nothing\n")
    with pytest.raises(RequestError, match="no kernel options"):
        read_config(tmp_path / "empty")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"cannot read .*nowhere"):
        read_config(tmp_path / "nowhere")
