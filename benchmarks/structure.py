"""How the code is built: modules, lines, circles, names, words of the documents; beside those of an earlier commit.

``python -m benchmarks structure`` compares the work tree with the commit BEFORE. Where this clone does not have that
commit, its recorded figures are shown.
"""

from __future__ import annotations

import ast
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from writing.generated import GENERATED

from benchmarks.comparison import Comparison

BEFORE: Final = "297a5d4"
PACKAGE: Final = "ajuste"
SHORT_LINES: Final = 60
LONG_LINES: Final = 400
PLUG_INS: Final = (
    "/features/",
    "/formats/",
    "/sources/",
    "/samplers/",
    "/outputs/",
    "/foreign/",
    "/parse/",
    "/plots/",
    "/cli/",
)
"""Folders in which each file registers one more of a kind, which may be short."""

DOCUMENTED: Final = {"_exit"}
"""Names with an underscore that are public all the same (os._exit)."""

GOALS: Final = {
    "modules": 320,
    "lines": 49_500,
    "circles": 0,
    "recurring class names": 0,
    "short modules": 0,
    "private names of libraries": 0,
    "long files": 0,
    "Rust circles": 0,
    "words of docs": 21_854,
}
"""The words: two thirds of those of BEFORE."""

RECORDED: Final = {
    "modules": 520,
    "lines": 53_062,
    "circles": 2,
    "recurring class names": 44,
    "short modules": 123,
    "private names of libraries": 2,
    "long files": 0,
    "Rust circles": 2,
    "words of docs": 32_781,
}
"""Of BEFORE, as this very program printed them."""

RUST_TEXT: Final = re.compile(r"""//[^\n]*|r(#*)".*?"\1|"(?:\\.|[^"\\])*"|'(?:\\[^']+|[^'\\])'""", re.DOTALL)
"""Comments and literals of Rust, which may look like code."""


def measure() -> tuple[Comparison, ...]:
    """One table a figure: now, and before."""
    before = figures_of(BEFORE)
    now = figures_in(Path(__file__).resolve().parent.parent)
    return tuple(
        Comparison(
            name=f"structure-{name.replace(' ', '-').lower()}",
            what=name,
            unit="",
            figures={"now": [float(now[name])], f"at {BEFORE}": [float(before[name])]},
            goal=f"at most {goal}",
            reached=now[name] <= goal,
        )
        for name, goal in GOALS.items()
    )


def figures_of(revision: str) -> dict[str, int]:
    """Those of a commit; the recorded ones where this clone does not have it."""
    found = subprocess.run(["git", "archive", revision, "src", "native", "docs"], capture_output=True, check=False)
    if found.returncode != 0:
        return dict(RECORDED)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["tar", "-x", "-C", folder], input=found.stdout, check=True)
        return figures_in(Path(folder))


def figures_in(root: Path) -> dict[str, int]:
    """All figures of the tree at ``root``, by the names of GOALS."""
    source = root / "src"
    modules = {_dotted(path.relative_to(source)): path for path in sorted(source.rglob("*.py"))}
    trees = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in modules.items()}
    own = [path for path in modules.values() if path.name != "__init__.py"]
    rust = sorted((root / "native").rglob("*.rs"))
    return {
        "modules": len(own),
        "lines": sum(map(_lines, modules.values())),
        "circles": len(circles(_room_imports(trees))),
        "recurring class names": sum(count > 1 for count in public_classes(trees).values()),
        "short modules": sum(_lines(path) < SHORT_LINES and not _is_plug_in(path) for path in own),
        "private names of libraries": sum(len(list(private_names(tree))) for tree in trees.values()),
        "long files": sum(_lines(path) > LONG_LINES for path in (*modules.values(), *rust)),
        "Rust circles": len(circles(_rust_imports(rust))),
        "words of docs": sum(map(words, written_pages(root / "docs"))),
    }


def written_pages(docs: Path) -> list[Path]:
    """The pages that people write: not the gallery's, and none that a program writes."""
    pages = sorted(docs.rglob("*.md"))
    return [page for page in pages if "gallery" not in page.relative_to(docs).parts and page.name not in GENERATED]


def words(page: Path) -> int:
    """How many of a page's words have a letter or a digit: no lines of tables, no dashes."""
    return len(re.findall(r"\S*\w\S*", page.read_text(encoding="utf-8")))


