"""Configurations of a small Kconfig tree, and what differs between them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ajuste.kernel.diff.difference import Difference, Side
from ajuste.kernel.diff.origin import Known, changes, differing
from ajuste.kernel.kconfig.child import Tree, answer
from ajuste.kernel.kconfig.config_file import ConfigFile, parse_config
from ajuste.kernel.kconfig.message import Answer, Asked
from ajuste.kernel.kconfig.tree import as_values
from small_kconfig import write_source

Compare = Callable[[str, str], Difference]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_source(tmp_path / "linux")


@pytest.fixture
def compared(source: Path, monkeypatch: pytest.MonkeyPatch) -> Compare:
    """What differs between two configurations, each completed by the rules of the tree."""
    monkeypatch.setenv("srctree", str(source))
    monkeypatch.setenv("KERNELVERSION", "6.1.9-rc1")
    tree = Tree()

    def complete(text: str) -> ConfigFile:
        return parse_config(completed(tree, text))

    def asked(names: tuple[str, ...], own: ConfigFile, other: ConfigFile) -> Answer:
        wanted: dict[str, str | None] = {name: other[name].text or "n" for name in names}
        return answer(tree, Asked(config=as_values(own), explain=wanted, defaults=names))

    def compare(a: str, b: str) -> Difference:
        first, second = complete(a), complete(b)
        names = differing(first, second)
        known_a, known_b = Known(first, asked(names, first, second)), Known(second, asked(names, second, first))
        return Difference(a=Side(name="a"), b=Side(name="b"), changes=changes(known_a, known_b, one_source=True))

    return compare


def completed(tree: Tree, text: str) -> str:
    """The .config that a fragment comes to."""
    config = as_values(parse_config(text)) if text else {}
    values = answer(tree, Asked(config=config, values=True)).values
    return "".join(
        f"# CONFIG_{name} is not set\n" if value == "n" else f"CONFIG_{name}={value}\n"
        for name, value in values.items()
    )
