"""Variables and functions in the values of tuned's profiles: ``${name}`` and ``${f:function:argument}``.

A backslash before the dollar keeps what follows from being read. Source: tuned's manual, "Variables in TuneD profiles".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ajuste.profile.facts import Facts
from ajuste.profile.functions import Refused, call

_VARIABLE: Final = re.compile(r"(?<!\\)\$\{(\w+)\}")
_KEPT: Final = re.compile(r"\\(\$\{\w+\})")
_KEPT_CALL: Final = re.compile(r"\\(\$\{f:.*\})")
_COLON: Final = re.compile(r"(?<!\\):")
_MOST_CALLS: Final = 100


def expand(text: str, variables: Mapping[str, str], facts: Facts) -> str:
    """``text`` with all that is known put in. What names no variable stays as it is (see ``unknown``).

    Raises CannotCompute for a function that cannot be computed here, Refused for one that is called wrongly or an
    assertion that does not hold.
    """
    static = _KEPT.sub(r"\1", _VARIABLE.sub(lambda match: variables.get(match[1], match[0]), text))
    return _KEPT_CALL.sub(r"\1", _with_functions(static, facts))


def unknown(text: str) -> str | None:
    """The name of a variable in ``text`` that nothing was put in for."""
    match = _VARIABLE.search(text)
    return match[1] if match else None


def _with_functions(text: str, facts: Facts) -> str:
    """Calls are done from the inside out, from left to right; one that gives nothing stays as it stands."""
    begun: list[tuple[bool, int]] = []
    place = calls = 0
    while place < len(text):
        if text.startswith("${", place):
            begun.append((place > 0 and text[place - 1] == "\\", place))
        elif text[place] == "}" and begun:
            kept, start = begun.pop()
            inner = text[start + 2 : place]
            calls += 1
            if calls > _MOST_CALLS:
                raise Refused(f"more than {_MOST_CALLS} functions in one value")
            if not kept and inner.startswith("f:"):
                given = _call(inner, facts)
                if given is not None:
                    text = text[:start] + given + text[place + 1 :]
                    place = start + len(given) - 1
        place += 1
    if any(not kept and text.startswith("${f:", start) for kept, start in begun):
        raise Refused("a ${f:… without its closing }")
    return text


def _call(inner: str, facts: Facts) -> str | None:
    _, name, *arguments = (part.replace("\\:", ":") for part in _COLON.split(inner))
    return call(name, arguments, facts)
