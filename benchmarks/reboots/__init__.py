"""Experiments across reboots: on a played machine that is killed at every step, and on an emulated one without power.

``python -m benchmarks reboots`` plays; ``python -m benchmarks.reboots --kills 200`` plays more, and ``--cuts N`` boots
a Debian in QEMU and cuts its power N times.
"""

from __future__ import annotations

from benchmarks.reboots.kills import measure

__all__ = ["measure"]
