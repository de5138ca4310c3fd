"""Documents: their blocks, the files that these stand for, and the commands that they show."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    line: int
    file: str | None = None


def blocks(document: Path) -> list[Block]:
    found = []
    text = document.read_text()
    for match in re.finditer(r"^```(\w*)(?: ([\w.-]+))?\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        found.append(Block(match[1], match[3], text.count("\n", 0, match.start()) + 2, match[2]))
    return found


def file_name(block: Block) -> str | None:
    if block.file:
        return block.file
    match = re.match(r"# ([\w.-]+\.toml)$", block.text.splitlines()[0]) if block.language == "toml" else None
    return match[1] if match else None


def commands(block: Block) -> list[str]:
    if block.language != "console":
        return []
    return [line[2:] for line in block.text.splitlines() if line.startswith("$ ")]
