"""``ajuste live`` on settings of a running Redis and a running PostgreSQL, as a person uses it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import warm
from namespace import needs_root, with_service


def dry_run(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "AJUSTE_HOME": str(directory)}
    more = ("--slice", "2s", "--metric", "dirty,B,lower=proc:meminfo.Dirty", "--dry-run")
    return warm.run(["live", *words, *more], directory, environment)


def test_a_dry_run_says_which_setting_of_which_server_gets_which_value(tmp_path: Path) -> None:
    servers = ("--service", "redis:6380", "--service", "postgresql")
    varied = ("--set", "service.redis.hz=10,30", "--set", "service.postgresql.random_page_cost=4,1.1")
    plan = json.loads(dry_run(tmp_path, *servers, *varied, "--one-at-a-time", "--json").stdout)
    writes = {(write["tunable"], write["value"]) for each in plan["configurations"] for write in each["writes"]}
    assert writes == {
        ("redis.hz[6380]", "10"),
        ("redis.hz[6380]", "30"),
        ("postgresql.random_page_cost[5432]", "4"),
        ("postgresql.random_page_cost[5432]", "1.1"),
    }
    places = {write["where"] for each in plan["configurations"] for write in each["writes"]}
    assert places == {
        "hz of the redis at 127.0.0.1:6380",
        "random_page_cost of the postgresql at /var/run/postgresql/.s.PGSQL.5432",
    }
    single = json.loads(dry_run(tmp_path, "--service", "redis", "--set", "service.hz=10,30", "--json").stdout)
    assert single["configurations"][1]["writes"][0]["tunable"] == "redis.hz[6379]"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--set", "service.hz=10,30"), "No --service given"),
        (("--service", "redis", "--service", "postgresql", "--set", "service.hz=10,30"), "service.redis.hz"),
        (("--service", "redis", "--service", "redis:6380", "--set", "service.hz=10,30"), "two servers of one kind"),
        (("--service", "redis-server --port {port}", "--set", "service.hz=10,30"), "ajuste compare --service"),
        (("--service", "nginx", "--set", "service.worker_processes=1,2"), "redis or postgresql"),
        (("--service", "postgresql", "--set", "service.shared_buffers=128MB,1GB"), "ajuste compare --service"),
        (("--service", "redis", "--set", "service.nice=0,5"), "'nice'"),
        (("--service", "redis", "--set", "service.dir=/tmp,/etc"), "'dir'"),
        (("--service", "redis:example.org", "--set", "service.hz=10,30"), "expected a port or a socket"),
        (("--service", "redis", "--set", "service.hz=10,30;FLUSHALL"), "'30;FLUSHALL'"),
        (("--service", "redis", "--set", "service.maxmemory=1gb,2gb"), "--accept-risk"),
        (("--service", "postgresql", "--set", "service.synchronous_commit=on,off"), "--accept-risk"),
        (
            ("--service", "redis", "--set", "service.hz=10,30", "--adopt", "--guard", "dirty < 1TB"),
            "--adopt conflicts with redis.hz[6379]",
        ),
    ],
)
def test_what_is_not_possible_is_said_in_one_message(tmp_path: Path, words: tuple[str, ...], why: str) -> None:
    done = dry_run(tmp_path, *words)
    assert done.returncode == 2
    assert why in done.stderr
    assert done.stderr.count("ajuste: ") == 1


def test_a_guest_has_none_of_the_running_servers(tmp_path: Path) -> None:
    words = ("compare", "--vm", "--set", "redis.hz[6379]=10,30", "--dry-run", "--", "true")
    done = warm.run(list(words), tmp_path, {**os.environ, "AJUSTE_HOME": str(tmp_path)})
    assert done.returncode == 2
    assert "running servers" in done.stderr


BEGIN = """\
mkdir -p /run/lock /run/postgresql
redis-server --port 6379 --save "" --dir . >/dev/null &
as_postgres() {{ setpriv --reuid postgres --regid postgres --clear-groups "$@"; }}
programs=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
data=$(mktemp -d)
chown postgres $data /run/postgresql
as_postgres $programs/initdb --auth=trust --no-sync --no-locale -U postgres $data/main >/dev/null
as_postgres $programs/pg_ctl start --wait --silent --log=$data/log \\
    --options="-c listen_addresses= -c fsync=off" -D $data/main >/dev/null
