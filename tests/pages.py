"""Documents: their blocks, the files that these stand for, and the commands that they show, and what these mean."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any

import typer.main

from ajuste.cli.main import whole_application


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    line: int
    file: str | None = None


def blocks(document: Path) -> list[Block]:
    matches = []
    text = document.read_text()
    for match in re.finditer(r"^```(\w*)(?: ([\w.-]+))?\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        matches.append(Block(match[1], match[3], text.count("\n", 0, match.start()) + 2, match[2]))
    return matches


def file_name(block: Block) -> str | None:
    if block.file:
        return block.file
    match = re.match(r"# ([\w.-]+\.toml)$", block.text.splitlines()[0]) if block.language == "toml" else None
    return match[1] if match else None


def commands(block: Block) -> list[str]:
    if block.language != "console":
        return []
    return [line[2:] for line in block.text.splitlines() if line.startswith("$ ")]


def words_of(command: str) -> list[str]:
    """The words of a command to where the shell takes over."""
    words = shlex.shlex(command, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    words.commenters = ""
    return list(takewhile(lambda word: not set(word) <= set("();<>|&"), words))


@cache
def _whole_command() -> Any:
    return typer.main.get_command(whole_application())


def parse(words: Sequence[str]) -> None:
    """Raise what is wrong with the words of a command, which is not carried out."""
    command = _whole_command()
    while words and words[0] in getattr(command, "commands", {}):
        command, words = command.commands[words[0]], words[1:]
    command.make_context("ajuste", list(words))
