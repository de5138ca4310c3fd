"""``--metric``: one that is known by its name, or how to read one from the command's output.

``NAME,WORD,…=regex:PATTERN`` or ``NAME,WORD,…=json:/POINTER``. The words before the equals sign can stand in any order:
``lower``, ``higher`` or ``none`` says which is better (one of them must be there), ``stderr`` where it is printed,
``difference`` that it can be 0 or negative, ``step=0.001`` the smallest step of the printed figure; any other is the
unit. Everything after the colon belongs to the pattern, so that it needs no escaping.
"""

from __future__ import annotations

import re
from typing import Any, Final, get_args

from ajuste.adhoc.amount import wrong
from ajuste.model.metric import Direction

OPTION: Final = "--metric"
_DEFINITION: Final = re.compile(r"(.*?)=(regex|json):(.*)", re.DOTALL)
_FIELD: Final = {"regex": "pattern", "json": "pointer"}
_EXAMPLE: Final = (
    "for example --metric 'copy-time,s,lower=regex:copied in ([0-9.]+) s' or iops,higher=json:/jobs/0/iops"
)
_WORDS: Final[dict[str, tuple[str, str]]] = {
    **{word: ("direction", word) for word in get_args(Direction)},
    "stderr": ("stream", "stderr"),
    "stdout": ("stream", "stdout"),
    "difference": ("scale", "difference"),
    "ratio": ("scale", "ratio"),
}


def read_metric(text: str) -> dict[str, Any] | str:
    """The table ``[[workload.metric]]`` that ``text`` comes to, or the name of a known metric. Raises RequestError."""
    match = _DEFINITION.fullmatch(text)
    if match is None:
        if "=" in text or "," in text:
            raise wrong(OPTION, text, "NAME of a known metric, NAME,…=regex:PATTERN or NAME,…=json:/POINTER", _EXAMPLE)
        return text
    name, *words = match[1].split(",")
    table: dict[str, Any] = {"name": name}
    for word in words:
        field, value = _word(word.strip(), text)
        if field in table:
            raise wrong(OPTION, text, f'one {field}; found "{table[field]}" and "{value}"', _EXAMPLE)
        table[field] = value
    if "direction" not in table:
        raise wrong(
            OPTION, text, f"which is better: {name},lower or {name},higher or {name},none before the =", _EXAMPLE
        )
    return {**table, _FIELD[match[2]]: match[3]}


def _word(word: str, text: str) -> tuple[str, str | float]:
    if word in _WORDS:
        return _WORDS[word]
    if word.startswith("step="):
        try:
            return "resolution", float(word.removeprefix("step="))
        except ValueError:
            raise wrong(OPTION, text, f'a number as in step=0.001; found "{word}"', _EXAMPLE) from None
    if not word:
        raise wrong(OPTION, text, "a word after each comma", _EXAMPLE)
    return "unit", word
