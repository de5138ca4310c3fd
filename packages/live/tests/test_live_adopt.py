"""``ajuste live --adopt`` as a person uses it, in a network of its own: a proved winner stays, and is undone later."""

from __future__ import annotations

import json
import sys
from itertools import groupby
from pathlib import Path

import pytest

from ajuste_stats.switchback.design import STAY
from namespace import needs_root, with_service

SERVICE = """\
import http.server, pathlib, sys
setting, here = pathlib.Path("/proc/sys/net/ipv4/tcp_retries2"), pathlib.Path(sys.argv[1])
total = count = 0.0
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        global total, count
        count += 100
        total += 100 * {"8": 0.008, "7": 0.006}.get(setting.read_text().strip(), 0.010) * (1 + (count % 700) / 7000)
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
    ajuste live --set net.ipv4.tcp_retries2=$1 --adopt --probation $2 \\
    --slice 2s --washout 0 --for 10m --min-effect 5% --seed 2 --confidence 70% \\
    --metric "took,s,lower=prometheus:http://127.0.0.1:21797/#took" \\
    --watch "worst,s=prometheus:http://127.0.0.1:21797/#worst" --guard "worst < 5s"
}}
begin() {{ live "$1" "$2" >"$3" 2>&1 & live=$!; }}
on_probation() {{
    for try in $(seq 3000); do grep -q "is on probation" "$1" && break; sleep 0.05; done
    for try in $(seq 100); do [ "$(value)" = "$2" ] && pgrep -x ajuste-watch >/dev/null && return 0; sleep 0.05; done
    cat "$1"; exit 1
}}
run_of() {{ ajuste live result --json | sed -n 's/.*"run": "\\(.*\\)".*/\\1/p' | head -1; }}
reboot() {{
    echo 11111111-2222-3333-4444-555555555555 >boot_id
    mount --bind boot_id /proc/sys/kernel/random/boot_id
}}
at_rest() {{ for try in $(seq 200); do pgrep "^ajuste-" >/dev/null || return 0; sleep 0.1; done; pgrep -l "^ajuste-"; }}
"""

pytestmark = [needs_root, pytest.mark.machine, pytest.mark.slow]


def _block(part: dict[str, int]) -> int:
    return part["block"]


def run(script: str, directory: Path, *, limit_s: float = 280) -> str:
    return with_service(BEGIN, script, directory, {"service.py": SERVICE, "reader.py": READER}, limit_s=limit_s)


def test_a_proved_winner_stays_until_it_is_undone(tmp_path: Path) -> None:
    output = run(
        f"""\
        begin 15,8 4s progress.txt
        for try in $(seq 1200); do grep -q "^slice 12" progress.txt && break; sleep 0.05; done
        {sys.executable} reader.py . & reader=$!
        wait $live
        touch enough; wait $reader
        value
        ajuste live result --json >result.json
        cat /etc/sysctl.d/*.conf >boot.conf
        ajuste live status >status.txt
        ajuste live status --json >status.json
        ajuste restore >kept.txt
        ajuste restore --verify >verified.txt
        value
        at_rest
        roll=$(ls /var/lib/ajuste/adopted | sed -n 's/.*-\\([0-9]*-[0-9]*\\).json/ajuste-\\1/p')
        ls /dev/shm | grep -x "$roll" || true
        ajuste restore --run $(run_of) >undone.txt
        value
        ls /etc/sysctl.d /var/lib/ajuste/adopted | wc -w
        """,
        tmp_path,
    )
    assert output.split() == ["8", "8", "15", "2"]
    document = json.loads((tmp_path / "result.json").read_text())
    blocks = [[part["configuration"] for part in group] for _, group in groupby(document["live"]["slices"], _block)]
    stays = [block for block in blocks if len(block) == 2 * STAY]
    assert len(stays) >= 2
    assert all(len(set(block[:STAY])) == len(set(block[STAY:])) == 1 for block in stays)
    assert "beyond 5 slices, and slow leaks: not tested" in document["answer"]
    assert set((tmp_path / "seen").read_text().split()) == {"15", "8"}, "the old value and the new one, and no other"
    boot = (tmp_path / "boot.conf").read_text()
    assert "\nnet.ipv4.tcp_retries2 = 8\n" in boot
    assert f"Run {document['run']}, digest {document['digest']}" in boot
    assert "took: improves" in boot
    for page in ("status.txt", "kept.txt"):
        assert f"adopted from run {document['run']}" in (tmp_path / page).read_text(), page
    (adopted,) = json.loads((tmp_path / "status.json").read_text())["adopted"]
    assert (adopted["run"], adopted["in_force"]) == (document["run"], True)
    assert adopted["values"] == [{"tunable": "net.ipv4.tcp_retries2", "before": "15", "value": "8"}]
    assert any(note.startswith("Adopted net.ipv4.tcp_retries2 = 8 (was 15)") for note in document["notes"])
    assert "Adopted:\n  net.ipv4.tcp_retries2 is 8, was 15" in (tmp_path / "verified.txt").read_text()
    assert "net.ipv4.tcp_retries2 is 15 (it was 8)" in (tmp_path / "undone.txt").read_text()


