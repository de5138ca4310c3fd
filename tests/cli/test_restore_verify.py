"""``ajuste restore --verify`` on this machine: what a run left changed is found, and a run leaves nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from shell import Shell

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="changing settings needs root"),
    pytest.mark.usefixtures("machine_lock"),
]

ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
EXPIRE = Path("/proc/sys/vm/dirty_expire_centisecs")


@pytest.fixture
def expire() -> Iterator[str]:
    before = EXPIRE.read_text()
    yield before.strip()
    EXPIRE.write_text(before)


def test_a_run_is_verified_and_what_was_left_is_found(ajuste: Shell, expire: str) -> None:
    levels = f"vm.dirty_expire_centisecs={int(expire) + 1},{int(expire) + 2}"
    _, complained = ajuste("restore", "--verify", "--dry-run", expect=2)
    assert "--verify conflicts with --dry-run" in complained
    _, complained = ajuste("restore", "--verify", expect=2)
    assert "there is no state to compare with" in complained
    ajuste("compare", "--set", levels, "--blocks", "2", "--", "true")
    document = ajuste.json("restore", "--verify")
    assert document["restored"]
    assert document["checked"] > 100
    EXPIRE.write_text("1234\n")
    output, complained = ajuste("restore", "--verify", expect=1)
    assert f"  vm.dirty_expire_centisecs is 1234, was {expire}" in output.partition("Written by Ajuste")[2]
    assert "1 of the tunables that Ajuste wrote is not as before the run" in complained
    EXPIRE.write_text(f"{expire}\n")
    ajuste("restore", "--verify")


def test_congestion_controls_that_were_allowed_are_all_that_are(ajuste: Shell) -> None:
    current = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    allowed = ALLOWED.read_text()
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    more = [name for name in available if name not in allowed.split() and name in ("cubic", "reno", "bbr")]
    if not more:
        pytest.skip("every congestion control of this machine is allowed")
    ajuste("compare", "--set", f"net.ipv4.tcp_congestion_control={current},{more[0]}", "--blocks", "2", "--", "true")
    assert ALLOWED.read_text() == allowed
    ajuste("restore", "--verify")
