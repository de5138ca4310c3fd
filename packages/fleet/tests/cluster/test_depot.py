"""Files by their content."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path

import pytest

from ajuste.machine import cache
from ajuste.machine.home import Home
from ajuste_fleet.cluster.worker import BlobCache


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "data", tmp_path / "cache", tmp_path / "state")


@pytest.fixture
def place(home: Home) -> BlobCache:
    return BlobCache(home)


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_what_was_put_is_found(place: BlobCache) -> None:
    assert place.find(digest(b"kernel")) is None
    place.put(b"kernel")
    path = place.find(digest(b"kernel"))
    assert path is not None
    assert path.read_bytes() == b"kernel"


def test_what_was_damaged_later_is_not_there_any_more(place: BlobCache) -> None:
    place.put(b"kernel")
    path = place.find(digest(b"kernel"))
    assert path is not None
    path.write_bytes(b"colonel")
    assert place.find(digest(b"kernel")) is None


def test_what_was_not_used_for_longest_makes_room(
    place: BlobCache, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(cache.KINDS, cache.CLUSTER, replace(cache.KINDS[cache.CLUSTER], limit_bytes=2 * 65536))
    contents = [os.urandom(65536) for _ in range(3)]
    for number, content in enumerate(contents):
        place.put(content)
        os.utime(home.cache / "cluster" / digest(content), (number, number))
    assert [place.find(digest(content)) is not None for content in contents] == [False, True, True]


@pytest.mark.parametrize("instead", ["directory", "fifo", "dangling link"])
def test_what_is_no_file_is_not_found_and_can_be_put(place: BlobCache, home: Home, instead: str) -> None:
    place.put(b"kernel")
    file = home.cache / "cluster" / digest(b"kernel")
    file.unlink()
    {
        "directory": lambda: (file / "inside").mkdir(parents=True),
        "fifo": lambda: os.mkfifo(file),
        "dangling link": lambda: file.symlink_to("nowhere"),
    }[instead]()
    assert place.find(digest(b"kernel")) is None
    place.put(b"kernel")
    assert place.find(digest(b"kernel")) == file
