"""A load on which both settings show: 5 MB/s into a file of 64 MiB, and 32 MiB of memory that are touched anew."""

from __future__ import annotations

import itertools
import mmap
import os
import time

_FILE_BYTES = 64 << 20
_PIECE = b"x" * (256 << 10)
_MEMORY_BYTES = 32 << 20
_PAUSE_S = 0.05

file = os.open("/var/lib/written", os.O_WRONLY | os.O_CREAT, 0o600)
place = 0
for number in itertools.count():
    if number % 20 == 0:
        memory = mmap.mmap(-1, _MEMORY_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        for page in range(0, _MEMORY_BYTES, mmap.PAGESIZE):
            memory[page] = 1
    os.pwrite(file, _PIECE, place)
    place = (place + len(_PIECE)) % _FILE_BYTES
    time.sleep(_PAUSE_S)
