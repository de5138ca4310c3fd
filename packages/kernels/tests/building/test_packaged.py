"""Packaged sources, from a small archive on disk."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ajuste.machine.home import Home
from ajuste.model.error import RequestError, RunError
from ajuste_kernels.building.built import read_version
from ajuste_kernels.building.sources import PackagedSource, open_source
from small_kernel import small_kernel

if TYPE_CHECKING:
    from tests.debian_archive import Archive


def add_source(archive: Archive, series: str, version: str, directory: Path) -> Path:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz") as tar:
        tar.add(small_kernel(directory), arcname=f"linux-source-{series}")
    files = {f"usr/src/linux-source-{series}.tar.xz": packed.getvalue()}
    return archive.add("bullseye", f"linux-source-{series}", version, files)


@pytest.fixture
def sources(archive: Archive, tmp_path: Path) -> Archive:
    add_source(archive, "6.1", "6.1.8-1", tmp_path / "linux")
    add_source(archive, "6.1", "6.1.7-1", tmp_path / "linux")
    add_source(archive, "5.10", "5.10.9-1", tmp_path / "linux")
    archive.publish()
    return archive


def opened(text: str, place: Home, messages: list[str]) -> PackagedSource:
    source = open_source(text, place, messages.append)
    assert isinstance(source, PackagedSource)
    return source


def test_the_newest_source_of_a_series_is_unpacked_once(sources: Archive, place: Home, messages: list[str]) -> None:
    source = opened("debian:6.1", place, messages)
    assert (source.package, read_version(source)) == ("linux-source-6.1 6.1.8-1", "6.1.7")
    assert b"sched_latency" in source.read("kernel/fair.c")
    sources.remove()
    messages.clear()
    assert opened("debian:6.1", place, messages).digest == source.digest
    assert messages == []


def test_an_exact_version(sources: Archive, place: Home, messages: list[str]) -> None:
    assert opened("debian:6.1.7", place, messages).package == "linux-source-6.1 6.1.7-1"


def test_one_that_is_gone_from_the_mirror_is_passed_over(
    archive: Archive, tmp_path: Path, place: Home, messages: list[str]
) -> None:
    add_source(archive, "6.1", "6.1.8-1", tmp_path / "linux").unlink()
    add_source(archive, "6.1", "6.1.7-1", tmp_path / "linux")
    archive.publish()
    assert opened("debian:6.1", place, messages).package == "linux-source-6.1 6.1.7-1"
    assert any("trying the next newest" in text for text in messages)


def test_what_there_is_not(sources: Archive, place: Home, messages: list[str]) -> None:
    with pytest.raises(RequestError, match=r"no source of kernel 6\.12") as caught:
        opened("debian:6.12", place, messages)
    assert caught.value.hint == "use one of debian:5.10, debian:6.1"
    with pytest.raises(RequestError, match="is a kernel package"):
        opened("debian:6.1/rt", place, messages)


def test_files_are_shared_with_trees_that_are_made_of_it(
    sources: Archive, tmp_path: Path, place: Home, messages: list[str]
) -> None:
    source = opened("debian:6.1", place, messages)
    source.write(["Makefile"], tmp_path)
    assert (tmp_path / "Makefile").samefile(source.tree / "Makefile")


def test_a_damaged_file_is_not_laid_out_and_the_source_is_fetched_again(
    sources: Archive, place: Home, messages: list[str], tmp_path: Path
) -> None:
    source = opened("debian:6.1", place, messages)
    file = source.tree / "kernel/fair.c"
    whole, before = file.read_bytes(), file.stat()
    file.write_bytes(whole.replace(b"sched_latency", b"sched_latencz", 1))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    (tmp_path / "out/kernel").mkdir(parents=True)
    with pytest.raises(RunError, match=r"the source linux-source-6\.1 6\.1\.8-1 is damaged on the disk: tree/kernel"):
        opened("debian:6.1", place, messages).write(["kernel/fair.c"], tmp_path / "out")
    assert not (tmp_path / "out/kernel/fair.c").exists()
    opened("debian:6.1", place, messages).write(["kernel/fair.c"], tmp_path / "out")
    assert (tmp_path / "out/kernel/fair.c").read_bytes() == whole
