"""``ajuste tunables`` of this machine: every instance with its value, or why there is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from ajuste.catalogue.loader import catalogue
from ajuste.cli import tunables
from ajuste.model.error import RequestError


def run(*arguments: str) -> str:
    result = attempt(*arguments)
    assert result.exit_code == 0, result.exception
    return result.stdout


def attempt(*arguments: str) -> Result:
    return CliRunner().invoke(tunables.app, list(arguments))


@pytest.fixture(scope="module")
def rows() -> dict[str, dict[str, str | None]]:
    return {row["name"]: row for row in json.loads(run("--here", "--json"))["tunables"]}


def test_every_entry_is_there_with_a_value_or_the_reason_why_not(rows: dict[str, Any]) -> None:
    assert {name.partition("[")[0] for name in rows} == set(catalogue().tunables)
    for row in rows.values():
        assert (row["value"] is None) == bool(row["problem"]), row


def test_values_are_those_that_the_kernel_shows(rows: dict[str, Any]) -> None:
    for path in ("vm/max_map_count", "net/ipv4/ip_local_port_range"):  # No test changes them meanwhile.
        assert rows[path.replace("/", ".")]["value"] == Path("/proc/sys", path).read_text().strip()


def test_there_is_one_for_every_interface(rows: dict[str, Any]) -> None:
    mtu = {name for name in rows if name.startswith("net.mtu[")}
    assert mtu == {f"net.mtu[{path.name}]" for path in Path("/sys/class/net").iterdir() if path.is_dir()}
    assert rows["net.mtu[lo]"]["value"] == Path("/sys/class/net/lo/mtu").read_text().strip()


def test_the_loopback_device_keeps_its_checksums_and_says_so(rows: dict[str, Any]) -> None:
    assert rows["net.tx-checksum[lo]"]["locked"] == "lo does not allow changes"


def test_without_a_terminal_there_is_a_line_for_each(rows: dict[str, Any]) -> None:
    lines = run("--here").splitlines()
    assert {line.split("\t")[0] for line in lines} == set(rows)
    assert all(line.count("\t") == 2 for line in lines)


def test_show_of_several_has_them_all() -> None:
    document = json.loads(run("show", "net.mtu", "--json"))
    names = [instance["name"] for instance in document["instances"] or [document]]
    assert "net.mtu[lo]" in names
    assert document["name"] == names[0]


def test_show_says_what_is_in_the_way() -> None:
    text = " ".join(run("show", "net.tx-checksum[lo]").split())
    assert "Locked lo does not allow changes" in text
    assert "this machine has no network interface none0; it has" in " ".join(run("show", "net.mtu[none0]").split())


def test_a_kernel_and_this_machine_are_two_things() -> None:
    error = attempt("--here", "--kernel", "debian:6.12").exception
    assert isinstance(error, RequestError)
    assert "mutually exclusive" in error.message
