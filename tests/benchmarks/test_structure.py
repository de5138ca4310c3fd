"""The figures of the structure, on small trees whose answers are known."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from benchmarks.structure import BEFORE, GOALS, RECORDED, circles, figures_in, figures_of, private_names


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    files = {
        "src/ajuste/__init__.py": "",
        "src/ajuste/model/__init__.py": "",
        "src/ajuste/model/one.py": "from ajuste.store.two import Two\n\n\nclass One: ...\n",
        "src/ajuste/store/two.py": "import ajuste.model.one\n\n\nclass Two: ...\n\n\nclass One: ...\n",
        "src/ajuste/store/long.py": "x = 1\n" * 401,
        "native/agent/src/event.rs": "use crate::plan::Source;\n",
        "docs/page.md": "# Two words\n\n| a | 1 |\n|---|---|\n",
        "docs/gallery/page.md": "not counted\n",
        "docs/reference/command-line.md": "not counted\n",
        "native/agent/src/plan.rs": "use crate::event::{Event};\n#[cfg(test)]\nuse crate::clock;\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_figures_of_a_small_tree(tree: Path) -> None:
    assert figures_in(tree) == {
        "modules": 3,
        "lines": 4 + 7 + 401,
        "circles": 1,
        "recurring class names": 1,
        "short modules": 2,
        "private names of libraries": 0,
        "long files": 1,
        "Rust circles": 1,
        "words of docs": 4,
    }


@pytest.mark.parametrize(
    ("text", "is_circle"),
    [
        ("use super::plan::{Plan, Read};", True),
        ("use crate::{clock, plan as other};", True),
        ("use crate::{\n    clock::{self, raw_ns},\n    plan::Plan,\n};", True),
        ("fn one() -> crate::plan::Plan { super::plan::make() }", True),
        ("mod at {\n    use super::super::plan::Plan;\n}", True),
        ("mod at {\n    use super::Event;\n}", False),
        ("use crate::planned::Plan;", False),
        ('// use crate::plan::Plan;\nconst A: &str = "crate::plan::Plan"; const B: char = \'"\';', False),
        ("#[cfg(test)]\nfn one(of: [u8; 2]) -> crate::plan::Plan { super::plan::make() }", False),
    ],
)
def test_every_way_to_name_a_rust_module_counts(tree: Path, text: str, is_circle: bool) -> None:
    source = tree / "native/agent/src"
    (source / "event.rs").write_text(text)
    (source / "planned.rs").write_text("")
    assert figures_in(tree)["Rust circles"] == is_circle


def test_rust_folders_and_roots_are_modules(tree: Path) -> None:
    source = tree / "native/agent/src"
    (source / "main.rs").write_text("mod event;\nmod plan;\nfn main() { event::run() }\n")
    (source / "event.rs").write_text("use crate::number;\nmod inner;\n")
    assert figures_in(tree)["Rust circles"] == 1
    (source / "event.rs").write_text("mod inner;\nuse inner::Inner;\n")
    (source / "event").mkdir()
    (source / "event/inner.rs").write_text("use super::Event;\n")
    assert figures_in(tree)["Rust circles"] == 1
    (source / "clock.rs").write_text("")
    (source / "event/inner.rs").write_text("use super::super::clock::now;\n")
    assert figures_in(tree)["Rust circles"] == 0


def test_circles_may_go_through_others() -> None:
    assert circles([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "d")]) == [["a", "b", "c"]]
    assert circles([("a", "b"), ("b", "c")]) == []


def test_private_names_are_those_of_other_libraries() -> None:
    text = "import os, dask.config as c\nfrom x import _y\nfrom ajuste.a import _b\nos._exit(0)\nc.d._e\nself._f\n"
    assert sorted(private_names(ast.parse(text))) == ["_e", "_y"]


def test_recorded_figures_are_those_of_the_commit() -> None:
    assert figures_of(BEFORE) == RECORDED
    assert set(GOALS) == set(RECORDED)


def test_a_commit_that_is_not_there_is_shown_as_recorded() -> None:
    assert figures_of("0" * 40) == RECORDED
