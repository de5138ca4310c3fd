"""Pages that messages refer to can be shown by every installation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from setup.wheel import MANUAL

from ajuste.cli.help import manual_pages, page_text, show_page
from ajuste.model.error import RequestError

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "ajuste"


def _messages() -> Iterator[tuple[Path, str]]:
    """Yield every text of the program but docstrings, and every text of the catalogue."""
    for file in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in statements:
                yield file, node.value
    for pattern in ("*.toml", "*.j2", "*.js"):
        for file in sorted(SOURCE.rglob(pattern)):
            yield from ((file, line) for line in file.read_text(encoding="utf-8").splitlines() if line[:1] != "#")


@pytest.fixture(scope="module")
def messages() -> list[tuple[Path, str]]:
    return list(_messages())


def test_no_message_names_a_file_of_the_source_tree(messages: list[tuple[Path, str]]) -> None:
    named = re.compile(r"\b(docs|writing|tests|setup|benchmarks)/[\w-]+(/[\w.-]+)*\.\w+")
    assert [(str(file), text) for file, text in messages if named.search(text)] == []


def test_every_topic_that_a_message_names_exists(messages: list[tuple[Path, str]]) -> None:
    topics = [topic for _, text in messages for topic in re.findall(r"`ajuste help ([a-z-]+)`", text)]
    assert len(topics) > 5
    assert set(topics) <= set(manual_pages())


def test_the_wheel_has_every_page() -> None:
    docs = ROOT / "docs"
    for file in manual_pages().values():
        assert file.relative_to(docs).parts[0] in MANUAL


def test_a_page_names_commands_in_place_of_files() -> None:
    pages = manual_pages()
    for file in pages.values():
        text = page_text(file, pages)
        assert not re.search(r"\]\((?!https?:)[^)]*\.md", text)
    assert "`ajuste help" in page_text(pages["gate"], pages)


def test_a_topic_is_a_page_or_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    show_page(["gate"])
    assert capsys.readouterr().out.startswith("# ")
    show_page(["kernel", "build"])
    assert capsys.readouterr().out.startswith("Usage: ajuste kernel build")
    show_page(None)
    assert "several-machines" in capsys.readouterr().out
    with pytest.raises(RequestError) as raised:
        show_page(["study-filse"])
    assert "study-files" in str(raised.value.hint)
