"""Text that others wrote, made harmless to look at: control characters become visible.

A guest's output, a study's title or a level can hold escape sequences that would move the cursor of a terminal, and
direction overrides that show a command otherwise than it runs (Boucher and Anderson, "Trojan Source", 2021).
"""

from __future__ import annotations

import unicodedata

_KEPT = frozenset("\n\t")
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_JOINERS = frozenset("\u200c\u200d")  # zero-width (non-)joiners: ordinary spelling in several scripts
_LINE_BREAKS = frozenset("\u2028\u2029")


def visible(text: str) -> str:
    """``text`` with every control, format and unassigned character written as ``\\xNN`` or ``\\uNNNN``; line feeds
    and tabs stay.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escaped(character) if _is_hidden(character) else character for character in text)


def visible_line(text: str) -> str:
    """As ``visible``, on one line: line feeds and tabs are written out too."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def _is_hidden(character: str) -> bool:
    if character in _KEPT or character in _JOINERS:
        return False
    return character in _LINE_BREAKS or unicodedata.category(character) in _HIDDEN_CATEGORIES


def _escaped(character: str) -> str:
    code = ord(character)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
