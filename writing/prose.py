"""The words: phrases that Ajuste does not use, wherever a person reads them (vocabulary.toml has the list).

Files of `not-yet-clean.txt` may still have some. That list only shrinks: a file that is clean has to leave it.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from writing.generated import GENERATED

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parent
VOCABULARY: Final = HERE / "vocabulary.toml"
NOT_YET_CLEAN: Final = HERE / "not-yet-clean.txt"
PAGES: Final = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")


@dataclass(frozen=True)
class Found:
    """A phrase that is not to be used."""

    line: int
    phrase: str
    instead: str


def files() -> list[Path]:
    """Everything that people read: written documents, strings of the program, its templates and its catalogue."""
    paths = [ROOT / name for name in PAGES if (ROOT / name).exists()] + sorted(ROOT.glob("packages/*/README.md"))
    paths += sorted(path for path in (ROOT / "docs").rglob("*.md") if path.name not in GENERATED)
    for pattern in ("*.py", "*.toml", "*.html"):
        paths += sorted(path for source in sources(ROOT) for path in source.rglob(pattern))
    return paths


def sources(root: Path) -> list[Path]:
    """The directories of the program: the core's, then those of the other packages."""
    return [root / "src", *sorted(root.glob("packages/*/src"))]


def phrases_in(path: Path) -> list[Found]:
    """The banned phrases of a file, in its order."""
    return [phrase for line, text in texts(path) for phrase in phrases_of(text, line)]


def phrases_of(text: str, first_line: int = 1) -> list[Found]:
    """The banned phrases of a text that begins on ``first_line``."""
    phrases = [
        Found(first_line + text.count("\n", 0, match.start()), phrase, instead)
        for phrase, (pattern, instead) in vocabulary().items()
        for match in pattern.finditer(text)
    ]
    return sorted(phrases, key=lambda phrase: phrase.line)


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield what people read of a file, with the line on which each part begins."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.lineno, node.value
    elif path.name == "CHANGELOG.md":
        yield 1, newest_section(text)
    else:
        yield 1, text


def newest_section(changelog: str) -> str:
    """Return what precedes the second heading of a version."""
    heads = [match.start() for match in re.finditer(r"^## ", changelog, re.MULTILINE)]
    return changelog[: heads[1]] if len(heads) > 1 else changelog


@cache
def vocabulary() -> dict[str, tuple[re.Pattern[str], str]]:
    """Return each phrase with the pattern that finds it and what to write instead."""
    replacements = tomllib.loads(VOCABULARY.read_text(encoding="utf-8"))["instead"]
    return {phrase: (_pattern(phrase), instead) for phrase, instead in replacements.items()}


def not_yet_clean() -> set[str]:
    """The files that may still have such phrases, relative to the repository."""
    return set(NOT_YET_CLEAN.read_text(encoding="utf-8").split())


def shrink() -> None:
    """Take the files that are clean or gone out of the list."""
    remaining = [name for name in sorted(not_yet_clean()) if (ROOT / name).exists() and phrases_in(ROOT / name)]
    NOT_YET_CLEAN.write_text("".join(f"{name}\n" for name in remaining), encoding="utf-8")


def _pattern(phrase: str) -> re.Pattern[str]:
    words = (re.escape(word).replace("'", "['’]") for word in phrase.split())
    return re.compile(r"\b" + r"\s+".join(words) + r"\b", re.IGNORECASE)
