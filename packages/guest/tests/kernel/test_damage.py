"""Faults in what is kept: flipped bits, files that were cut off, and other things where files were. What comes of it is
what was kept, or one clear error; nobody waits, and nothing wrong is used.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ajuste.kernel.spec import kernel_sources
from ajuste.machine.home import Home
from ajuste.model.error import AjusteError, RequestError, RunError
from ajuste.model.kernel import KernelImage
from ajuste_guest.executor.module import modules_for
from ajuste_guest.kernel.cache import find_any_damage, read_entry, write_inventory, write_record
from ajuste_guest.kernel.fetch import fetch_kernel
from ajuste_guest.kernel.qemu import fetch_qemu
from spoilt import SPOILT, flip

if TYPE_CHECKING:
    from tests.debian_archive import Archive

RELEASE = "5.10.0-2-cloud-amd64"
MODULE = "kernel/drivers/block/zram.ko"


def states(directory: Path) -> dict[str, bytes]:
    return {str(file.relative_to(directory)): file.read_bytes() for file in directory.rglob("*") if file.is_file()}


@pytest.fixture
def kernel(archive: Archive, place: Home) -> KernelImage:
    archive.add_kernel("bullseye", RELEASE, "5.10.9-1")
    archive.publish()
    return fetch_kernel("debian:5.10", place)


@pytest.fixture
def entry(place: Home, bzimage: Callable[[str], bytes]) -> Path:
    """A kernel as it is kept when it was fetched."""
    directory = place.kernels / f"{RELEASE}_5.10.9-1"
    (directory / "lib/modules" / RELEASE / MODULE).parent.mkdir(parents=True)
    (directory / "lib/modules" / RELEASE / MODULE).write_bytes(b"a module")
    (directory / "lib/modules" / RELEASE / "modules.builtin").write_text("kernel/fs/ext4/ext4.ko\n")
    (directory / "vmlinuz").write_bytes(bzimage(RELEASE))
    (directory / "config").write_text("CONFIG_SMP=y\n")
    image = KernelImage(
        spec=f"debian:{RELEASE}",
        release=RELEASE,
        vmlinuz=Path("vmlinuz"),
        modules=Path("lib/modules") / RELEASE,
        config=Path("config"),
        package=f"linux-image-{RELEASE} 5.10.9-1",
        sha256="0" * 64,
    )
    write_record(directory, image)
    return directory


def is_whole(directory: Path) -> bool:
    stored = read_entry(directory)
    return stored is not None and stored.damage() is None


@pytest.mark.parametrize("how", SPOILT)
@pytest.mark.parametrize("name", ["vmlinuz", "config", "kernel.json", "files.json", "checksums.json"])
def test_a_kernel_that_is_not_what_was_fetched_is_not_whole(entry: Path, name: str, how: str) -> None:
    assert is_whole(entry)
    SPOILT[how](entry / name)
    assert not is_whole(entry)


def test_a_flipped_bit_anywhere_in_a_kernel_is_noticed(entry: Path) -> None:
    vmlinuz = entry / "vmlinuz"
    for position in [*range(0, vmlinuz.stat().st_size, 97), -1, -2]:
        flip(position)(vmlinuz)
        assert not is_whole(entry), f"byte {position}"
        flip(position)(vmlinuz)
        assert is_whole(entry)


@pytest.mark.parametrize(
    ("name", "how"),
    [("vmlinuz", "last bit"), ("kernel.json", "a FIFO"), ("config", "a directory"), ("checksums.json", "empty JSON")],
)
def test_it_is_fetched_again(kernel: KernelImage, place: Home, name: str, how: str) -> None:
    directory = kernel.vmlinuz.parent
    whole = states(directory)
    SPOILT[how](directory / name)
    assert fetch_kernel("debian:5.10", place) == kernel
    assert states(directory) == whole


def test_without_a_mirror_a_damaged_kernel_is_one_error_with_a_hint(
    kernel: KernelImage, place: Home, archive: Archive
) -> None:
    flip(2000)(kernel.vmlinuz)
    archive.remove()
    shutil.rmtree(place.cache / "lists")
    with pytest.raises(AjusteError) as caught:
        fetch_kernel("debian:5.10", place)
    assert caught.value.hint


@pytest.mark.parametrize("how", SPOILT)
def test_a_module_that_is_not_what_was_fetched_is_not_loaded(entry: Path, how: str) -> None:
    stored = read_entry(entry)
    assert stored is not None
    assert stored.image.modules is not None
    SPOILT[how](stored.image.modules / MODULE)
    with pytest.raises(AjusteError) as caught:
        modules_for(("zram",), stored.image)
    assert caught.value.hint == f"fetch it again: ajuste kernel fetch debian:{RELEASE}" or how == "gone"
    if how.endswith("bit"):
        assert f"zram.ko of debian:{RELEASE} is damaged on the disk" in caught.value.message


def test_modules_of_the_user_go_with_a_kernel_of_the_cache(entry: Path, tmp_path: Path) -> None:
    stored = read_entry(entry)
    assert stored is not None
    assert stored.image.modules is not None
    users = tmp_path / "modules"
    users.mkdir()
    shutil.copy(stored.image.modules / MODULE, users)
    image = stored.image.model_copy(update={"spec": f"path:{stored.image.vmlinuz},modules={users}", "modules": users})
    # It is read, without a checksum to compare it with; this one is none.
    with pytest.raises(RequestError, match=f"{users}.* is not a kernel module"):
        modules_for(("zram",), image)


def test_what_the_hint_says_repairs_a_module(kernel: KernelImage, place: Home) -> None:
    assert kernel.modules is not None
    flip(3)(kernel.modules / MODULE)
    assert fetch_kernel("debian:5.10", place, thoroughly=True) == kernel
    assert (kernel.modules / MODULE).read_bytes() == b"a module"


def test_a_list_of_what_is_built_in_that_changed_is_not_believed(entry: Path) -> None:
    stored = read_entry(entry)
    assert stored is not None
    assert stored.image.modules is not None
    flip(-5)(stored.image.modules / "modules.builtin")
    with pytest.raises(RunError, match=r"modules\.builtin of debian:\S+ is damaged"):
        modules_for(("zram",), stored.image)


def test_a_link_in_a_kernel_that_leads_elsewhere_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one")
    (tmp_path / "link").symlink_to("a")
    write_inventory(tmp_path)
    assert find_any_damage(tmp_path) is None
    (tmp_path / "b").write_text("one")
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("b")
    assert find_any_damage(tmp_path) == "link changed (its SHA-256 differs)"


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("firmware/linuxboot_dma.bin", "last bit"),
        ("qemu-system-x86_64", "a bit in the middle"),
        ("qemu.json", "a FIFO"),
        ("checksums.json", "a link to itself"),
    ],
)
def test_a_qemu_that_is_not_what_was_fetched_is_fetched_again(
    archive: Archive, place: Home, monkeypatch: pytest.MonkeyPatch, name: str, how: str
) -> None:
    monkeypatch.setattr("platform.freedesktop_os_release", lambda: {"VERSION_CODENAME": "bookworm"})
    program = b"#!/bin/sh\necho 'QEMU emulator version 10.0.2 (Debian 1)'\n"
    archive.add("bookworm-backports", "qemu-system-x86", "1:10.0.2-1", {"usr/bin/qemu-system-x86_64": program})
    for package, file in (("qemu-system-data", "qemu/linuxboot_dma.bin"), ("seabios", "seabios/bios-256k.bin")):
        archive.add("bookworm-backports", package, "1:10.0.2-1", {f"usr/share/{file}": b"firmware"})
    archive.publish()
    image = fetch_qemu(place)
    directory = image.binary.parent
    whole = states(directory)
    SPOILT[how](directory / name)
    assert fetch_qemu(place) == image
    assert states(directory) == whole


@pytest.fixture
def open_place() -> Iterator[Home]:
    """A home that others may enter."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Home(Path(name) / "data", Path(name) / "cache", Path(name) / "state")


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root, who can become somebody else")
def test_what_may_not_be_read_is_not_whole_and_no_traceback(open_place: Home, bzimage: Callable[[str], bytes]) -> None:
    directory = open_place.kernels / "6.1.0"
    directory.mkdir(parents=True)
    (directory / "vmlinuz").write_bytes(bzimage("6.1.0"))
    image = KernelImage(
        spec="debian:6.1", release="6.1.0", vmlinuz=Path("vmlinuz"), package="linux-image 6.1.0-1", sha256="0" * 64
    )
    write_record(directory, image)
    (directory / "vmlinuz").chmod(0)
    stored = read_entry(directory)
    assert stored is not None
    assert stored.damage() is None
    kernel_sources()  # Whatever it loads is root's.
    os.seteuid(65534)
    try:
        assert stored.damage() == "vmlinuz cannot be read: Permission denied"
        with pytest.raises(RequestError, match="cannot store kernels in") as caught:
            fetch_kernel("debian:6.1.0", open_place)
    finally:
        os.seteuid(0)
    assert caught.value.hint == "set AJUSTE_HOME to a directory you can write to"
