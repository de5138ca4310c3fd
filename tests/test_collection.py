"""Completeness of the test run: all tests are run."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

import pytest

TESTS = Path(__file__).parent


def test_no_folder_of_tests_is_passed_over(pytestconfig: pytest.Config) -> None:
    """Pytest does not go into folders named ``build``, ``dist`` and the like by itself."""
    patterns = pytestconfig.getini("norecursedirs")
    folders = {folder for file in TESTS.rglob("test_*.py") for folder in file.relative_to(TESTS).parent.parts}
    assert [folder for folder in folders if any(fnmatch(folder, pattern) for pattern in patterns)] == []


def test_no_name_of_a_test_is_large(request: pytest.FixtureRequest) -> None:
    assert [item.nodeid[:100] for item in request.session.items if len(item.nodeid) > 1000] == []
