"""The colours of the HTML report, by role, for light and dark.

The series follow Okabe and Ito, "Color Universal Design" (2008), made darker or lighter until they stand out at 3:1
from the ground they are on; text stands out at 4.5:1 (WCAG 2.2, 1.4.3 and 1.4.11).
"""

from __future__ import annotations

from typing import Final, Literal

Theme = Literal["light", "dark"]

ROLES: Final[dict[str, tuple[str, str]]] = {
    "page": ("#f7f8f9", "#13171b"),
    "card": ("#ffffff", "#1b2026"),
    "ink": ("#1b2127", "#e8ebee"),
    "muted": ("#56616c", "#a1acb7"),
    "line": ("#d9dee3", "#38414a"),
    "grid": ("#e9ecef", "#2a3138"),
    "accent": ("#0b5cad", "#7ab8f5"),
    "band": ("#e3ecf4", "#26323e"),
    "warning-ground": ("#fdf3dc", "#2f2817"),
    "warning-line": ("#d9a520", "#a67c1a"),
    "improves": ("#00694f", "#45c9a3"),
    "worsens": ("#a93c00", "#ff9a62"),
    "differs": ("#0b5cad", "#7ab8f5"),
    "equivalent": ("#56616c", "#a9b4bf"),
    "undecided": ("#7d5a00", "#e5b84d"),
    "improves-ground": ("#dff3ec", "#16332b"),
    "worsens-ground": ("#fbe7dc", "#3a2418"),
    "differs-ground": ("#e1edf9", "#1a2e43"),
    "equivalent-ground": ("#e9edf0", "#2a3138"),
    "undecided-ground": ("#faf0d4", "#332a14"),
    "series-0": ("#1b2127", "#e8ebee"),
    "series-1": ("#0072b2", "#4fa3e0"),
    "series-2": ("#c85200", "#ff8f4d"),
    "series-3": ("#00845f", "#2bc79b"),
    "series-4": ("#b3568a", "#e59cc4"),
    "series-5": ("#a66f00", "#f0b93a"),
    "series-6": ("#2a86bd", "#9fdcff"),
    "series-7": ("#7454a8", "#b79be6"),
    "heat-0": ("#f2f6fa", "#1f272f"),
    "heat-1": ("#c4dbef", "#24415c"),
    "heat-2": ("#7fb2dc", "#2f6c9e"),
    "heat-3": ("#2f7fbf", "#58a3dc"),
    "heat-4": ("#08508f", "#b4dbfb"),
    "fall-1": ("#9cc9ea", "#2c5f86"),
    "fall-2": ("#3f93cc", "#4793cb"),
    "fall-3": ("#08508f", "#a5d5fb"),
    "rise-1": ("#fbc79f", "#7d4a25"),
    "rise-2": ("#e98a45", "#d07a3c"),
    "rise-3": ("#a93c00", "#ffc49c"),
    "still": ("#c3cbd3", "#4d5863"),
    "wave": ("#b3568a", "#e59cc4"),
}

SERIES: Final = 8  # series-0 (the baseline) … series-7
HEATS: Final = 5  # heat-0 … heat-4
SYMBOLS: Final = (
    "circle",
    "square",
    "diamond",
    "triangle-up",
    "triangle-down",
    "pentagon",
    "hexagon",
    "star",
)


def variable(role: str) -> str:
    """How a figure or a style names a colour: the page's script puts the theme's own in its place."""
    if role not in ROLES:
        raise KeyError(role)
    return f"var(--{role})"


def declarations(theme: Theme) -> str:
    """The roles as CSS custom properties, one a line."""
    column = 0 if theme == "light" else 1
    return "\n".join(f"  --{role}: {colours[column]};" for role, colours in ROLES.items())
