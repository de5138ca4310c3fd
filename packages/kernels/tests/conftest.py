"""Fixtures that the tests of this package share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.debian_archive import make_bzimage

from ajuste.machine.home import Home


@pytest.fixture
def bzimage() -> Callable[[str], bytes]:
    """Makes an image that calls itself what it is told."""
    return make_bzimage


@pytest.fixture
def place(tmp_path: Path) -> Home:
    """A home of its own."""
    base = tmp_path / "home"
    return Home(base / "data", base / "cache", base / "state")


@pytest.fixture
def messages() -> list[str]:
    return []


@pytest.fixture
def say(messages: list[str]) -> Callable[[str], None]:
    return messages.append
