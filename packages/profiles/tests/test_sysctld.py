"""Files of sysctl.d."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ajuste.model.error import RequestError
from ajuste.study.profile import Profile
from ajuste_profiles.source import profile_files, read_sysctls

KNOWN = ("vm.swappiness", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem")


def read(*files: Path) -> Profile:
    return read_sysctls(files, KNOWN, name="x", spec="x", origin="x")


def words(profile: Profile) -> list[str]:
    return [line.words for line in profile.lines]


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_lines_comments_and_both_spellings(tmp_path: Path) -> None:
    text = (
        "# a\n; b\n\n vm.swappiness =10\nnet/ipv4/conf/eth0.1/arp_announce = 2\n-kernel.sysrq=1\nnet/core/somaxconn=9\n"
    )
    profile = read(write(tmp_path / "a.conf", text))
    assert words(profile) == [
        "vm.swappiness = 10",
        "net/ipv4/conf/eth0.1/arp_announce = 2",
        "kernel.sysrq = 1",
        "net.core.somaxconn = 9",
    ]
    assert [line.may_fail for line in profile.lines] == [False, False, True, False]
    assert profile.lines[0].number == 4


def test_what_is_said_last_holds_but_a_pattern_never_overrides_a_name(tmp_path: Path) -> None:
    first = write(tmp_path / "1.conf", "net.ipv4.tcp_rmem = 1 2 3\nvm.swappiness = 1\n")
    second = write(tmp_path / "2.conf", "vm.swappiness = 2\nnet.ipv4.tcp_?mem = 4 5 6\n")
    assert words(read(first, second)) == [
        "net.ipv4.tcp_wmem = 4 5 6",
        "net.ipv4.tcp_rmem = 1 2 3",
        "vm.swappiness = 2",
    ]


def test_a_name_with_a_minus_and_no_value_is_kept_from_patterns(tmp_path: Path) -> None:
    file = write(tmp_path / "1.conf", "-net.ipv4.tcp_rmem\nnet.ipv4.tcp_*mem = 4 5 6\n")
    assert words(read(file)) == ["net.ipv4.tcp_wmem = 4 5 6"]


def test_a_file_takes_the_place_of_its_like_in_later_folders_and_all_go_by_name(tmp_path: Path) -> None:
    etc, usr = tmp_path / "etc", tmp_path / "usr"
    write(etc / "50-b.conf", "")
    write(usr / "50-b.conf", "")
    write(usr / "10-a.conf", "")
    write(usr / "readme", "")
    assert profile_files([etc, usr]) == [usr / "10-a.conf", etc / "50-b.conf"]


@pytest.mark.parametrize("text", ["vm.swappiness 10", "= 10"])
def test_what_is_no_line_is_told_with_its_number(tmp_path: Path, text: str) -> None:
    with pytest.raises(RequestError, match="expected NAME = VALUE") as raised:
        read(write(tmp_path / "a.conf", f"vm.laptop_mode=1\n{text}\n"))
    assert raised.value.place is not None
    assert raised.value.place.line == 2


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(text=st.text(alphabet="abz.-/*?[=#; \n1é", max_size=60))
def test_any_file_is_read_or_refused_and_sets_each_thing_once(tmp_path: Path, text: str) -> None:
    with contextlib.suppress(RequestError):
        names = [line.option for line in read(write(tmp_path / "a.conf", text)).lines]
        assert len(names) == len(set(names))
