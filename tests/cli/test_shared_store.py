"""Two machines that share a store in PostgreSQL: what one has measured the other shows, and goes on with."""

from __future__ import annotations

from pathlib import Path

import pytest

from postgresql import Server
from shell import SMALL, Shell

pytestmark = pytest.mark.vm


def machine(root: Path, cache: Path, store: str) -> Shell:
    """A machine of its own: its files, its home, but the same kernels."""
    (root / "home").mkdir(parents=True)
    (root / "home" / "cache").symlink_to(cache)
    (root / "small.toml").write_text(SMALL)
    return Shell(root, root / "home", store)


def test_a_run_of_one_machine_is_shown_and_gone_on_with_by_another(
    tmp_path: Path, ajuste_home: Path, postgresql: Server
) -> None:
    url, cache = postgresql.new_database(), ajuste_home / "cache"
    here, there = machine(tmp_path / "here", cache, url), machine(tmp_path / "there", cache, url)

    measured = here.json("run", "small.toml")
    assert there.json("report", "small") == measured
    assert there.json("run", "small.toml")["run"] == measured["run"], "nothing is measured twice"

    (there.directory / "small.toml").write_text(SMALL.replace("max_blocks = 3", "max_blocks = 4").replace("= 3", "= 4"))
    longer = there.json("run", "small.toml")
    assert (longer["run"], longer["blocks"]) == (measured["run"], 4)
