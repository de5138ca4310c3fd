"""``psi:io.some``: the share of the time for which tasks waited for cpu, io or memory, in per cent.

``psi:/sys/fs/cgroup/GROUP#io.some`` is that of a control group. Source: Documentation/accounting/psi.rst.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ajuste.model.error import RequestError
from ajuste_live.reading import Figures, NothingShownError, Source, rate, read_file

KIND: Final = "psi"

_RESOURCES: Final = ("cpu", "io", "memory", "irq")
_MICROSECONDS_OF_A_PERCENT: Final = 10_000


def open_source(where: str) -> Source:
    """Open a pressure. Raises RequestError for an unknown one."""
    group, hash_, name = where.rpartition("#")
    resource, _, which = name.partition(".")
    if resource not in _RESOURCES or which not in ("some", "full"):
        raise RequestError(f"{name!r} is not a pressure; expected cpu.some, io.some, io.full or memory.some")
    file = Path(group) / f"{resource}.pressure" if hash_ else Path("/proc/pressure") / resource
    return Source("files", lambda: _total(file, which), rate)


def _total(file: Path, which: str) -> Figures:
    for line in read_file(file).splitlines():
        words = line.split()
        if words and words[0] == which:
            fields = dict(word.partition("=")[::2] for word in words[1:])
            return (int(fields["total"]) / _MICROSECONDS_OF_A_PERCENT,)
    raise NothingShownError(f"{file} has no line {which}")
