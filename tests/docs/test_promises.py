"""Tests that the page of promises names are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from looped import each

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "promises.md"
NAMED = sorted(set(re.findall(r"`((?:tests|native)/[^`\s]+)`", PAGE.read_text(encoding="utf-8"))))


def test_the_page_names_tests() -> None:
    assert len(NAMED) > 20


@each(NAMED)
def test_it_is_there(named: str) -> None:
    path, *names = named.split("::")
    assert (ROOT / path).exists()
    body: list[ast.stmt] = ast.parse((ROOT / path).read_text(encoding="utf-8")).body if names else []
    for name in names:
        matches = [node for node in body if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name]
        assert matches, f"{path} has no {name}"
        body = matches[0].body
