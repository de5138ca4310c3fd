"""Two machines that share a store in PostgreSQL: what one has measured the other shows, and goes on with."""

from __future__ import annotations

from pathlib import Path

import pytest

from own_home import own_home
from postgresql import Server
from shell import SMALL, Shell, small

pytestmark = pytest.mark.vm


def machine(root: Path, store: str) -> Shell:
    """A machine of its own: its files, its home, but the same kernels."""
    home = own_home(root / "home")
    (root / "small.toml").write_text(SMALL)
    return Shell(root, home, store)


@pytest.mark.slow
def test_a_run_of_one_machine_is_shown_and_gone_on_with_by_another(tmp_path: Path, postgresql: Server) -> None:
    url = postgresql.new_database()
    here, there = machine(tmp_path / "here", url), machine(tmp_path / "there", url)

    measured = here.json("run", "small.toml")
    assert there.json("report", "small") == measured
    assert there.json("run", "small.toml")["run"] == measured["run"], "nothing is measured twice"

    (there.directory / "small.toml").write_text(small(8, 8))
    longer = there.json("run", "small.toml")
    assert (longer["run"], longer["blocks"]) == (f"{measured['run']}.2", 8)
    assert here.json("report", measured["run"]) == measured, "what ended never changes"
