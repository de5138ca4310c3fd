"""``cgroup:GROUP#FILE[.KEY]``: a figure of a control group, such as ``cgroup:system.slice#cpu.stat.usage_usec``.

Figures of ``*.stat`` become rates, others (``memory.current``) are averaged.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Final

from ajuste.model.error import RequestError
from ajuste_live.reading import Figures, NothingShownError, Source, field_of, level, rate, read_file

KIND: Final = "cgroup"

ROOT: Final = Path("/sys/fs/cgroup")
_FIGURE: Final = re.compile(r"([a-z]+\.[a-z]+)(?:\.([a-z_]+))?")
# Keys of memory.stat that are levels.
_LEVELS: Final = ("anon", "file", "kernel", "slab", "shmem", "sock", "swapcached", "active_file", "inactive_file")


def open_source(where: str, root: Path = ROOT) -> Source:
    """Open the figure of a group. Raises RequestError for an unknown group or figure."""
    group, hash_, figure = where.partition("#")
    match = _FIGURE.fullmatch(figure)
    if not hash_ or match is None:
        raise RequestError(f"{where!r} is not a figure of a group; expected GROUP#cpu.stat.usage_usec or the like")
    if ".." in PurePosixPath(group).parts:
        raise RequestError(f"{group!r} leads out of {root}; expected a control group below it")
    directory = root / group.strip("/").removeprefix("sys/fs/cgroup").strip("/")
    if not (directory / "cgroup.procs").is_file():
        raise RequestError(f"control group {group} not found in {root}", hint="list the groups with systemd-cgls")
    file, key = directory / match[1], match[2]
    grows = key is not None and key not in _LEVELS
    return Source("files", lambda: _figure(file, key), rate if grows else level)


def _figure(file: Path, key: str | None) -> Figures:
    text = read_file(file)
    try:
        value = float(text) if key is None else field_of(text, key)
    except ValueError:
        value = None
    if value is None:
        raise NothingShownError(f"{file} has no {key or 'number'}")
    return (value,)
