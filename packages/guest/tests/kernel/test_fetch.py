"""Fetching kernels, from a small archive on disk and (marked ``network``) from the machine's mirror."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ajuste.machine.home import Home
from ajuste.model.error import RequestError, RunError
from ajuste.model.wording import Say
from ajuste_guest.kernel.cache import cached_entries
from ajuste_guest.kernel.fetch import fetch_kernel, require_listed

if TYPE_CHECKING:
    from tests.debian_archive import Archive

Image = Callable[[str], bytes]


@pytest.fixture
def three_kernels(archive: Archive) -> dict[str, Path]:
    """5.10.9, 5.10.100 and an RT one: the newest by number is not the newest by letters."""
    files = {
        "5.10.9": archive.add_kernel("bullseye", "5.10.0-2-cloud-amd64", "5.10.9-1"),
        "5.10.100": archive.add_kernel("bullseye-security", "5.10.0-11-cloud-amd64", "5.10.100-1"),
        "rt": archive.add_kernel("bullseye", "5.10.0-2-rt-amd64", "5.10.9-1"),
    }
    archive.publish()
    return files


def test_a_series_is_its_newest_kernel(three_kernels: dict[str, Path], place: Home, bzimage: Image) -> None:
    image = fetch_kernel("debian:5.10", place)
    assert (image.spec, image.release) == ("debian:5.10", "5.10.0-11-cloud-amd64")
    assert image.package == "linux-image-5.10.0-11-cloud-amd64 5.10.100-1"
    assert image.vmlinuz.read_bytes() == bzimage("5.10.0-11-cloud-amd64")
    assert image.sha256 == hashlib.sha256(bzimage("5.10.0-11-cloud-amd64")).hexdigest()
    assert image.config is not None
    assert image.config.read_text() == "CONFIG_SMP=y\n"
    assert image.modules is not None
    assert image.modules.parts[-3:] == ("lib", "modules", "5.10.0-11-cloud-amd64")
    assert (image.modules / "kernel/drivers/block/zram.ko").read_bytes() == b"a module"


@pytest.mark.parametrize(
    ("spec", "release"),
    [
        ("debian:5", "5.10.0-11-cloud-amd64"),
        ("debian:5.10/rt", "5.10.0-2-rt-amd64"),
        ("debian:5.10.9", "5.10.0-2-cloud-amd64"),
        ("debian:5.10.9/rt", "5.10.0-2-rt-amd64"),
        ("debian:5.10.0-2-cloud-amd64", "5.10.0-2-cloud-amd64"),
    ],
)
def test_a_spec_names_its_kernel(three_kernels: dict[str, Path], place: Home, spec: str, release: str) -> None:
    assert fetch_kernel(spec, place).release == release


def test_what_is_cached_needs_no_mirror(three_kernels: dict[str, Path], place: Home, archive: Archive) -> None:
    first = fetch_kernel("debian:5.10", place)
    archive.remove()
    (place.cache / "lists").rename(place.cache / "gone")
    assert fetch_kernel("debian:5.10", place) == first
    assert fetch_kernel("debian:5.10.100", place).vmlinuz == first.vmlinuz
    assert [k.image.spec for k in cached_entries(place)] == ["debian:5.10.0-11-cloud-amd64"]


def test_a_kernel_that_recent_lists_do_not_have_is_refused_before_anything_is_fetched(
    three_kernels: dict[str, Path], place: Home, archive: Archive
) -> None:
    require_listed("debian:5.10.50", place)  # nothing was fetched, so nothing is known
    fetch_kernel("debian:5.10.9", place)
    archive.remove()
    with pytest.raises(RequestError, match=r"kernel debian:5\.10\.50 not found.*debian:5\.10\.100"):
        require_listed("debian:5.10.50", place)
    for known in ("debian:5.10", "debian:5.10.100", "debian:5.10/rt", "mine:own"):
        require_listed(known, place)


def test_a_moved_cache_still_works(three_kernels: dict[str, Path], place: Home, tmp_path: Path) -> None:
    fetch_kernel("debian:5.10", place)
    place.cache.rename(tmp_path / "moved")
    image = fetch_kernel("debian:5.10", Home(place.data, tmp_path / "moved", place.state))
    assert image.vmlinuz.is_relative_to(tmp_path / "moved")
    assert image.vmlinuz.is_file()


def test_a_series_stays_what_the_cache_has_until_refreshed(archive: Archive, place: Home) -> None:
    archive.add_kernel("bullseye", "5.10.0-2-cloud-amd64", "5.10.9-1")
    archive.publish()
    assert fetch_kernel("debian:5.10", place).release == "5.10.0-2-cloud-amd64"
    archive.add_kernel("bullseye", "5.10.0-3-cloud-amd64", "5.10.12-1")
    archive.publish()
    assert fetch_kernel("debian:5.10", place).release == "5.10.0-2-cloud-amd64"
    assert fetch_kernel("debian:5.10", place, refresh=True).release == "5.10.0-3-cloud-amd64"
    assert fetch_kernel("debian:5.10", place).release == "5.10.0-3-cloud-amd64"


def test_a_file_that_is_gone_gives_the_next_newest(
    three_kernels: dict[str, Path], place: Home, messages: list[str], say: Say
) -> None:
    three_kernels["5.10.100"].unlink()
    assert fetch_kernel("debian:5.10", place, say=say).release == "5.10.0-2-cloud-amd64"
    assert any("5.10.100-1 not found on the mirror" in text for text in messages)


def test_a_file_that_is_not_as_listed_gives_the_next_newest(three_kernels: dict[str, Path], place: Home) -> None:
    package = three_kernels["5.10.100"]
    content = bytearray(package.read_bytes())
    content[-1000] ^= 1
    package.write_bytes(content)
    assert fetch_kernel("debian:5.10", place).release == "5.10.0-2-cloud-amd64"


def test_an_unsigned_image_replaces_a_signed_one_that_is_gone(archive: Archive, place: Home) -> None:
    signed = archive.add_kernel("bullseye", "5.10.0-2-cloud-amd64", "5.10.9-1")
    archive.add_kernel("bullseye", "5.10.0-2-cloud-amd64", "5.10.9-1", unsigned=True)
    archive.publish()
    signed.unlink()
    image = fetch_kernel("debian:5.10", place)
    assert image.package == "linux-image-5.10.0-2-cloud-amd64-unsigned 5.10.9-1"


def test_no_file_at_all_is_a_failed_run_that_leaves_nothing(three_kernels: dict[str, Path], place: Home) -> None:
    three_kernels["rt"].unlink()
    with pytest.raises(RunError, match=r"could not download debian:5\.10/rt"):
        fetch_kernel("debian:5.10/rt", place)
    assert [p.name for p in place.kernels.iterdir()] == [".lock"]


def test_a_package_with_another_kernel_inside_is_refused(archive: Archive, place: Home, bzimage: Image) -> None:
    release = "5.10.0-2-cloud-amd64"
    files = {f"boot/vmlinuz-{release}": bzimage("5.10.0-1-cloud-amd64"), f"lib/modules/{release}/modules.order": b""}
    archive.add("bullseye", f"linux-image-{release}", "5.10.9-1", files)
    archive.publish()
    with pytest.raises(RunError, match=r"has kernel 5\.10\.0-1-cloud-amd64"):
        fetch_kernel("debian:5.10", place)
    assert cached_entries(place) == []


def test_image_modules_and_options_come_from_three_packages(archive: Archive, place: Home, bzimage: Image) -> None:
    release = "7.1.2+deb13-cloud-amd64"
    base = f"usr/lib/modules/{release}"
    archive.add("sid", f"linux-binary-{release}", "7.1.2-1", {f"{base}/vmlinuz": bzimage(release)})
    archive.add("sid", f"linux-modules-{release}", "7.1.2-1", {f"{base}/kernel/fs/nfs.ko": b"nfs"})
    archive.add("sid", f"linux-base-{release}", "7.1.2-1", {f"{base}/config": b"CONFIG_SMP=y\n"})
    newer = "7.1.3+deb13-cloud-amd64"
    archive.add("sid", f"linux-binary-{newer}", "7.1.3-1", {f"usr/lib/modules/{newer}/vmlinuz": bzimage(newer)})
    archive.publish()
    image = fetch_kernel("debian:7", place)
    assert image.release == release, "7.1.3 has no modules and cannot be used"
    assert image.config is not None
    assert image.modules is not None
    assert (image.modules / "kernel/fs/nfs.ko").is_file()
    assert not (image.modules / "vmlinuz").exists()


@pytest.mark.parametrize("damage", ["change", "truncate", "remove a module", "remove the record", "garble the record"])
def test_a_damaged_entry_is_fetched_again(
    three_kernels: dict[str, Path], place: Home, messages: list[str], say: Say, damage: str, bzimage: Image
) -> None:
    image = fetch_kernel("debian:5.10", place)
    assert image.modules is not None
    record = image.vmlinuz.with_name("kernel.json")
    match damage:
        case "change":
            content = bytearray(image.vmlinuz.read_bytes())
            content[-1] ^= 1
            image.vmlinuz.write_bytes(content)
        case "truncate":
            os.truncate(image.vmlinuz, 100)
        case "remove a module":
            (image.modules / "kernel/drivers/block/zram.ko").unlink()
        case "remove the record":
            record.unlink()
        case _:
            record.write_text(json.dumps({"release": 1}))
    again = fetch_kernel("debian:5.10", place, say=say)
    assert again == image
    assert again.vmlinuz.read_bytes() == bzimage(image.release)
    assert (image.modules / "kernel/drivers/block/zram.ko").is_file()
    assert any(text.startswith("downloading") for text in messages)
    assert sorted(p.name for p in place.kernels.iterdir()) == [".lock", image.vmlinuz.parent.name]


def test_what_a_killed_process_left_is_removed(three_kernels: dict[str, Path], place: Home) -> None:
    leftover = place.kernels / ".fetching-abc" / "tree"
    leftover.mkdir(parents=True)
    fetch_kernel("debian:5.10", place)
    assert not leftover.parent.exists()


def test_two_processes_fetch_it_once(three_kernels: dict[str, Path], place: Home, tmp_path: Path) -> None:
    program = (
        "from ajuste.machine.home import home; from ajuste_guest.kernel.fetch import fetch_kernel;"
        "print(fetch_kernel('debian:5.10', home(), say=print).release)"
    )
    environment = {**os.environ, "AJUSTE_HOME": str(tmp_path / "shared")}
    running = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(3)
    ]
    outputs = [process.communicate(timeout=120)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0, 0]
    assert all(output.splitlines()[-1] == "5.10.0-11-cloud-amd64" for output in outputs)
    assert sum(output.count("downloading") for output in outputs) == 1


def test_a_suite_that_the_mirror_lacks_is_named(three_kernels: dict[str, Path], place: Home) -> None:
    with pytest.raises(
        RequestError, match=r"kernel debian:6\.1 not found in .*; could not fetch the lists of bookworm, "
    ):
        fetch_kernel("debian:6.1", place)


def test_a_version_that_there_is_not_names_those_there_are(three_kernels: dict[str, Path], place: Home) -> None:
    with pytest.raises(RequestError, match=r"kernel debian:5\.10\.8 not found") as caught:
        fetch_kernel("debian:5.10.8", place)
    assert "debian:5.10.100, debian:5.10.9" in str(caught.value)


def test_no_mirror_and_no_cache_is_one_clear_failure(archive: Archive, place: Home) -> None:
    with pytest.raises(RunError, match="could not fetch any package list") as caught:
        fetch_kernel("debian:5.10", place)
    assert caught.value.hint is not None


def test_a_full_disk_is_noticed_before_anything_is_fetched(
    three_kernels: dict[str, Path], place: Home, messages: list[str], say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch_kernel("debian:5.10/rt", place)
    real = os.statvfs

    def nearly_full(path: str) -> os.statvfs_result:
        return os.statvfs_result([*real(path)[:4], 1, *real(path)[5:]])

    monkeypatch.setattr(os, "statvfs", nearly_full)
    with pytest.raises(
        RequestError, match=r"not enough disk space .*kernels has 0 MB free; expected at least \d+ MB"
    ) as caught:
        fetch_kernel("debian:5.10", place, say=say)
    assert caught.value.hint is not None
    assert "AJUSTE_HOME" in caught.value.hint
    assert messages == []


def test_a_home_that_is_no_directory_is_a_wrong_request(archive: Archive, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(RequestError, match="cannot store kernels in"):
        fetch_kernel("debian:5.10", Home(file, file / "cache", file))


def test_no_program_of_the_machine_is_needed(
    three_kernels: dict[str, Path], place: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither apt nor dpkg, nor any other."""
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert fetch_kernel("debian:5.10", place).release == "5.10.0-11-cloud-amd64"


