"""Configurations of a small Kconfig tree, and what differs between them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ajuste_guest.kernel.config import ConfigFile, parse_config
from ajuste_kernels.difference import KernelDifference, KnownOptions, Side, changes, differing
from ajuste_kernels.kconfig import KconfigAnswer, KconfigQuestion, as_values
from ajuste_kernels.kconfig_reader import KconfigTree, answer
from small_kconfig import write_source

Compare = Callable[[str, str], KernelDifference]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_source(tmp_path / "linux")


@pytest.fixture
def compared(source: Path, monkeypatch: pytest.MonkeyPatch) -> Compare:
    """Compare two configurations, each completed by the rules of the tree."""
    monkeypatch.setenv("srctree", str(source))
    monkeypatch.setenv("KERNELVERSION", "6.1.9-rc1")
    tree = KconfigTree()

    def complete(text: str) -> ConfigFile:
        return parse_config(completed(tree, text))

    def answered(names: tuple[str, ...], config: ConfigFile, other: ConfigFile) -> KconfigAnswer:
        wanted: dict[str, str | None] = {name: other[name].text or "n" for name in names}
        return answer(tree, KconfigQuestion(config=as_values(config), explain=wanted, defaults=names))

    def compare(a: str, b: str) -> KernelDifference:
        first, second = complete(a), complete(b)
        names = differing(first, second)
        known_a, known_b = (
            KnownOptions(first, answered(names, first, second)),
            KnownOptions(second, answered(names, second, first)),
        )
        return KernelDifference(a=Side(name="a"), b=Side(name="b"), changes=changes(known_a, known_b, same_source=True))

    return compare


def completed(tree: KconfigTree, text: str) -> str:
    """The .config that a fragment comes to."""
    config = as_values(parse_config(text)) if text else {}
    values = answer(tree, KconfigQuestion(config=config, values=True)).values
    return "".join(
        f"# CONFIG_{name} is not set\n" if value == "n" else f"CONFIG_{name}={value}\n"
        for name, value in values.items()
    )