def circles(imports: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Groups of rooms or modules that import each other, directly or through others."""
    arrows = sorted({(one, other) for one, other in imports if one != other})
    names = sorted({name for arrow in arrows for name in arrow})
    if not arrows:
        return []
    places = {name: place for place, name in enumerate(names)}
    rows, columns = zip(*((places[one], places[other]) for one, other in arrows), strict=True)
    graph = coo_array(([1] * len(arrows), (rows, columns)), shape=(len(names), len(names)))
    count, groups = connected_components(graph, directed=True, connection="strong")
    found = [[name for name, group in zip(names, groups, strict=True) if group == number] for number in range(count)]
    return sorted(group for group in found if len(group) > 1)


def public_classes(trees: dict[str, ast.Module]) -> Counter[str]:
    """How often each name of a public class is defined."""
    return Counter(
        node.name
        for tree in trees.values()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )


def private_names(tree: ast.Module) -> Iterator[str]:
    """Names with a leading underscore that are taken from other libraries."""
    aliases: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            aliases |= {(one.asname or one.name).split(".")[0] for one in node.names if not _is_ours(one.name)}
        elif isinstance(node, ast.ImportFrom) and node.module and not _is_ours(node.module):
            if node.module != "__future__":
                yield from (one.name for one in node.names if _is_private(one.name))
            aliases |= {one.asname or one.name for one in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _is_private(node.attr):
            value = node.value
            while isinstance(value, ast.Attribute):
                value = value.value
            if isinstance(value, ast.Name) and value.id in aliases:
                yield node.attr


def _dotted(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _lines(path: Path) -> int:
    return path.read_text(encoding="utf-8").count("\n")


def _is_ours(module: str) -> bool:
    return module.split(".", maxsplit=1)[0] == PACKAGE


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in DOCUMENTED


def _is_plug_in(path: Path) -> bool:
    return any(folder in path.as_posix() for folder in PLUG_INS)


def _room(module: str) -> str:
    """The room of a module: its package below ours, or itself where it lies loose."""
    return ".".join(module.split(".")[:2])


def _room_imports(trees: dict[str, ast.Module]) -> Iterator[tuple[str, str]]:
    for name, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                yield from ((_room(name), _room(one.name)) for one in node.names if _is_ours(one.name))
            elif isinstance(node, ast.ImportFrom) and node.module and _is_ours(node.module):
                yield _room(name), _room(node.module) if "." in node.module else f"{PACKAGE}.{node.names[0].name}"


def _rust_imports(files: Iterable[Path]) -> Iterator[tuple[str, str]]:
    """What each module of a crate names of the same crate, outside of tests."""
    modules = {_rust_module(path): path for path in files}
    for name, path in modules.items():
        for used in _rust_paths(_rust_code(path.read_text(encoding="utf-8")), name.split("::")):
            if (owner := _rust_owner(used, modules)) is not None:
                yield name, owner


def _rust_owner(path: list[str], modules: Iterable[str]) -> str | None:
    """The file that ``path`` leads to, or else the root of the crate."""
    beginnings = ("::".join(path[:length]) for length in range(len(path), 0, -1))
    return next((module for module in (*beginnings, f"{path[0]}::main") if module in modules), None)


def _rust_paths(code: str, module: list[str]) -> Iterator[list[str]]:
    """The paths in ``module`` to its crate: in `use`, with `super::`, inline."""
    while inner := re.search(r"\bmod (\w+) *\{", code):
        end = _rust_end(code, inner.end() - 1)
        yield from _rust_paths(code[inner.end() : end], [*module, inner[1]])
        code = code[: inner.start()] + code[end:]
    folder = module[:1] if module[1:] == ["main"] else module
    children = set(re.findall(r"\bmod (\w+);", code))
    trees = [tree for use in re.findall(r"\buse ([^;]+);", code) for tree in _rust_leaves(use)]
    for path in (*trees, *re.findall(r"(?<![\w:])\w+(?:::\w+)+", code)):
        first, *rest = path.split("::")
        if first == "crate":
            yield [module[0], *rest]
        elif first == "super":
            ups = 1 + rest.count("super")
            yield [*module[:-ups], *rest[ups - 1 :]]
        elif first == "self":
            yield [*folder, *rest]
        elif first in children:
            yield [*folder, first, *rest]


def _rust_leaves(use: str) -> Iterator[str]:
    """`a::b` and `a::c::d` of `a::{b, c::{d}}`."""
    before, opened, inside = "".join(re.sub(r"\bas\s+\w+", "", use).split()).partition("{")
    if not opened:
        yield before
        return
    depth, part = 0, ""
    for sign in inside:
        depth += (sign == "{") - (sign == "}")
        if depth < 0 or (sign == "," and not depth):
            yield from (before + leaf for leaf in _rust_leaves(part) if part)
            part = ""
        else:
            part += sign


def _rust_code(text: str) -> str:
    """``text`` without comments, literals and tests."""
    code = RUST_TEXT.sub("", text)
    while found := re.search(r"#\[cfg\(test\)\]", code):
        code = code[: found.start()] + code[_rust_end(code, found.end()) :]
    return code


def _rust_end(code: str, start: int) -> int:
    """The end of the item at ``start``: behind its last brace, or its semicolon."""
    depth = 0
    for place in range(start, len(code)):
        depth += (code[place] in "{[(") - (code[place] in ")]}")
        if depth == 0 and code[place] in "};":
            return place + 1
    return len(code)


def _rust_module(path: Path) -> str:
    """`agent::disk::fault` for `agent/src/disk/fault.rs`; `agent` for `lib.rs`."""
    crate, _, inside = path.as_posix().partition("/src/")
    module = inside.removesuffix(".rs").removesuffix("/mod").replace("/", "::")
    return Path(crate).name if module == "lib" else f"{Path(crate).name}::{module}"
