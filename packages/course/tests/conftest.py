"""A class that measures the light sheet in a home of its own."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from packages.course.tests.cheating import Classroom, Work, classroom

from ajuste.machine.home import Home
from headless import chromium
from own_home import own_home

collect_ignore = [] if find_spec("ajuste_lab") else ["test_pages.py"]
"""The pages of the lab page are there where it is installed."""


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Classroom:
    directory = own_home(tmp_path_factory.mktemp("class") / "home")
    return classroom(Home(directory / "data", directory / "cache", directory / "state"))


@pytest.fixture(scope="module")
def work(room: Classroom) -> Work:
    return room.once("1001")


@pytest.fixture(scope="module")
def honest(room: Classroom, work: Work, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from packages.course.tests.cheating import hand_in

    return hand_in(work, tmp_path_factory.mktemp("hand-ins") / "light-1001.ajuste")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started