def test_the_second_winner_is_undone_to_the_first(tmp_path: Path) -> None:
    output = run(
        """\
        live 15,8 2s >first.txt 2>&1
        first=$(run_of)
        live 8,7 2s >second.txt 2>&1
        value
        ajuste restore --run $first >refused.txt 2>&1 || echo "exit code $?"
        ajuste restore --run $(run_of) >/dev/null
        value
        ajuste restore --run $first >/dev/null
        value
        """,
        tmp_path,
    )
    assert output.splitlines() == ["7", "exit code 2", "8", "15"]
    assert "adopted from run" in (tmp_path / "second.txt").read_text()
    assert "was adopted later" in (tmp_path / "refused.txt").read_text()


def test_after_a_reboot_the_file_sets_the_value_and_undoing_restores_the_old_one(tmp_path: Path) -> None:
    output = run(
        """\
        echo "net.ipv4.tcp_retries2 = 15" >/etc/sysctl.d/99-sysctl.conf
        live 15,8 2s >said.txt 2>&1
        reboot
        echo 12 >/proc/sys/net/ipv4/tcp_retries2
        cat /etc/sysctl.d/*.conf | sysctl -q -p -
        value
        ajuste live status >status.txt
        dirty="dirty,B,lower=proc:meminfo.Dirty"
        ajuste live --set net.ipv4.tcp_retries2=8,7 --slice 2s --metric $dirty --dry-run >plan.txt
        ajuste restore --run $(run_of) --dry-run >dry.txt
        ajuste restore --run $(run_of) >undone.txt
        value
        ls /etc/sysctl.d
        ls /var/lib/ajuste/adopted | wc -w
        """,
        tmp_path,
    )
    assert output.split() == ["8", "15", "99-sysctl.conf", "0"]
    for page in ("status.txt", "plan.txt"):
        text = (tmp_path / page).read_text()
        assert "adopted from run" in text, page
        assert "set at boot by /etc/sysctl.d/" in text, page
        assert "reboot" not in text, page
    assert "net.ipv4.tcp_retries2 would be 15 again" in (tmp_path / "dry.txt").read_text()
    undone = (tmp_path / "undone.txt").read_text()
    assert "net.ipv4.tcp_retries2 is 15 (it was 8)" in undone
    assert "removed /etc/sysctl.d/" in undone


def test_a_kill_on_probation_leaves_the_old_or_the_new_value(tmp_path: Path) -> None:
    output = run(
        """\
        for parts in agent python "agent guardian" "guardian agent python"; do
            begin 15,8 60s said.txt
            on_probation said.txt 8
            python=$(pgrep -P $live || echo $live)
            agent=$(pgrep -x ajuste-agent | tail -1); guardian=$(pgrep -x ajuste-guardian)
            kill -9 $(for part in $parts; do eval echo \\$$part; done)
            wait $live || true
            at_rest
            value
            ajuste restore >restored.txt
            value
            ls /var/lib/ajuste/adopted | wc -w
            rm said.txt
        done
        """,
        tmp_path,
    )
    rows = [output.split()[place : place + 3] for place in range(0, 12, 3)]
    assert [row[1:] for row in rows] == [["15", "0"]] * 4, output
    assert [row[0] for row in rows] == ["15", "15", "15", "8"], "only with all of them dead it is the new one"


@pytest.mark.parametrize(
    ("trouble", "why"),
    [
        ("echo 12 >/proc/sys/net/ipv4/tcp_retries2", "tcp_retries2 is 12 instead of 8"),
        ("touch bad", "worst is 9 s"),
    ],
)
def test_a_winner_that_is_not_left_alone_or_breaks_a_guard_does_not_stay(
    tmp_path: Path, trouble: str, why: str
) -> None:
    output = run(
        f"""\
        begin 15,8 8s said.txt
        on_probation said.txt 8
        {trouble}
        wait $live || echo "exit code $?"
        value
        ls /etc/sysctl.d /var/lib/ajuste/adopted | wc -w
        """,
        tmp_path,
    )
    assert output.splitlines() == ["exit code 1", "15", "2"]
    assert why in (tmp_path / "said.txt").read_text()
