"""A TuneD daemon of its own, for a script in a namespace."""

from __future__ import annotations

import shutil

BUS = """\
<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>system</type><listen>unix:path=/run/bus</listen><auth>EXTERNAL</auth>
<policy context="default">
<allow send_destination="*" eavesdrop="true"/><allow own="*"/><allow eavesdrop="true"/>
</policy>
</busconfig>
"""


def serving(profile: str) -> str:
    """Commands that have a daemon run which knows the ``profile`` in the working directory, and no other of ours."""
    assert shutil.which("tuned-adm"), "TuneD is among the packages of the tests"
    return f"""
        cp -a /etc/tuned /run/profiles; cp -a {profile} /run/profiles; mount --bind /run/profiles /etc/tuned
        mkdir /run/profiles/nothing; echo "[main]" >/run/profiles/nothing/tuned.conf # not what TuneD would recommend
        echo nothing >/etc/tuned/active_profile; echo manual >/etc/tuned/profile_mode
        mkdir /run/tuned /var/log/tuned; export DBUS_SYSTEM_BUS_ADDRESS=unix:path=/run/bus
        cat >/run/bus.conf <<'END'
{BUS}END
        dbus-daemon --config-file=/run/bus.conf --fork
        tuned --daemon --log=/run/tuned.log --pid=/run/tuned.pid 2>/dev/null
        n=0 # It ends well without its daemon too, and then only says what was preset.
        until tuned-adm active 2>&1 | grep -q "^Current active"; do n=$((n + 1)); [ $n -lt 100 ]; sleep 0.2; done
    """
