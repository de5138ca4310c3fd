"""A cache of a benchmark's own, in which nothing was built, booted or compiled before."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ajuste.machine.home import Home, home

FETCHED = ("lists", "kernels", "qemu", "sources")
"""What is shared with the ordinary cache: it would only be downloaded again."""


@contextmanager
def own_home() -> Iterator[Home]:
    """Beside the ordinary cache, so that the files of sources can be shared."""
    ordinary = home()
    ordinary.cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="benchmark-", dir=ordinary.cache) as name:
        root = Path(name)
        (root / "cache").mkdir()
        for part in FETCHED:
            (ordinary.cache / part).mkdir(exist_ok=True)
            (root / "cache" / part).symlink_to(ordinary.cache / part)
        yield home({"AJUSTE_HOME": name})
