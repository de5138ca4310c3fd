"""The two programs as they are built."""

from __future__ import annotations

import pytest

from ajuste.native import AGENT, WORKLOADS, native_program


@pytest.fixture(scope="session")
def agent() -> str:
    return str(native_program(AGENT))


@pytest.fixture(scope="session")
def workloads() -> str:
    return str(native_program(WORKLOADS))
