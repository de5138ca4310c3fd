"""A cache of a benchmark's own, in which nothing was built, booted or compiled before."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ajuste.machine.home import Home, home

FETCHED = ("lists", "kernels", "qemu", "sources")
"""Parts that are shared with the ordinary cache: they would only be downloaded again."""


def share_fetched(cache: Path) -> None:
    """Share what the ordinary cache has fetched with this one."""
    for part in FETCHED:
        (home().cache / part).mkdir(parents=True, exist_ok=True)
        cache.mkdir(parents=True, exist_ok=True)
        if not (cache / part).exists():
            (cache / part).symlink_to(home().cache / part)


@contextmanager
def own_home() -> Iterator[Home]:
    """Beside the ordinary cache, so that the files of sources can be shared."""
    ordinary = home()
    ordinary.cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="benchmark-", dir=ordinary.cache) as name:
        share_fetched(Path(name) / "cache")
        yield home({"AJUSTE_HOME": name})
