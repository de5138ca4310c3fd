"""The reproducers of docs/examples, as a CI runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from shell import Shell, has_libbpf
from tiers import slow

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


@pytest.fixture
def ajuste(tmp_path: Path, ajuste_home: Path) -> Shell:
    return Shell(tmp_path, ajuste_home)


pytestmark = [pytest.mark.vm, pytest.mark.timeout(900)]


@pytest.mark.parametrize("name", ["granularity-test", *slow("nice-test")])
def test_a_reproducer_passes_and_fails_where_it_should(ajuste: Shell, name: str) -> None:
    text = (EXAMPLES / f"{name}.toml").read_text()
    (ajuste.directory / "wrong.toml").write_text(text.replace('verdict = ["', 'verdict = ["equivalent"] # "'))
    assert "3 of 3 expectations met" in ajuste("run", str(EXAMPLES / f"{name}.toml"), "--quiet")[0]
    assert "2 of 3 expectations met" in ajuste("run", "wrong.toml", "--quiet", expect=3)[0]


@pytest.mark.slow
def test_a_scheduler_in_the_file_passes_and_one_that_stalls_fails(ajuste: Shell) -> None:
    if not has_libbpf():
        pytest.skip("no clang with libbpf 1.2 or later")
    text = (EXAMPLES / "fifo-test.toml").read_text()
    assert "3 of 3 expectations met" in ajuste("run", str(EXAMPLES / "fifo-test.toml"), "--build", "--quiet")[0]
    (ajuste.directory / "stall.toml").write_text(
        text.replace("scx_bpf_dsq_insert((void", "if (0) scx_bpf_dsq_insert((void")
    )
    output, _ = ajuste("run", "stall.toml", "--build", "--quiet", expect=3)
    assert "expected no failed trial" in output
