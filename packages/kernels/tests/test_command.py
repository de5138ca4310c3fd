"""``ajuste kernel``, by a small archive on disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from ajuste.model.error import RequestError
from ajuste_kernels.commands.kernel import app

if TYPE_CHECKING:
    from tests.debian_archive import Archive


@pytest.fixture
def kernels(archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Archive:
    monkeypatch.setenv("AJUSTE_HOME", str(tmp_path / "home"))
    archive.add_kernel("bullseye", "5.10.0-2-cloud-amd64", "5.10.9-1")
    archive.add_kernel("bullseye-security", "5.10.0-3-cloud-amd64", "5.10.12-1")
    archive.add_kernel("bullseye-security", "5.10.0-3-rt-amd64", "5.10.12-1")
    archive.publish()
    return archive


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def listed(*options: str) -> list[dict[str, Any]]:
    document: dict[str, list[dict[str, Any]]] = json.loads(run("list", "--json", *options))
    return document["kernels"]


def test_the_list_has_the_newest_of_each_series_and_flavour(kernels: Archive) -> None:
    assert [(k["spec"], k["release"], k["cached"]) for k in listed()] == [
        ("debian:5.10", "5.10.0-3-cloud-amd64", False),
        ("debian:5.10/rt", "5.10.0-3-rt-amd64", False),
    ]
    first = listed()[0]
    assert first["scheduler"] == "CFS"
    assert first["granularity"] == "/proc/sys/kernel/sched_min_granularity_ns"
    assert first["suite"] == "bullseye-security"


def test_all_has_every_version(kernels: Archive) -> None:
    assert [k["spec"] for k in listed("--all")] == [
        "debian:5.10.0-2-cloud-amd64",
        "debian:5.10.0-3-cloud-amd64",
        "debian:5.10.0-3-rt-amd64",
    ]


def test_what_was_fetched_is_listed_as_such_and_without_a_mirror_too(kernels: Archive, tmp_path: Path) -> None:
    assert "debian:5.10.9: 5.10.0-2-cloud-amd64 in " in run("fetch", "debian:5.10.9")
    # The series is what typing it gives: the cached one.
    assert [(k["spec"], k["release"], k["cached"]) for k in listed()] == [
        ("debian:5.10", "5.10.0-2-cloud-amd64", True),
        ("debian:5.10.0-3-cloud-amd64", "5.10.0-3-cloud-amd64", False),
        ("debian:5.10/rt", "5.10.0-3-rt-amd64", False),
    ]
    kernels.remove()
    (tmp_path / "home/cache/lists").rename(tmp_path / "no-lists")
    assert [(k["spec"], k["cached"]) for k in listed()] == [("debian:5.10", True)]


def test_plain_text_for_other_programs_has_a_line_a_kernel(kernels: Archive) -> None:
    lines = [line.split("\t") for line in run("list").splitlines()]
    assert [fields[0] for fields in lines] == ["debian:5.10", "debian:5.10/rt"]
    assert lines[0][1:5] == [
        "5.10.0-3-cloud-amd64",
        "CFS",
        "/proc/sys/kernel/sched_min_granularity_ns",
        "available",
    ]


def test_fetching_gives_the_paths_as_json(kernels: Archive) -> None:
    (fetched,) = json.loads(run("fetch", "debian:5.10", "--json"))["fetched"]
    assert fetched["spec"] == "debian:5.10"
    assert Path(fetched["vmlinuz"]).is_file()


def test_one_wrong_spec_among_several_fetches_nothing(kernels: Archive, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"flavour .* not found"):
        run("fetch", "debian:5.10", "debian:5.10/fast")
    assert not (tmp_path / "home").exists()