class TestKernelFiles:
    def test_a_kernel_of_ones_own(
        self, tmp_path: Path, place: Home, monkeypatch: pytest.MonkeyPatch, bzimage: Image
    ) -> None:
        (tmp_path / "bzImage").write_bytes(bzimage("6.9.0-mine"))
        monkeypatch.chdir(tmp_path)
        image = fetch_kernel("path:bzImage", place)
        assert image.vmlinuz == tmp_path / "bzImage"
        assert (image.release, image.package, image.modules, image.config) == ("6.9.0-mine", "", None, None)
        assert str(image.version) == "6.9"

    @pytest.mark.parametrize("option", ["out", "out/lib/modules", "out/lib/modules/6.9.0-mine"])
    def test_its_modules(
        self, tmp_path: Path, place: Home, monkeypatch: pytest.MonkeyPatch, option: str, bzimage: Image
    ) -> None:
        (tmp_path / "bzImage").write_bytes(bzimage("6.9.0-mine"))
        modules = tmp_path / "out/lib/modules/6.9.0-mine"
        modules.mkdir(parents=True)
        monkeypatch.chdir(tmp_path)
        assert fetch_kernel(f"path:bzImage,modules={option}", place).modules == modules

    def test_modules_of_another_kernel_are_refused(self, tmp_path: Path, place: Home, bzimage: Image) -> None:
        (tmp_path / "bzImage").write_bytes(bzimage("6.9.0-mine"))
        (tmp_path / "out/lib/modules/6.8.0").mkdir(parents=True)
        with pytest.raises(RequestError, match=r"no modules of 6\.9\.0-mine"):
            fetch_kernel(f"path:{tmp_path}/bzImage,modules={tmp_path}/out", place)

    def test_no_file(self, tmp_path: Path, place: Home) -> None:
        with pytest.raises(RequestError, match=r"file .* not found"):
            fetch_kernel(f"path:{tmp_path}/bzImage", place)


@pytest.mark.network
@pytest.mark.timeout(600)
@pytest.mark.slow
def test_the_real_5_10_says_what_it_is(tmp_path: Path) -> None:
    """The header of the image agrees with the modules' own ``vermagic``."""
    image = fetch_kernel("debian:5.10", Home(tmp_path, tmp_path / "cache", tmp_path))
    header = image.vmlinuz.read_bytes()
    start = int.from_bytes(header[0x20E:0x210], "little") + 0x200
    assert header[start:].startswith(image.release.encode() + b" ")
    assert image.release.startswith("5.10.0-")
    assert image.release.endswith("-cloud-amd64")
    assert image.modules is not None
    module = next(image.modules.rglob("null_blk.ko"))
    assert f"vermagic={image.release} ".encode() in module.read_bytes()
    assert image.config is not None
    assert "CONFIG_FAIR_GROUP_SCHED=y" in image.config.read_text()


def test_a_kernel_to_be_built_is_not_fetched(place: Home) -> None:
    with pytest.raises(RequestError, match="names a kernel to build") as caught:
        fetch_kernel("build:debian:6.1+NUMA=n", place)
    assert "ajuste kernel build --source debian:6.1" in str(caught.value.hint)
    assert not place.kernels.exists()