end() {{ as_postgres $programs/pg_ctl stop --mode=immediate --silent -D $data/main; rm -rf $data; }}
trap end EXIT
hz() {{ redis-cli config get hz | tail -1; }}
cost() {{ psql -U postgres -Atqc "show random_page_cost" postgres; }}
values() {{ hz; cost; grep -vc "^#" $data/main/postgresql.auto.conf || true; }}
ajuste() {{ {ajuste} "$@"; }}
live() {{
    ajuste live --service redis --service postgresql --one-at-a-time --set service.redis.hz=10,30 \\
    --set service.postgresql.random_page_cost=4,1.1 --slice 2s --washout 0 --for 10m --min-effect 5% --seed 2 \\
    --confidence 70% --metric "hz,Hz,higher=command:redis-cli config get hz" \\
    --metric "cost,lower=command:psql -U postgres -Atqc 'show random_page_cost' postgres" "$@"
}}
await() {{ for try in $(seq 600); do [ "$($1)" = $2 ] && return; sleep 0.05; done; exit 1; }}
left() {{ find home/state/journals /var/lib/ajuste/journals -type f | wc -l; }}
"""
AS_BEFORE = ["10", "4", "0"]


def run(script: str, directory: Path, *, limit_s: float = 250) -> list[str]:
    return with_service(BEGIN, script, directory, {}, limit_s=limit_s).split()


def on_servers(test: Callable[..., None]) -> Callable[..., None]:
    are_there = shutil.which("redis-server") is not None and bool(list(Path("/usr/lib/postgresql").glob("*/bin")))
    marked = pytest.mark.skipif(not are_there, reason="needs Redis and PostgreSQL")(test)
    return needs_root(pytest.mark.machine(marked))


@on_servers
@pytest.mark.slow
def test_planted_settings_of_both_are_found_through_a_kill_and_restored(tmp_path: Path) -> None:
    output = run(
        """\
        live >first.txt 2>&1 & killed=$!
        await hz 30
        kill -9 $(pgrep -P $killed || echo $killed) $killed || true
        await hz 10
        await cost 4
        values
        live --json >result.json 2>progress.txt
        values
        left
        """,
        tmp_path,
    )
    assert output == [*AS_BEFORE, *AS_BEFORE, "0"]
    document = json.loads((tmp_path / "result.json").read_text())
    verdicts = {(v["configuration"], v["metric"]): v["verdict"] for v in document["verdicts"]}
    hz = next(name for name, _ in verdicts if "redis.hz" in name and "=30" in name)
    cost = next(name for name, _ in verdicts if "random_page_cost" in name and "=1.1" in name)
    assert (verdicts[hz, "hz"], verdicts[cost, "cost"]) == ("improves", "improves")


@on_servers
def test_a_broken_guard_restores_both_and_is_said(tmp_path: Path) -> None:
    output = run("live --guard 'hz < 20' --for 14s --json >result.json 2>said.txt; values; left", tmp_path)
    assert output == [*AS_BEFORE, "0"]
    document = json.loads((tmp_path / "result.json").read_text())
    assert "broke the guard hz < 20 (hz is 30 Hz)" in document["answer"]


@on_servers
def test_an_interrupt_restores_both(tmp_path: Path) -> None:
    output = run(
        """\
        (await cost 1.1; kill -INT $(pgrep -P $$ -f bin/ajuste)) &
        live >said.txt 2>&1 || echo $?
        values
        left
        """,
        tmp_path,
    )
    assert output == ["130", *AS_BEFORE, "0"]


@on_servers
def test_what_nobody_lives_to_restore_is_restored_by_hand(tmp_path: Path) -> None:
    output = run(
        """\
        live >said.txt 2>&1 & live=$!
        # Stopped first: the slice does not end, and none is left to restore what another one held.
        while await cost 1.1; pkill -STOP "^ajuste"; [ "$(cost)" != 1.1 ]; do pkill -CONT "^ajuste"; done
        pkill -9 "^ajuste" || true
        kill -9 $live || true
        cost
        live >refused.txt 2>&1 || echo "exit $?"
        ajuste restore --dry-run >shown.txt
        ajuste restore >restored.txt
        values
        left
        """,
        tmp_path,
    )
    assert output == ["1.1", "exit", "2", *AS_BEFORE, "0"]
    assert "ajuste restore" in (tmp_path / "refused.txt").read_text()
    steps, restored = (tmp_path / "shown.txt").read_text(), (tmp_path / "restored.txt").read_text()
    assert "postgresql.random_page_cost[5432] would be as its configuration says" in steps
    assert "postgresql.random_page_cost[5432] is 4 (it was 1.1)" in restored
