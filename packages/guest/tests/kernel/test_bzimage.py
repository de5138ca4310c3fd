"""The header of kernel images."""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ajuste.machine.home import home
from ajuste.model.error import RequestError
from ajuste_guest.kernel.cache import cached_entries
from ajuste_guest.kernel.candidate import read_release
from ajuste_guest.kernel.fetch import fetch_kernel

Image = Callable[[str], bytes]


def test_the_release_is_the_first_word_of_the_version(tmp_path: Path, bzimage: Image) -> None:
    (tmp_path / "bzImage").write_bytes(bzimage("6.12.94+deb13-cloud-amd64"))
    assert read_release(tmp_path / "bzImage") == "6.12.94+deb13-cloud-amd64"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it is empty"),
        (b"\x7fELF" + bytes(1000), "it is an ELF file"),
        (b"\x1f\x8b" + bytes(1000), "it is a gzip file"),
        (bytes(0x38) + b"ARM\x64" + bytes(1000), "it is a kernel for arm64"),
        (b"just text", '"HdrS" is missing'),
    ],
)
def test_other_files_are_told_apart(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(RequestError, match="is not an x86 kernel image") as caught:
        read_release(tmp_path / "file")
    assert message in caught.value.message


def test_a_directory_is_no_kernel(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="cannot read kernel"):
        read_release(tmp_path)


@pytest.mark.parametrize("pointer", [0, 4 * 512, 0xFFFF])
def test_a_version_pointer_outside_the_setup_code_is_refused(tmp_path: Path, bzimage: Image, pointer: int) -> None:
    image = bytearray(bzimage("6.1.0"))
    struct.pack_into("<H", image, 0x20E, pointer)
    (tmp_path / "bzImage").write_bytes(image)
    with pytest.raises(RequestError, match="has no version string"):
        read_release(tmp_path / "bzImage")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 2000), patch=st.binary(min_size=1, max_size=600), cut=st.integers(0, 6656))
def test_no_image_however_broken_crashes_it(tmp_path: Path, bzimage: Image, at: int, patch: bytes, cut: int) -> None:
    image = bytearray(bzimage("6.1.0"))
    image[at : at + len(patch)] = patch
    (tmp_path / "bzImage").write_bytes(image[:cut])
    try:
        release = read_release(tmp_path / "bzImage")
    except RequestError:
        return
    assert release[0].isdigit()
    assert "/" not in release


@pytest.mark.vm
@pytest.mark.skipif(shutil.which("file") is None, reason="file is not installed")
def test_cached_kernels_are_what_file_says_they_are() -> None:
    """file(1) reads the same header with code of its own."""
    fetch_kernel("debian:5.10", home())
    for image in [entry.image for entry in cached_entries(home())]:
        description = subprocess.run(["file", "-b", image.vmlinuz], capture_output=True, text=True, check=True).stdout
        assert f"version {read_release(image.vmlinuz)} (" in description
