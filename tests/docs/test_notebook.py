"""Every block of docs/how-to/notebook.md is run, one after the other, as in a notebook."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "notebook.md"


def test_every_block_of_the_page_runs_and_what_it_asserts_is_true(machine_lock: None) -> None:
    text = PAGE.read_text()
    found = list(re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    names: dict[str, object] = {}
    for block in found:
        above = text.count("\n", 0, block.start(1))
        exec(compile("\n" * above + block[1], PAGE.name, "exec"), names)
    assert sum(block[1].count("assert ") for block in found) >= 6
