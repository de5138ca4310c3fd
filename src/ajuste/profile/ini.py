"""Files of sections and options as tuned reads them, with the number of each line.

The values are read by Python's own configparser with tuned's choices, so that both understand a file alike.
"""

from __future__ import annotations

import configparser
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ajuste.model.error import Place, RequestError

_MOST_BYTES: Final = 1_000_000
_MOST_LINES: Final = 10_000
"""configparser gathers what is wrong in a message, which takes ever longer with each line."""
_OPTION: Final = re.compile(r"\s*([^=#;\[\s][^=]*?)\s*(?:=|$)")


@dataclass(frozen=True)
class IniOption:
    """The value of an option, and the line where it is given."""

    value: str
    file: Path
    number: int | None


Sections = dict[str, dict[str, IniOption]]


def read_text(path: Path) -> str:
    """The text of a profile's file. Raises RequestError for what cannot be read, or is far too large for one."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise RequestError(
                f"has more than {_MOST_BYTES} bytes; expected a profile of at most {_MOST_BYTES}", place=Place(path)
            )
        text = path.read_text(encoding="utf-8")
    except OSError as failure:
        raise RequestError(
            f"cannot be read: {failure.strerror}", place=Place(path), hint="check that the file exists and is readable"
        ) from None
    except UnicodeDecodeError:
        raise RequestError("is not valid UTF-8; expected a text file", place=Place(path)) from None
    if text.count("\n") > _MOST_LINES:
        raise RequestError(
            f"has more than {_MOST_LINES} lines; expected a profile of at most {_MOST_LINES}", place=Place(path)
        )
    return text


def read_sections(text: str, path: Path, *, section: str = "") -> Sections:
    """The sections of ``text``, which is from ``path``; with ``section`` the file has none, and all belongs to that.

    Raises RequestError with the line of what is no section, option or comment.
    """
    parser = configparser.RawConfigParser(
        delimiters=("=",),
        inline_comment_prefixes=("#",),
        strict=False,
        allow_no_value=bool(section),
        default_section="\0",
    )
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    lead = f"[{section}]\n" if section else ""
    try:
        parser.read_string(lead + text, str(path))
    except configparser.MissingSectionHeaderError as failure:
        raise RequestError("expected a [section] before the first option", place=Place(path, failure.lineno)) from None
    except configparser.ParsingError as failure:
        number = failure.errors[0][0] - bool(lead)
        raise RequestError("expected OPTION = VALUE, a [section] or a # comment", place=Place(path, number)) from None
    numbers = _numbers(text, section)
    return {
        name: {
            option: IniOption(value or "", path, numbers.get((name, option)))
            for option, value in parser.items(name, raw=True)
        }
        for name in parser.sections()
    }


def _numbers(text: str, section: str) -> dict[tuple[str, str], int]:
    """The line of every section (with the option ``""``) and option, of several the last."""
    found: dict[tuple[str, str], int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[(.+)\]", line):
            section = header[1]
            found.setdefault((section, ""), number)
        elif option := _OPTION.match(line):
            found[section, option[1]] = number
    return found


def line_of_section(text: str, name: str) -> int | None:
    """Where a section begins."""
    return _numbers(text, "").get((name, ""))
