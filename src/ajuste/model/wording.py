"""Figures in words: short, with three significant digits and real minus signs."""

from __future__ import annotations

from collections.abc import Callable

from ajuste.model.metric import Scale

Say = Callable[[str], None]
"""Told in a few words what happens now, e.g. ``booting debian:5.10``; for progress displays."""

_PARTS_OF_SECONDS = {3: "ms", 6: "µs", 9: "ns"}


def number(value: float) -> str:
    """``134``, ``0.0123``, ``228,510``."""
    if value == 0:
        return "0"
    text = f"{value:,.0f}" if 999.5 <= abs(value) < 1e15 else f"{value:.3g}"
    return text.replace("-", "−")


def signed(value: float) -> str:
    """A difference: ``+12.5``, ``−134``, ``0``."""
    return number(value) if value <= 0 else "+" + number(value)


def percent(share: float) -> str:
    """A share as a plain percentage: ``5 %``."""
    return f"{100 * share:.4g} %".replace("-", "−")


def change(value: float | None, scale: Scale, unit: str) -> str:
    """An effect as people say it: a ratio as ``−12.3 %``, a difference as ``+0.2 ms``; ``?`` where unbounded."""
    if value is None:
        return "?"
    if scale == "ratio":
        share = 100 * (value - 1)
        return f"{signed(share)} %" if abs(share) >= 0.005 else "0.00 %"
    return quantity(signed(value), unit)


def amount(value: float, unit: str) -> str:
    """A figure of its own in the unit that suits it: ``12.9 ms`` for 0.0129 s."""
    if unit == "s" and 0 < abs(value) < 1:
        power = 3 if abs(value) >= 1e-3 else 6 if abs(value) >= 1e-6 else 9
        return f"{number(value * 10**power)} {_PARTS_OF_SECONDS[power]}"
    return quantity(number(value), unit)


def quantity(text: str, unit: str) -> str:
    """A figure with its unit, if it has one (counts need none)."""
    return f"{text} {unit}" if unit and unit not in ("1", "count") else text


def listed(parts: list[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    if len(parts) < 2:
        return "".join(parts)
    return ", ".join(parts[:-1]) + " and " + parts[-1]
