"""The simulation as a picture: for every method, how often it finds what is not there, and what it sees of 2 %."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Final

from benchmarks.verdicts.cells import Cell
from benchmarks.verdicts.methods import ALPHA, METHODS
from benchmarks.verdicts.noise import NOISES

PICTURE: Final = Path(__file__).parents[2] / "docs" / "images" / "verdicts.svg"
_LEFT, _WIDTH, _GAP, _TOP, _ROW = 280, 300, 50, 66, 26
_STYLE: Final = """
text { font: 12px system-ui, sans-serif; fill: #24292f } .small { font-size: 11px; fill: #57606a }
.title { font-weight: 600 } .line { stroke: #d0d7de } .limit { stroke: #57606a; stroke-dasharray: 4 3 }
.good { fill: #0969da; fill-opacity: .75 } .bad { fill: #cf222e; fill-opacity: .75 } .back { fill: #ffffff }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .small { fill: #9198a1 } .line { stroke: #3d444d } .limit { stroke: #9198a1 }
.good { fill: #58a6ff } .bad { fill: #ff7b72 } .back { fill: #0d1117 } }
"""


def picture(cells: Sequence[Cell]) -> str:
    """An SVG, a row for each method and a dot for each noise; legible on light and on dark paper."""
    by_key = {(cell.noise, cell.effect, cell.method): cell for cell in cells}
    height = _TOP + _ROW * len(METHODS) + 44
    width = _LEFT + 2 * _WIDTH + _GAP + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        'aria-label="False verdicts without effect, and how often an effect of 2 % is found, by method">',
        f"<style>{_STYLE}</style>",
        f'<rect class="back" width="{width}" height="{height}"/>',
        f'<text class="small" x="12" y="{height - 10}">Each dot is one of {len(NOISES)} kinds of noise, '
        f"{cells[0].studies:,} simulated studies. Scales of square roots. Dashed: {100 * ALPHA:g} %.</text>",
        *_frame(_LEFT, "finds what is not there", True),
        *_frame(_LEFT + _WIDTH + _GAP, "finds an effect of 2 %", False),
    ]
    for row, method in enumerate(METHODS):
        y = _TOP + _ROW * (row + 0.5)
        weight = ' class="title"' if row == 0 else ""
        parts.append(f'<text{weight} x="{_LEFT - 14}" y="{y + 4}" text-anchor="end">{escape(method.title)}</text>')
        for noise in NOISES:
            none, two = (by_key[noise.name, effect, method.name] for effect in (0.0, 0.02))
            wrong, seen = none.wrong / none.studies, two.seen / two.studies
            parts.append(_dot(_LEFT, y, wrong, "bad" if wrong > ALPHA else "good", noise.title))
            parts.append(_dot(_LEFT + _WIDTH + _GAP, y, seen, "good", noise.title))
    return "\n".join([*parts, "</svg>\n"])


def _x(left: float, share: float) -> float:
    """A scale of square roots: what is rare has room."""
    return left + _WIDTH * math.sqrt(share)


def _frame(left: float, title: str, limit: bool) -> list[str]:
    bottom = _TOP + _ROW * len(METHODS)
    parts = [f'<text class="title" x="{left}" y="24">{escape(title)}</text>']
    for share in (0.0, 0.01, 0.1, 0.25, 0.5, 1.0):
        x = _x(left, share)
        parts.append(f'<line class="line" x1="{x:.1f}" y1="{_TOP - 6}" x2="{x:.1f}" y2="{bottom}"/>')
        parts.append(f'<text class="small" x="{x:.1f}" y="{_TOP - 14}" text-anchor="middle">{100 * share:g} %</text>')
    if limit:
        x = _x(left, ALPHA)
        parts.append(f'<line class="limit" x1="{x:.1f}" y1="{_TOP - 6}" x2="{x:.1f}" y2="{bottom}"/>')
    return parts


def _dot(left: float, y: float, share: float, kind: str, title: str) -> str:
    return (
        f'<circle class="{kind}" cx="{_x(left, share):.1f}" cy="{y}" r="4.5">'
        f"<title>{escape(title)}: {100 * share:.1f} %</title></circle>"
    )
