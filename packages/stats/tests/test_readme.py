"""The example of the README does what it says."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_every_block_runs_and_what_it_asserts_is_true() -> None:
    text = README.read_text(encoding="utf-8")
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    names: dict[str, object] = {}
    for block in blocks:
        above = text.count("\n", 0, block.start(1))
        exec(compile("\n" * above + block[1], README.name, "exec"), names)
    assert sum(block[1].count("assert ") for block in blocks) >= 4
