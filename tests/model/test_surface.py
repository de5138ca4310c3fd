"""The keys of surfaces in ``--json``: what others build on, and what docs/reference/report.md says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from ajuste.model.results import Results
from ajuste.model.surface import Correlation, Curve, Region, Surface, SurfaceAxis, SurfacePoint

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "report.md"
DOCUMENT = PAGE.read_text(encoding="utf-8").partition("## Surfaces in JSON")[2]


@pytest.mark.parametrize("part", [SurfaceAxis, Correlation, Curve, Region, Surface, SurfacePoint])
def test_every_key_is_documented(part: type[BaseModel]) -> None:
    assert set(part.model_fields) <= set(re.findall(r"`(\w+)`", DOCUMENT))


def test_results_without_a_surface_have_none() -> None:
    assert Results.model_fields["surfaces"].default == Results.model_fields["correlations"].default == ()
