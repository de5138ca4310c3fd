"""Files by their content."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from ajuste.home import Home
from ajuste.model.error import RunError
from ajuste.target.cluster import depot
from ajuste.target.cluster.depot import Depot


@pytest.fixture
def place(tmp_path: Path) -> Depot:
    return Depot(Home(tmp_path / "data", tmp_path / "cache", tmp_path / "state"))


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_what_was_put_is_found(place: Depot) -> None:
    assert place.find(digest(b"kernel")) is None
    place.put(digest(b"kernel"), b"kernel")
    found = place.find(digest(b"kernel"))
    assert found is not None
    assert found.read_bytes() == b"kernel"


def test_what_arrives_damaged_is_refused(place: Depot) -> None:
    with pytest.raises(RunError, match="arrived damaged"):
        place.put(digest(b"kernel"), b"colonel")
    assert place.find(digest(b"kernel")) is None


def test_what_was_damaged_later_is_not_there_any_more(place: Depot) -> None:
    place.put(digest(b"kernel"), b"kernel")
    found = place.find(digest(b"kernel"))
    assert found is not None
    found.write_bytes(b"colonel")
    assert place.find(digest(b"kernel")) is None


@pytest.mark.parametrize("name", ["../../../etc/passwd", "0" * 63, "0" * 64 + "/", ""])
def test_a_name_that_is_no_checksum_is_refused(place: Depot, name: str) -> None:
    with pytest.raises(RunError, match="no SHA-256"):
        place.find(name)


def test_what_was_not_used_for_longest_makes_room(place: Depot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(depot, "LARGEST_BYTES", 10)
    for content in (b"one", b"two", b"three"):
        place.put(digest(content), content)
    assert place.find(digest(b"one")) is None
    assert place.find(digest(b"three")) is not None
