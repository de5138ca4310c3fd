"""The symbols that a built kernel carries are those of its System.map."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ajuste.machine.home import home
from ajuste_guest.kernel.symbols import KernelSymbol, read_symbols, read_system_map, read_vmlinux
from ajuste_kernels.building.built import built_kernels


def as_tuples(symbols: Sequence[KernelSymbol]) -> list[tuple[int, str, bool]]:
    return [(symbol.address, symbol.name, symbol.is_text) for symbol in symbols]


def test_kernels_that_were_built_have_the_symbols_of_their_system_map() -> None:
    built = [kernel for kernel in built_kernels(home()) if (kernel.directory / "System.map").is_file()]
    if not built:
        pytest.skip("no built kernel is cached on this machine")
    for kernel in built[:2]:
        listed = set(as_tuples(read_system_map((kernel.directory / "System.map").read_text())))
        parsed = as_tuples(read_symbols(read_vmlinux(kernel.image.vmlinuz), kernel.image.spec))
        assert len(parsed) > 10_000
        assert set(parsed) <= listed
