"""Whatever is printed, on a console or without one, is text and nothing else."""

from __future__ import annotations

import io
import json
import re
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table
from rich.text import Text

import ajuste
from ajuste.cli.edge import MOST_LINES, exit_code, made_visible
from ajuste.model.error import Place, RequestError
from ajuste.model.wording import visible_json
from ajuste.report.console import Activity, Console

HOSTILE = "\x1b[2J\x1b]0;title\x07 [red]a[/red][/x] :smile: \u202egnp\u2066 \x9b31m\r\u3164\U000e0041\udc80"


def hidden(text: str) -> list[str]:
    return [c for c in text if c != "\n" and unicodedata.category(c) in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}]


def table(text: str) -> Table:
    made = Table(text, title=text, caption=text)
    made.add_row(text)
    made.add_row(Text(text))
    return made


@pytest.mark.parametrize("thing", [str, Text, table], ids=["text", "Text", "table"])
def test_nothing_hidden_and_no_markup_is_left_on_a_console(thing: Callable[[str], object]) -> None:
    file = io.StringIO()
    Console(file=file, width=300, force_terminal=True, color_system=None).print(thing(HOSTILE))
    printed = re.sub(r"\x1b\[\d*m", "", file.getvalue())  # styles of the table itself
    assert not hidden(printed)
    assert "[red]a[/red][/x] :smile:" in printed
    assert "\\u202e" in printed


def test_what_happens_now_is_text_too() -> None:
    file = io.StringIO()
    with Activity(log=True, console=Console(file=file, width=300)) as activity:
        activity.say(HOSTILE)
        activity.warn(HOSTILE)
    assert not hidden(file.getvalue())
    assert file.getvalue().count("\\x1b[2J") == 2


@given(st.text())
def test_a_document_stays_the_same_document(text: str) -> None:
    document = json.dumps({"a": text.encode("utf-8", "replace").decode()}, ensure_ascii=False)
    assert not hidden(visible_json(document).replace("\u200c", "").replace("\u200d", ""))
    assert json.loads(visible_json(document)) == json.loads(document)


def test_what_is_written_without_a_console_hides_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with made_visible():
        print(HOSTILE)
        print(HOSTILE, file=sys.stderr)
    captured = capsys.readouterr()
    assert not hidden(captured.out + captured.err)
    assert "\\u001b[2J" in captured.out


def refuse() -> None:
    many = "\n".join(f"{number}: {HOSTILE}{'9' * 1000}" for number in range(5000))
    raise RequestError(many, hint=many, place=Place(f"{HOSTILE}\n", 1, "a." * 50_000))


def fail() -> None:
    raise ValueError(HOSTILE + "9" * 1_000_000)


@pytest.mark.parametrize(("work", "code"), [(refuse, 2), (fail, 1)])
def test_an_error_is_short_and_hides_nothing(
    capsys: pytest.CaptureFixture[str], work: Callable[[], None], code: int
) -> None:
    assert exit_code(work) == code
    errors = capsys.readouterr().err
    assert not hidden(errors)
    assert len(errors) < 100_000
    assert len(errors.splitlines()) <= 3 * MOST_LINES


def test_there_is_no_other_console() -> None:
    """Consoles made with rich alone would show what others wrote as it is."""
    for path in Path(ajuste.__path__[0]).rglob("*.py"):
        text = path.read_text()
        if re.search(r"\bConsole\(", text) and path.name != "console.py":
            assert re.search(r"^ *from ajuste.report.console import .*\bConsole\b", text, re.MULTILINE), path
        assert "from_markup" not in text
        assert ".status(" not in text or path.name == "console.py", path
