"""Relative links of tracked Markdown files lead to a file that is there, and to a heading that it has."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from looped import each

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    ROOT / name
    for name in subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    if (ROOT / name).exists()
]
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]*))?\)")


def broken_links(document: Path) -> list[str]:
    """Return the problems of a document's links."""
    wrong = []
    for name, anchor in LINK.findall(CODE.sub("", document.read_text(encoding="utf-8"))):
        target = document.parent / name if name else document
        if not target.exists():
            wrong.append(f"{name}: no such file")
        elif anchor and anchor not in anchors(target):
            wrong.append(f"{name}#{anchor}: no such heading")
    return wrong


def anchors(document: Path) -> set[str]:
    """The anchors of a document's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```$", "", document.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@each(DOCUMENTS)
def test_every_link_leads_somewhere(document: Path) -> None:
    assert broken_links(document) == []


def test_a_wrong_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One, two\n\n[a](other.md) [b](#three) [c](#one-two) `[d](code.md)` [e](https://example.org)\n")
    assert broken_links(page) == ["other.md: no such file", "#three: no such heading"]


def test_code_names_only_pages_that_are_there() -> None:
    mentioned = subprocess.run(
        [
            "git",
            "grep",
            "-hoE",
            r"docs/[A-Za-z0-9_./-]+\.(md|patch)",
            "--",
            "src",
            "packages",
            "native",
            "tests",
            "benchmarks",
            "setup",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    theirs = {"docs/user_guide.md", "docs/page.md", "docs/gallery/page.md"}  # of other projects, and of a small tree
    assert {name for name in mentioned if not (ROOT / name).exists()} <= theirs
