"""Text for people: figures in words, short and with real minus signs, and text of others made harmless to look at."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ajuste_stats.terms import Scale

# Receiver of a few words on what happens now, e.g. `booting debian:5.10`; for progress displays.
Say = Callable[[str], None]

_PARTS_OF_SECONDS = {3: "ms", 6: "µs", 9: "ns"}
_PERCENT_FROM: Final = 0.01
_PERCENT_TO: Final = 2.0
_OF_BYTES: Final = ("KiB", "MiB", "GiB", "TiB")
_OF_A_SECOND: Final = {"ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}

_BEFORE_UNITS: Final = re.compile(
    r"(?<=\d) (?=(?:%|[nµm]?s|min|h|days|[kMG]?Hz|[KMGT]?i?B(?:/s)?|[mb]illion)(?:\W|$))|(?<=±) (?=\d)"
)

NO_BREAK: Final = "\u00a0"
_KEPT = frozenset("\n\t")
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_JOINERS = frozenset("\u200c\u200d")  # zero-width (non-)joiners: ordinary spelling in several scripts
_LINE_BREAKS = frozenset("\u2028\u2029")

# Letters and marks that show nothing (DerivedCoreProperties.txt of Unicode, Default_Ignorable_Code_Point; and the blank
# of Braille). U+FE0E and U+FE0F choose between a character and its picture, as people write them.
_IGNORED = (
    *((0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x2800, 0x2800), (0x3164, 0x3164)),
    *((0xFE00, 0xFE0D), (0xFFA0, 0xFFA0), (0xE0100, 0xE01EF)),
)

_EMPTY: Final = re.compile("[" + "".join(f"{chr(first)}-{chr(last)}" for first, last in _IGNORED) + "]")
LONGEST_WORD: Final = 200
LONGEST_VALUE: Final = 100
_QUOTED: Final = re.compile(r"""'[^']*'|"[^"]*\"""")
_ANSI_C: Final = {"\n": r"\n", "\t": r"\t", "\r": r"\r", "\\": r"\\"}


class Ongoing(str):
    """The progress of something that was announced before: the next text replaces it, and no log has it."""

    __slots__ = ()


def number(value: float) -> str:
    """Return a number for people: ``134``, ``0.0123``, ``228,510``."""
    if value == 0:
        return "0"
    text = f"{value:,.0f}" if 999.5 <= abs(value) < 1e15 else f"{value:.3g}"
    return text.replace("-", "−")


def signed(value: float) -> str:
    """Return a difference with its sign: ``+12.5``, ``−134``, ``0``."""
    return number(value) if value <= 0 else "+" + number(value)


def percent(share: float) -> str:
    """Return a share as a plain percentage: ``5 %``."""
    return f"{100 * share:.4g} %".replace("-", "−")


