"""The functions that conditions of the catalogue count, in real kernels."""

from __future__ import annotations

import pytest
from tests.catalogue.test_conditions import CONDITIONS

from ajuste.machine.home import home
from ajuste_guest.kernel.fetch import fetch_kernel
from ajuste_guest.kernel.symbols import kernel_symbols
from tiers import slow


@pytest.mark.vm
@pytest.mark.parametrize("kernel", ["debian:6.1", *slow("debian:6.12")])
def test_kernels_have_the_functions_that_lead_to_the_code(kernel: str) -> None:
    image = fetch_kernel(kernel, home())
    names = {symbol.name for symbol in kernel_symbols(image, home())}
    assert not {name for condition in CONDITIONS for name in condition.functions} - names
