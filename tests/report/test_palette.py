"""The colours can be told from their ground, in both themes (WCAG 2.2)."""

from __future__ import annotations

import pytest

from ajuste.report.plots.plot import ROLES, SERIES

WORDS = ("improves", "worsens", "differs", "equivalent", "undecided")


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(ink: str, ground: str) -> float:
    high, low = sorted((luminance(ink), luminance(ground)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1])
@pytest.mark.parametrize(
    ("text", "ground"),
    [(role, ground) for role in ("ink", "muted", "accent") for ground in ("page", "card")]
    + [("ink", "warning-ground"), *((word, f"{word}-ground") for word in WORDS)],
)
def test_text_stands_out(text: str, ground: str, theme: int) -> None:
    assert contrast(ROLES[text][theme], ROLES[ground][theme]) >= 4.5


@pytest.mark.parametrize("theme", [0, 1])
@pytest.mark.parametrize("mark", [*(f"series-{place}" for place in range(SERIES)), *WORDS])
def test_marks_stand_out(mark: str, theme: int) -> None:
    assert contrast(ROLES[mark][theme], ROLES["card"][theme]) >= 3
