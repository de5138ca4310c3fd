"""Blocks of docs/how-to/notebook.md are run in order, as in a notebook, and the example that it names."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "how-to" / "notebook.md"
EXAMPLE = DOCS / "examples" / "statistics.py"


def test_every_block_of_the_page_runs_and_what_it_asserts_is_true(
    machine_lock: None, ajuste_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AJUSTE_HOME", str(ajuste_home))
    text = PAGE.read_text()
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    names: dict[str, object] = {}
    for block in blocks:
        above = text.count("\n", 0, block.start(1))
        exec(compile("\n" * above + block[1], PAGE.name, "exec"), names)
    assert sum(block[1].count("assert ") for block in blocks) >= 4


def test_what_the_example_asserts_is_true() -> None:
    assert EXAMPLE.read_text().count("assert ") >= 5
    runpy.run_path(str(EXAMPLE))
