"""Files by their content."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path

import pytest

from ajuste.executor.cluster import workplace as depot
from ajuste.executor.cluster.answer import Piece
from ajuste.executor.cluster.workplace import BlobCache
from ajuste.machine import cache
from ajuste.machine.home import Home
from ajuste.model.error import RunError


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "data", tmp_path / "cache", tmp_path / "state")


@pytest.fixture
def place(home: Home) -> BlobCache:
    return BlobCache(home)


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def put(place: BlobCache, name: str, content: bytes) -> None:
    """In two pieces."""
    half = (len(content) + 1) // 2
    for offset in range(0, len(content), half):
        place.put(Piece(name, offset, len(content), content[offset : offset + half]))


def test_what_was_put_is_found(place: BlobCache) -> None:
    assert place.find(digest(b"kernel")) is None
    put(place, digest(b"kernel"), b"kernel")
    found = place.find(digest(b"kernel"))
    assert found is not None
    assert found.read_bytes() == b"kernel"


def test_what_arrives_damaged_is_refused(place: BlobCache) -> None:
    with pytest.raises(RunError, match="arrived damaged"):
        put(place, digest(b"kernel"), b"colonel")
    assert place.find(digest(b"kernel")) is None


def test_what_was_damaged_later_is_not_there_any_more(place: BlobCache) -> None:
    put(place, digest(b"kernel"), b"kernel")
    found = place.find(digest(b"kernel"))
    assert found is not None
    found.write_bytes(b"colonel")
    assert place.find(digest(b"kernel")) is None


@pytest.mark.parametrize("name", ["../../../etc/passwd", "0" * 63, "0" * 64 + "/", ""])
def test_a_name_that_is_no_checksum_is_refused(place: BlobCache, name: str) -> None:
    with pytest.raises(RunError, match="not a SHA-256"):
        place.find(name)


def test_what_was_not_used_for_longest_makes_room(
    place: BlobCache, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(cache.KINDS, cache.CLUSTER, replace(cache.KINDS[cache.CLUSTER], limit_bytes=2 * 65536))
    contents = [os.urandom(65536) for _ in range(3)]
    for number, content in enumerate(contents):
        put(place, digest(content), content)
        os.utime(home.cache / "cluster" / digest(content), (number, number))
    assert [place.find(digest(content)) is not None for content in contents] == [False, True, True]


@pytest.mark.parametrize("instead", ["directory", "fifo", "dangling link"])
def test_what_is_no_file_is_not_found_and_can_be_put(place: BlobCache, home: Home, instead: str) -> None:
    put(place, digest(b"kernel"), b"kernel")
    file = home.cache / "cluster" / digest(b"kernel")
    file.unlink()
    {
        "directory": lambda: (file / "inside").mkdir(parents=True),
        "fifo": lambda: os.mkfifo(file),
        "dangling link": lambda: file.symlink_to("nowhere"),
    }[instead]()
    assert place.find(digest(b"kernel")) is None
    put(place, digest(b"kernel"), b"kernel")
    assert place.find(digest(b"kernel")) == file


def test_a_file_of_which_a_piece_is_missing_is_refused(place: BlobCache) -> None:
    name = digest(b"kernel")
    place.put(Piece(name, 0, 6, b"ker"))
    with pytest.raises(RunError, match="in the wrong order"):
        place.put(Piece(name, 4, 6, b"el"))
    assert place.find(name) is None


@pytest.mark.parametrize(("offset", "size_bytes"), [(0, 3 << 30), (5, 6), (1 << 60, 6)])
def test_a_file_that_is_too_large_or_larger_than_it_says_is_refused(
    place: BlobCache, offset: int, size_bytes: int
) -> None:
    with pytest.raises(RunError, match="bytes was sent to a worker"):
        place.put(Piece(digest(b"kernel"), offset, size_bytes, b"kernel"))


def test_two_workers_with_equal_pids_share_a_directory(home: Home) -> None:
    """In two containers. Both get the same file, by turns."""
    workers, name = (BlobCache(home), BlobCache(home)), digest(b"kernel")
    for offset in (0, 3):
        for worker in workers:
            worker.put(Piece(name, offset, 6, b"kernel"[offset : offset + 3]))
    assert [found.read_bytes() for worker in workers if (found := worker.find(name))] == [b"kernel"] * 2


def test_half_files_do_not_fill_the_disk(place: BlobCache, tmp_path: Path) -> None:
    for number in range(100):
        place.put(Piece(digest(bytes([number])), 0, 6, b"ker"))
    assert len(list((tmp_path / "cache" / "cluster").iterdir())) <= depot.MOST_HALF_SENT
