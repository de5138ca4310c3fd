"""``ajuste live --adopt`` as a person uses it, in a network of its own: a proved winner stays, and is put back later."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from namespace import in_namespace, needs_root

SERVICE = """\
import http.server, pathlib, sys
setting, here = pathlib.Path("/proc/sys/net/ipv4/tcp_retries2"), pathlib.Path(sys.argv[1])
total = count = 0.0
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        global total, count
        count += 100
        total += 100 * (0.008 if setting.read_text().strip() == "8" else 0.010) * (1 + (count % 700) / 7000)
        bad = (here / "bad").exists()
        body = f"# TYPE took summary\\ntook_sum {total}\\ntook_count {count}\\n"
        body += f"# TYPE worst gauge\\nworst {9 if bad else 1}\\n"
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body.encode())
    def log_message(self, *_): pass
service = http.server.ThreadingHTTPServer(("127.0.0.1", 21797), Handler)
(here / "answers").touch()
service.serve_forever()
"""
READER = """\
import collections, pathlib, sys, time
setting, seen = pathlib.Path("/proc/sys/net/ipv4/tcp_retries2"), collections.Counter()
here = pathlib.Path(sys.argv[1])
longest, last = 0.0, time.monotonic()
while not (here / "enough").exists():
    for _ in range(100):
        seen[setting.read_text().strip()] += 1
        time.sleep(0.001)
(here / "seen").write_text(" ".join(sorted(seen)))
"""
"""Reads the setting about every millisecond."""
BEGIN = """\
mkdir -p /run/lock
mount -t tmpfs none /etc/sysctl.d
{python} service.py . &
until [ -e answers ]; do sleep 0.05; done
ajuste() {{ {ajuste} "$@"; }}
value() {{ cat /proc/sys/net/ipv4/tcp_retries2; }}
live() {{
    ajuste live --set net.ipv4.tcp_retries2=15,8 --slice 2s --washout 0 --for 10m --min-effect 5% \\
    --seed 2 --confidence 80% \\
    --metric "took,s,lower=prometheus:http://127.0.0.1:21797/#took" \\
    --watch "worst,s=prometheus:http://127.0.0.1:21797/#worst" --guard "worst < 5s" "$@"
}}
on_probation() {{ for try in $(seq 1200); do grep -q "is on probation" "$1" && return 0; sleep 0.05; done; return 1; }}
"""

pytestmark = [needs_root, pytest.mark.machine]


def run(script: str, directory: Path, *, limit_s: float = 200) -> str:
    (directory / "service.py").write_text(SERVICE)
    (directory / "reader.py").write_text(READER)
    ajuste = f"AJUSTE_HOME={directory}/home {Path(sys.executable).with_name('ajuste')}"
    begin = BEGIN.format(python=sys.executable, ajuste=ajuste)
    return in_namespace(begin + script, directory, limit_s=limit_s)


def test_a_proved_winner_stays_until_it_is_undone(tmp_path: Path) -> None:
    said = run(
        f"""\
        live --adopt --probation 4s >progress.txt 2>&1 &
        live=$!
        on_probation progress.txt
        {sys.executable} reader.py . & reader=$!
        wait $live
        touch enough; wait $reader
        ajuste live result --json >result.json
        value
        ls /etc/sysctl.d
        cat /etc/sysctl.d/*.conf >boot.conf
        ajuste live status >status.txt
        ajuste restore >kept.txt
        ajuste restore --verify >verified.txt
        value
        ajuste live --set net.ipv4.tcp_retries2=9,7 --slice 2s --washout 0 --for 5s --name other \\
            --metric "took,s,lower=prometheus:http://127.0.0.1:21797/#took" >other.txt 2>&1
        value
        pgrep -l "^ajuste-" || true
        ls /dev/shm | grep ajuste || true
        ajuste restore --run $(sed -n 's/.*"run": "\\(.*\\)".*/\\1/p' result.json | head -1) >undone.txt
        value
        ls /etc/sysctl.d /var/lib/ajuste/adopted
        """,
        tmp_path,
    )
    document = json.loads((tmp_path / "result.json").read_text())
    name = next(line for line in said.splitlines() if line.endswith(".conf"))
    assert said.split() == ["8", name, "8", "8", "15", "/etc/sysctl.d:", "/var/lib/ajuste/adopted:"]
    assert (tmp_path / "seen").read_text() == "15 8", "a reader sees the old value and the new one, and nothing else"
    boot = (tmp_path / "boot.conf").read_text()
    assert "\nnet.ipv4.tcp_retries2 = 8\n" in boot
    assert document["run"] in boot
    assert document["digest"] in boot
    assert "took: improves" in boot
    for page in ("status.txt", "kept.txt", "other.txt"):
        assert f"adopted from run {document['run']}" in (tmp_path / page).read_text(), page
    assert any(note.startswith("Adopted net.ipv4.tcp_retries2 = 8 (was 15)") for note in document["notes"])
    assert "net.ipv4.tcp_retries2 is 15 (it was 8)" in (tmp_path / "undone.txt").read_text()