def count_of(count: int, noun: str) -> str:
    """Return a count with its noun: ``1 trial``, ``12 trials``, ``5 processes``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}{'es' if noun.endswith('s') else 's'}"


def block_words(count: int, more: str = "", *, of_rounds: bool) -> str:
    """Return ``1 block``, ``12 more blocks``; ``3 rounds of boots``, which are the blocks of a run across reboots."""
    singular, plural = ("round of boots", "rounds of boots") if of_rounds else ("block", "blocks")
    return f"{count:,} {more}{singular if count == 1 else plural}"


def block_name(block: int, warm_up: int = 0) -> str:
    """Return ``block 1`` for the first one that counts, after ``warm_up`` others."""
    return "warm-up" if block < warm_up else f"block {block - warm_up + 1:,}"


def is_percentage(ratio: float) -> bool:
    """Return whether a ratio is written in percent (``−92 %``, ``+87 %``), and not as a factor (``×4.7``)."""
    return _PERCENT_FROM <= ratio <= _PERCENT_TO


def factor(ratio: float) -> str:
    """Return a ratio as a factor with three digits: ``×5.11``."""
    if not math.isfinite(ratio):
        return "×∞"
    decimals = 2 - math.floor(math.log10(ratio)) if ratio > 0 else 0
    return f"×{ratio:.3g}" if ratio >= 1e15 else f"×{ratio:,.{min(max(0, decimals), 15)}f}"


def change(value: float | None, scale: Scale, unit: str, *, like: float | None = None) -> str:
    """Return an effect as people say it: a ratio as ``−12.3 %`` or ``×5.11``, in the form that suits ``like`` if that
    is given; a difference in the unit that suits it: ``+200 µs``; ``?`` where unbounded.
    """
    if value is None:
        return "?"
    if scale == "ratio" and not is_percentage(value if like is None else like):
        return factor(value)
    if scale == "ratio":
        share = 100 * (value - 1)
        return f"{signed(share)} %" if abs(share) >= 0.005 else "0.00 %"
    return amount(value, unit) if value <= 0 else f"+{amount(value, unit)}"


def amount(value: float, unit: str) -> str:
    """Return a figure of its own in the unit that suits it: ``12.9 ms`` for 0.0129 s, ``114 MiB`` for 119,727,718 B."""
    if unit in _OF_A_SECOND and 0 < abs(value) < math.inf:
        value, unit = value * _OF_A_SECOND[unit], "s"
    if unit == "s" and 0 < abs(value) < 1:
        power = 3 if abs(value) >= 1e-3 else 6 if abs(value) >= 1e-6 else 9
        return f"{number(value * 10**power)} {_PARTS_OF_SECONDS[power]}"
    if unit == "B" and 1024 <= abs(value) < math.inf:
        power = min(len(_OF_BYTES), int(math.log2(abs(value)) // 10))
        return f"{number(value / 1024**power)} {_OF_BYTES[power - 1]}"
    return quantity(number(value), unit)


def quantity(text: str, unit: str) -> str:
    """Return a figure with its unit, if it has one (counts need none): ``7 ms``, ``7/s``."""
    if unit.startswith("1/"):
        return f"{text}{unit[1:]}"
    return f"{text} {unit}" if unit and unit not in ("1", "count") else text


def unbroken(text: str, space: str = NO_BREAK) -> str:
    """Return a text whose numbers stay on one line with their units; ``space`` is what stands between them."""
    return _BEFORE_UNITS.sub(space, text)


def in_sentence(title: str) -> str:
    """Return a title as it stands within a sentence: ``elapsed time``; abbreviations keep their capitals."""
    return title if title[:2].isupper() else title[:1].lower() + title[1:]


def sentence_start(text: str) -> str:
    """Return a text as it stands at the start of a sentence; all but its first letter stays."""
    return text[:1].upper() + text[1:]


def split_at(separator: str, text: str) -> list[str]:
    """Return the parts of ``text`` between separators; a backslash takes the next character as it is, and stays."""
    parts = [""]
    for match in re.finditer(r"\\.|.", text, re.DOTALL):
        if match[0] == separator:
            parts.append("")
        else:
            parts[-1] += match[0]
    return parts


def listed(parts: list[str]) -> str:
    """Return a list in words: ``a``, ``a and b``, ``a, b and c``."""
    if len(parts) < 2:
        return "".join(parts)
    return ", ".join(parts[:-1]) + " and " + parts[-1]


def first_few(parts: Collection[str], most: int) -> list[str]:
    """Return the first ``most`` parts of a list, and as its last part how many more there are."""
    more = len(parts) - most
    return [*list(parts)[:most], *([f"{more:,} more"] if more > 0 else [])]


# Text that others wrote, made harmless to look at: the one place through which everything reaches a terminal.
#
# A guest's output, a study's title, a level or the name of a file can hold escape sequences that would move the cursor
# of a terminal, and direction overrides that show a command otherwise than it runs (Boucher and Anderson, "Trojan
# Source", 2021). ``visible`` makes them visible; what is printed goes through it (see ``report.console``).


def visible(text: str) -> str:
    r"""Return ``text`` with every control, format, unassigned and empty character written as ``\xNN`` or ``\uNNNN``;
    line feeds and tabs stay.
    """
    if _is_plain(text):
        return text
    return "".join(_escaped(character) if _is_hidden(character) else character for character in text)


def visible_line(text: str) -> str:
    """Make a text visible on one line: line feeds and tabs are written out too."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def shell_line(command: str) -> str:
    r"""Return what ``shlex.join`` makes on one line: words with control characters as bash, zsh and ksh read them,
    ``$'a\nb'``.
    """
    return command if visible_line(command) == command else _QUOTED.sub(_in_ansi_c, command)


def _in_ansi_c(quoted: re.Match[str]) -> str:
    text = quoted[0]
    return text if text[0] == '"' or visible_line(text) == text else f"$'{''.join(map(_byte_escaped, text[1:-1]))}'"


def _byte_escaped(character: str) -> str:
    # Octal bytes, which all of these shells know, are those that a program was given.
    if not _is_hidden(character):
        return _ANSI_C.get(character, character)
    errors = "surrogateescape" if "\udc80" <= character <= "\udcff" else "surrogatepass"
    return _ANSI_C.get(character) or "".join(f"\\{byte:03o}" for byte in character.encode(errors=errors))


def visible_json(text: str) -> str:
    """Make a JSON text visible with JSON's escapes: the document stays the same."""
    if _is_plain(text):
        return text
    return "".join(_escaped_in_json(character) if _is_hidden(character) else character for character in text)


def shortened(text: str) -> str:
    """Return a line of at most 2,000 characters, in which long words are cut so that the others can still be read."""
    words = (word if len(word) <= LONGEST_WORD else f"{word[:LONGEST_VALUE]}…" for word in text[:100_000].split(" "))
    line = " ".join(words)
    return line if len(line) <= 2000 else f"{line[:2000]}…"


def _is_plain(text: str) -> bool:
    # Return whether certainly no character is hidden: printable characters are in no hidden category.
    return text.replace("\n", " ").replace("\t", " ").isprintable() and not _EMPTY.search(text)


def _is_hidden(character: str) -> bool:
    if character in _KEPT or character in _JOINERS:
        return False
    if character in _LINE_BREAKS or unicodedata.category(character) in _HIDDEN_CATEGORIES:
        return True
    code = ord(character)
    return code >= _IGNORED[0][0] and any(first <= code <= last for first, last in _IGNORED)


def _escaped(character: str) -> str:
    code = ord(character)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _escaped_in_json(character: str) -> str:
    if (code := ord(character)) <= 0xFFFF:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
