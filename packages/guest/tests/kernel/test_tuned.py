"""tuned's package, for its profiles."""

from __future__ import annotations

from pathlib import Path

import pytest

from ajuste.machine.home import home
from ajuste.model.error import RequestError
from ajuste_guest.tuned import fetch_tuned


@pytest.mark.network
def test_it_is_fetched_once_and_unpacked_into_the_cache(tmp_path: Path) -> None:
    place = home({"AJUSTE_HOME": str(tmp_path)})
    place.cache.mkdir(parents=True)
    (place.cache / "lists").symlink_to(home().cache / "lists")
    messages: list[str] = []
    tree = fetch_tuned("bullseye", place, messages.append)
    assert tree.package.startswith("tuned 2.15")
    assert (tree.root / "usr/lib/tuned/throughput-performance/tuned.conf").is_file()
    assert any("downloading" in text for text in messages)
    messages.clear()
    assert fetch_tuned("bullseye", place, messages.append) == tree
    assert messages == []


@pytest.mark.network
def test_a_suite_that_has_none_is_told(tmp_path: Path) -> None:
    place = home({"AJUSTE_HOME": str(tmp_path)})
    place.cache.mkdir(parents=True)
    (place.cache / "lists").symlink_to(home().cache / "lists")
    with pytest.raises(RequestError, match="tuned not found in nowhere") as raised:
        fetch_tuned("nowhere", place, print)
    assert "apt install tuned" in (raised.value.hint or "")
