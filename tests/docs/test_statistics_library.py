"""The reference of ajuste-stats lists its public names, all and no others."""

from __future__ import annotations

import re
from pathlib import Path

import ajuste_stats

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "statistics-library.md"


def test_the_reference_lists_every_public_name_once() -> None:
    listed = re.findall(r"^::: ajuste_stats\.(\w+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(ajuste_stats.__all__)
