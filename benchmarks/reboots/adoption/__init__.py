"""Winners that are adopted on a Debian with systemd, and stay over a reboot until they are undone.

``python -m benchmarks adoption`` boots the emulated machine three times. Boot 1 adopts a sysctl against the
administrator's own /etc/sysctl.conf, and a setting that is no sysctl. Boot 2 finds both set, and undoes them. Boot 3
finds the old values. A reader looks at both every millisecond of the machine's clock.
"""

from __future__ import annotations

from benchmarks.reboots.adoption.boots import measure

__all__ = ["measure"]
