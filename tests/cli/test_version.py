"""Facts about an installation for a bug report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ajuste.machine.files import file_sha256
from ajuste.machine.home import AGENT, EXTRAS, ajuste_version, native_program

MAIN = "from ajuste.cli.main import main; main()"


def ajuste(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", MAIN, *words], env={**os.environ, **environment}, capture_output=True, text=True
    )


def test_the_version_alone_is_one_line() -> None:
    assert ajuste("--version").stdout == f"ajuste {ajuste_version()}\n"
    assert json.loads(ajuste("--version", "--json").stdout) == {"ajuste": ajuste_version()}


def test_all_facts_are_in_both_forms(tmp_path: Path) -> None:
    facts = json.loads(ajuste("--version", "--verbose", "--json", AJUSTE_HOME=str(tmp_path / "home")).stdout)
    assert facts["agent"]["sha256"] == file_sha256(native_program(AGENT))
    assert facts["agent"]["version"].startswith("ajuste-agent ")
    assert facts["kernel"] == os.uname().release
    assert facts["paths"]["data"] == str(tmp_path / "home" / "data")
    assert set(facts["extras"]) == set(EXTRAS)
    assert not (tmp_path / "home").exists()
    output = ajuste("--version", "--verbose", AJUSTE_HOME=str(tmp_path / "home")).stdout
    assert [line.partition(":")[0] for line in output.splitlines()[1:]] == list(facts)[1:]
    assert facts["agent"]["sha256"] in output


def test_what_is_broken_is_a_fact_too(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    done = ajuste("--version", "--verbose", "--json", AJUSTE_NATIVE=str(tmp_path), AJUSTE_HOME=str(tmp_path / "home"))
    facts = json.loads(done.stdout)
    assert done.returncode == 0
    assert facts["agent"]["problem"] == f"program ajuste-agent not found in {tmp_path}"
    assert "writable by every user" in facts["paths"]["problem"]


@pytest.mark.parametrize("option", ["--verbose", "--json"])
def test_its_options_say_that_they_belong_to_it(option: str) -> None:
    done = ajuste(option, "studies")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{option} before a command requires --version" in done.stderr
