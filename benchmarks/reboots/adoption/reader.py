"""Read both settings every millisecond of this machine's clock until SIGTERM; then write what was seen."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path

_SETTINGS = {
    "vm.dirty_background_ratio": "/proc/sys/vm/dirty_background_ratio",
    "thp.enabled": "/sys/kernel/mm/transparent_hugepage/enabled",
}
_EVERY_NS = 1_000_000

over: list[int] = []
signal.signal(signal.SIGTERM, lambda number, _: over.append(number))
files = {name: os.open(path, os.O_RDONLY) for name, path in _SETTINGS.items()}
seen: dict[str, Counter[bytes]] = {name: Counter() for name in files}
began = last = due = time.monotonic_ns()
longest = late = 0
while not over:
    for name, file in files.items():
        seen[name][os.pread(file, 64, 0)] += 1
    now = time.monotonic_ns()
    longest, last = max(longest, now - last), now
    late += now - due > _EVERY_NS
    due = max(due + _EVERY_NS, now)
    time.sleep(max(0, due - now) / 1e9)
Path(sys.argv[1]).write_text(
    json.dumps(
        {
            "seen": {name: {value.decode().strip(): n for value, n in counts.items()} for name, counts in seen.items()},
            "seconds": (last - began) / 1e9,
            "longest_apart_ms": longest / 1e6,
            "late": late,
            "readings": min(counts.total() for counts in seen.values()),
        }
    )
)
