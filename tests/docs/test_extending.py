"""The examples of how to extend Ajuste: each file is added to a copy of the package, and its command works."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ajuste
from ajuste.machine.home import AGENT, native_program

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "how-to/extend.md").read_text()
EXAMPLES = DOCS / "examples/extend"
COPIED = "cp -r docs/examples/extend/src ."
EXPECTED = {
    "ajuste tunables show kernel.printk_ratelimit_burst": "Burst of rate-limited kernel messages",
    "ajuste compare --dry-run --set workload.file=true,false -- count-bytes": "wc.bytes",
    "ajuste plan printk": "Does the burst of kernel messages change",
    "ajuste export granularity --format environment": "run 'granularity' not found",
    "ajuste kernel prove debian:5.10 ksm": "ksm",
    "ajuste scaling --on 1,2 --kernel debian:5.10 --blocks 1 -- hackbench groups=1 loops=20": "Speed-up",
}


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with the example files."""
    root = tmp_path_factory.mktemp("extended")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(ajuste.__file__).parent, root / "src/ajuste", ignore=ignored)
    added = [path.relative_to(EXAMPLES) for path in EXAMPLES.rglob("*.*") if path.is_file()]
    assert len(added) == 9
    for name in added:
        assert not (root / name).exists()
        shutil.copy(EXAMPLES / name, root / name)
    return root


def test_every_command_of_the_page_is_known() -> None:
    assert re.findall(r"^```sh\n(.*)\n```", PAGE, re.MULTILINE) == [COPIED, *EXPECTED]


@pytest.mark.vm
@pytest.mark.parametrize("command", EXPECTED)
def test_an_example_works(extended: Path, ajuste_home: Path, command: str) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": str(extended / "src"),
        "AJUSTE_HOME": str(ajuste_home),
        "AJUSTE_NATIVE": str(native_program(AGENT).parent),
    }
    words = [sys.executable, "-c", "from ajuste.cli.main import main; main()", *command.split()[1:]]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert EXPECTED[command] in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == (2 if "not found" in EXPECTED[command] else 0)
