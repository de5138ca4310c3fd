"""Names are words of the field, and docstrings begin with a verb or a noun."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from writing import names, prose


def test_no_name_is_of_the_list() -> None:
    assert [finding for path in names.checked_files() for finding in names.listed_names(path)] == []


def test_no_docstring_begins_oddly() -> None:
    assert [finding for path in names.checked_files() for finding in names.odd_openings(path)] == []


def test_each_kind_of_name_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        "class found:\n    told: int\n\ndef said(own, *, given=1):\n    match own:\n        case one:\n"
        "            kept = one\n    return [_shown for _shown in given]\n",
        encoding="utf-8",
    )
    seen = {finding.text for finding in names.listed_names(path, tmp_path)}
    assert seen == {"found", "told", "said", "own", "given", "one", "kept", "_shown"}


def test_docstrings_are_seen_and_other_texts_are_not(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        'def f():\n    """What it is."""\n    return "What is it?"\n\nX = 1\n"""Those."""\n', encoding="utf-8"
    )
    assert {finding.line for finding in names.odd_openings(path, tmp_path)} == {2, 6}


def test_what_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "src" / "ajuste" / "module.py"
    path.parent.mkdir(parents=True)
    path.write_text("# Why.\n\ntold = 1  # noqa: X1\nx = '# text'  # also why\n", encoding="utf-8")
    counted = names.figures(tmp_path)
    assert counted == {"modules": 1, "lines": 4, "comments (%)": 66.7, "listed names": 1, "odd docstring openings": 0}


def test_stored_fields_that_keep_their_names_exist() -> None:
    stored = tomllib.loads(prose.VOCABULARY.read_text(encoding="utf-8"))["code"]["stored"]
    places = [place.partition(":") for place in stored]
    assert [
        name for file, _, name in places if not re.search(rf"\b{name}\b", (prose.ROOT / file).read_text("utf-8"))
    ] == []
