"""Messages and help texts, read from the source: plain words, and a way on for each wrong request."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import pytest

import ajuste
from looped import each

PACKAGE: Final = Path(ajuste.__file__).parent
ROOT: Final = PACKAGE.parents[1]
PACKAGES: Final = (PACKAGE, *sorted(ROOT.glob("packages/*/src/*")))
FAMILY: Final = "AjusteError"
WRONG_REQUEST: Final = "RequestError"

BANNED: Final = (
    r"\bwhoever\b",
    r"\bone's own\b",
    r"\bis sought\b",
    r"\b(?:is|are) of (?:a|one|several)\b",
    r"\btold from\b",
    r"\bcan(?:not)? be told\b",
    r"\bwhat is left\b",
    r"\bas long as it asks\b",
    r"\bbetter by itself\b",
    r"\bone of both\b",
    r"\bcan be had\b",
    r"\bgoes on (?:later|where)\b",
    r"\b(?:is|are) otherwise\b",
    r"\belsewhere than\b",
    r"(?<!there )\bis no (?!longer)",
    r"\bis none of\b",
    r"\bwas asked for\b",
    r"\b(?:is|are) there (?:already|twice)\b",
    r"\bthat (?:is|are) there\b",
    r"\banew\b",
    r"\bis to be\b",
    r"\bis meant\b",
    r"\bif not given\b",
    r"\bis mended\b|\bmend what\b",
)
"""Phrases to avoid. Say *not found*, *mutually exclusive*, *default*, *resume* … instead."""

SAYS_WHAT_IS_VALID: Final = re.compile(
    r"\b(?:expected|at (?:most|least)|up to|between|requires?|required|supported|supports|mutually exclusive|conflicts"
    r"|only)\b|; (?:use|remove|change) "
)
SAYS_WHAT_TO_DO: Final = re.compile(
    r"(?:add|apply|ask|avoid|begin|build|change|check|choose|close|compare|convert|copy|define|exchange|fetch|finish|fix"
    r"|free|give|install|list|look at|make|measure|mount|name|omit|propose|put|reload|remove|rename|restore|restrict"
    r"|run|save|see|send|set|share|split|start|tick|try|unset|update|use"
    r"|vary|wait|write|bisect|did you mean|expected)\b"
    r"|nearest: |ajuste |{}"
)
"""Beginning of a hint: an imperative, a command, or names that are close. ``{}`` is filled in at run time."""


class Site(NamedTuple):
    where: str
    text: str


class Raised(NamedTuple):
    where: str
    kind: str
    message: str
    hints: bool


@cache
def modules() -> tuple[tuple[str, tuple[ast.AST, ...]], ...]:
    """Return the name and all nodes of each module."""
    files = [file for package in PACKAGES for file in sorted(package.rglob("*.py"))]
    trees = (ast.parse(file.read_text(encoding="utf-8")) for file in files)
    return tuple((str(file.relative_to(ROOT)), tuple(ast.walk(tree))) for file, tree in zip(files, trees, strict=True))


def _family() -> frozenset[str]:
    """The names of the error family: its first class, and all that derive from it."""
    classes = [node for _, nodes in modules() for node in nodes if isinstance(node, ast.ClassDef)]
    family = {FAMILY}
    while True:
        more = {
            definition.name for definition in classes if any(_called(base) in family for base in definition.bases)
        } - family
        if not more:
            return frozenset(family)
        family |= more


def _called(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _text(node: ast.expr) -> str:
    """The words of an expression as they are in the source, with {} for what is filled in."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    if isinstance(node, ast.Call) and _called(node.func) == "did_you_mean":
        return "did you mean {}?"
    if isinstance(node, ast.Call) and _called(node.func) == "install_hint":
        return "install {}"
    return " ".join(filter(None, (_text(part) for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr))))


def _raised() -> Iterator[Raised]:
    family = _family() | {"Problem"}
    for where, nodes in modules():
        for call in (node for node in nodes if isinstance(node, ast.Call)):
            name = _called(call.func)
            if name not in family:
                continue
            hints = [word.value for word in call.keywords if word.arg == "hint"]
            message = call.args[:1]
            if name == "Problem":
                message, hints = call.args[1:2], [*hints, *call.args[2:3]]
            kind = WRONG_REQUEST if name == "Problem" else name
            text = " ".join(map(_text, message))
            present = [hint for hint in hints if not (isinstance(hint, ast.Constant) and hint.value is None)]
            # Problems of a study are raised together, with a hint for all where one has none of its own.
            yield Raised(f"{where}:{call.lineno}", kind, text, bool(present) or name == "Problem")
            yield from (Raised(f"{where}:{call.lineno}", "hint", _text(hint), hints=True) for hint in present)


@cache
def raised() -> tuple[Raised, ...]:
    return tuple(_raised())


def _helps() -> Iterator[Site]:
    """Help of options and arguments, descriptions of fields, docstrings of commands."""
    for where, nodes in modules():
        for node in nodes:
            if isinstance(node, ast.Call):
                words = [word.value for word in node.keywords if word.arg in ("help", "description")]
                words += node.args[:1] if _called(node.func) == "option" else []
                yield from (Site(f"{where}:{node.lineno}", _text(word)) for word in words if _text(word))
            if ("/cli/" in where or "/commands" in where) and isinstance(node, ast.FunctionDef) and node.decorator_list:
                yield Site(f"{where}:{node.lineno}", ast.get_docstring(node) or "")


@cache
def helps() -> tuple[Site, ...]:
    return tuple(_helps())


def test_the_sites_are_found() -> None:
    assert len([error for error in raised() if error.kind == WRONG_REQUEST]) > 200
    assert len(helps()) > 150
    assert {"RequestError", "RunError", "ParseError"} <= _family()


@each(BANNED)
def test_no_message_and_no_help_has_a_banned_phrase(phrase: str) -> None:
    texts = [*helps(), *(Site(error.where, error.message) for error in raised())]
    matches = [site for site in texts if re.search(phrase, site.text, re.IGNORECASE)]
    assert not matches


def test_every_wrong_request_says_what_is_valid() -> None:
    silent = [
        (error.where, error.message)
        for error in raised()
        if error.kind == WRONG_REQUEST
        and error.message.strip("{} :")
        and not error.hints
        and not SAYS_WHAT_IS_VALID.search(error.message)
    ]
    assert not silent


def test_every_hint_says_what_to_do() -> None:
    hints = [hint for hint in raised() if hint.kind == "hint" and hint.message.strip("{} :\n")]
    assert len(hints) > 200
    assert not [(hint.where, hint.message) for hint in hints if not SAYS_WHAT_TO_DO.match(hint.message.lstrip())]


@pytest.mark.parametrize(
    ("bad", "banned"),
    [
        ("--vm is of a guest; this machine is as it is", True),
        ("one of both can be had", True),
        ("'x' is no number", True),
        ("there is no guest", False),
        ("these options are mutually exclusive", False),
    ],
)
def test_the_list_tells_plain_words_from_others(bad: str, *, banned: bool) -> None:
    assert any(re.search(phrase, bad) for phrase in BANNED) == banned
