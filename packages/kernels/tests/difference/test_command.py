"""``ajuste kernel diff``, on files and a small source tree."""

from __future__ import annotations

import gzip
import json
import platform
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ajuste.machine.home import home
from ajuste.model.error import RequestError
from ajuste_kernels.commands.kernel import app
from ajuste_kernels.difference import named_config
from small_kconfig import write_source
from small_kernel import RELEASE, small_kernel

HEAD = "# Linux/x86 6.1.9 Kernel Configuration\n"
A = f"{HEAD}CONFIG_SMP=y\nCONFIG_NUMA=y\nCONFIG_NUMA_BALANCING=y\nCONFIG_HAVE_NODES=y\nCONFIG_NR_CPUS=8\n"
B = f"{HEAD}CONFIG_SMP=y\n# CONFIG_NUMA is not set\nCONFIG_NR_CPUS=8\n"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AJUSTE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "a").write_text(A)
    (tmp_path / "b").write_text(B)
    return tmp_path


def run(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, ["diff", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def document(*arguments: str | Path) -> dict[str, Any]:
    difference: dict[str, Any] = json.loads(run(*arguments, "--json"))
    return difference


def test_with_a_source_it_is_told_what_each_difference_comes_from(files: Path) -> None:
    source = write_source(files / "linux")
    output = run(files / "a", files / "b", "--source", source)
    assert "3 options differ in B: 1 set explicitly, 2 following from others." in output
    assert "NUMA: y → n, set explicitly" in output
    assert "NUMA_BALANCING: y → absent, because of NUMA" in output
    assert "Memory placement aware NUMA scheduler" in output
    assert max(map(len, output.splitlines())) <= 80


def test_where_nothing_differs_no_source_is_missing(files: Path) -> None:
    output = run(files / "a", files / "a")
    assert "No options differ in B." in output
    assert "is not cached" not in output


def test_a_fragment_is_taken_to_be_for_the_source_that_was_named(files: Path) -> None:
    for name in ("a", "b"):
        (files / name).write_text((files / name).read_text().removeprefix(HEAD))
    assert "has no kernel version" in run(files / "a", files / "b")
    assert "NUMA: y → n, set explicitly" in run(files / "a", files / "b", "--source", write_source(files / "linux"))


def test_a_source_of_another_series_explains_nothing(files: Path) -> None:
    (files / "b").write_text(B.replace("6.1.9", "5.10.9"))
    output = run(files / "a", files / "b", "--source", write_source(files / "linux"))
    assert "the source of kernel 5.10 is not cached" in output


def test_without_a_source_it_is_said_what_is_lacking_and_how_to_get_it(files: Path) -> None:
    output = run(files / "a", files / "b")
    assert "NUMA: y → n\n" in output
    assert "3 of unknown cause" in output
    assert "the source of kernel 6.1 is not cached" in output
    assert "--source debian:6.1 fetches it" in output


def test_the_document_has_every_change_with_its_cause(files: Path) -> None:
    difference = document(files / "a", files / "b", "--source", write_source(files / "linux"))
    assert difference["a"]["kernel"] == "6.1.9"
    assert difference["counts"] == {"total": 3, "asked": 1, "follows": 2, "in_neither": 0}
    changes = {change["name"]: change for change in difference["changes"]}
    assert changes["HAVE_NODES"]["follows_from"] == ["NUMA"]
    assert changes["NUMA"]["subsystem"] == "Processor type and features"


def test_only_a_part_is_shown_where_that_is_wanted(files: Path) -> None:
    assert [change["name"] for change in document(files / "a", files / "b", "--only", "nodes")["changes"]] == [
        "HAVE_NODES"
    ]
    assert "No options with 'sound' differ in B." in run(files / "a", files / "b", "--only", "sound")


def test_of_very_many_changes_some_are_shown_and_all_if_wanted(files: Path) -> None:
    (files / "b").write_text(HEAD + "".join(f"CONFIG_DRIVER_{number}=m\n" for number in range(100)))
    assert "CONFIG" not in run(files / "a", files / "b")
    assert "DRIVER_99" not in run(files / "a", files / "b")
    assert "DRIVER_99" in run(files / "a", files / "b", "--all")


def test_a_hostile_name_or_value_cannot_move_the_cursor(files: Path) -> None:
    (files / "b").write_text(B + 'CONFIG_LOCALVERSION="\x1b[2J"\n')
    assert "\x1b" not in run(files / "a", files / "b")


def test_a_directory_that_was_built_in_stands_for_its_config(files: Path) -> None:
    (files / "built").mkdir()
    (files / "built/.config").write_text(B)
    assert document(files / "b", files / "built")["changes"] == []


def test_kernels_to_be_built_are_compared_by_their_names(files: Path) -> None:
    tree = small_kernel(files / "linux")
    output = run(f"build:{tree}", f"build:{tree}+HZ=100+NUMA=n")
    assert f"mine:{RELEASE}-lab-hz-100-no-numa" in output
    assert "HZ: 250 → 100" in output


def test_what_is_neither_file_nor_kernel_is_refused(files: Path) -> None:
    with pytest.raises(RequestError, match="file 'nowhere' not found") as error:
        run("nowhere", files / "b")
    assert "a .config file, or running" in (error.value.hint or "")


def test_the_running_kernel_tells_its_configuration(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/config.gz").write_bytes(gzip.compress(A.encode()))
    assert named_config("running", home(), print, root=tmp_path).config["NUMA"].text == "y"


def test_a_distribution_keeps_it_in_boot(tmp_path: Path) -> None:
    (tmp_path / "boot").mkdir()
    (tmp_path / f"boot/config-{platform.release()}").write_text(B)
    assert named_config("running", home(), print, root=tmp_path).config["NUMA"].text == "n"


def test_a_running_kernel_that_tells_nothing_is_said_to(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"the configuration of the running kernel .* was not found"):
        named_config("running", home(), print, root=tmp_path)


def test_a_damaged_archive_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.gz").write_bytes(gzip.compress(A.encode())[:60])
    with pytest.raises(RequestError, match=r"cannot read .*config\.gz"):
        named_config(str(tmp_path / "config.gz"), home(), print)
