"""Settings of running servers by name: which there are, where, and what their levels can be."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelVersion
from ajuste.model.plan import ServerSetting
from ajuste.model.tunable import SERVER_KINDS

KERNEL = KernelVersion(major=6, minor=12)


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("redis.hz", "127.0.0.1:6379"),
        ("redis.hz[6380]", "127.0.0.1:6380"),
        ("redis.hz[/run/redis/redis.sock]", "/run/redis/redis.sock"),
        ("postgresql.work_mem", "/var/run/postgresql/.s.PGSQL.5432"),
        ("postgresql.work_mem[5433]", "/var/run/postgresql/.s.PGSQL.5433"),
        ("postgresql.work_mem[/var/run/postgresql/.s.PGSQL.5433]", "/var/run/postgresql/.s.PGSQL.5433"),
    ],
)
def test_the_name_says_where_the_server_is(name: str, address: str) -> None:
    known = catalogue()
    tunable = known.find_tunable(name)
    location = known.locate(tunable, KERNEL)
    assert isinstance(location, ServerSetting)
    assert (location.address, f"{location.kind}.{location.name}") == (address, name.partition("[")[0])
    assert known.find_tunable(tunable.name) == tunable


@pytest.mark.parametrize(
    "name",
    [
        "redis.dir",
        "redis.dbfilename",
        "redis.logfile",
        "redis.requirepass",
        "redis.replicaof",
        "redis.maxmemory-policy\r\nFLUSHALL",
        "redis.hz-*",
        "redis.",
        "redis",
        "postgresql.archive_command",
        "postgresql.session_preload_libraries",
        "postgresql.ssl_passphrase_command",
        "postgresql.shared_buffers",
        "postgresql.fsync",
        "postgresql.zero_damaged_pages",
        'postgresql.enable_" = on; --',
        "redis.hz[0]",
        "redis.hz[65536]",
        "redis.hz[example.org:6379]",
        "redis.hz[192.0.2.1:6379]",
        "redis.hz[/run/../etc/passwd]",
        "redis.hz[/run/redis sock]",
        "redis.hz[relative/socket]",
        f"redis.hz[/{'a' * 60}/{'b' * 60}]",
    ],
)
def test_what_names_commands_files_accounts_or_other_machines_is_no_setting(name: str) -> None:
    with pytest.raises(RequestError):
        catalogue().find_tunable(name)


def test_levels_are_numbers_and_words_and_nothing_else() -> None:
    known = catalogue()
    redis, database = known.find_tunable("redis.maxmemory"), known.find_tunable("postgresql.work_mem")
    assert known.check_level(redis, "100mb") == str(100 * 1024 * 1024)
    assert known.check_level(redis, "1G") == str(10**9)
    for level in ("64MB", "-1", "1.1", "on", "read-committed"):
        assert known.check_level(database, level) == level
    for level in ("", "1;2", "'", "1 OR 1", "a/b", "$(id)", "1 2", "with:1", "é", "x" * 65, "\0"):
        for tunable in (redis, database):
            with pytest.raises(RequestError):
                known.check_level(tunable, level)


def test_no_pattern_of_a_risk_is_unknown() -> None:
    known = catalogue()
    for kind in SERVER_KINDS:
        for name, note in known.services[kind].risks.items():
            tunable = known.find_tunable(f"{kind}.{name}")
            assert (tunable.risk, tunable.risk_note) == ("data", note)


def test_the_reference_lists_every_setting() -> None:
    page = Path(__file__).parents[2].joinpath("docs/reference/tunables.md").read_text()
    section = page.partition("## Settings of running servers")[2].partition("\n## ")[0]
    for kind in SERVER_KINDS:
        server = catalogue().services[kind]
        (row,) = [line for line in section.splitlines() if line.startswith(f"| {server.title} |")]
        assert re.findall("`([^`]+)`", row) == list(server.running)
