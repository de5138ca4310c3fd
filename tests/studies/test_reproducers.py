"""The reproducers of docs/examples, as a CI runs them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from shell import Shell
from tiers import slow

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
LOOKS = "#include <bpf/libbpf.h>\nint main(void) { return !bpf_map__attach_struct_ops(bpf_map__inner_map(0)); }\n"


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
    looked = ["cc", "-x", "c", "-", "-o", "/dev/null", "-l:libbpf.a", "-lelf", "-lz"]
    found = shutil.which("clang") and not subprocess.run(looked, input=LOOKS, text=True, check=False).returncode
    if not found:
        pytest.skip("no clang with libbpf 1.2 or later")
    text = (EXAMPLES / "fifo-test.toml").read_text()
    assert "3 of 3 expectations met" in ajuste("run", str(EXAMPLES / "fifo-test.toml"), "--build", "--quiet")[0]
    (ajuste.directory / "stall.toml").write_text(
        text.replace("scx_bpf_dsq_insert((void", "if (0) scx_bpf_dsq_insert((void")
    )
    said, _ = ajuste("run", "stall.toml", "--build", "--quiet", expect=3)
    assert "expected no failed trial" in said
