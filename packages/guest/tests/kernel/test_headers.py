"""Headers of a distribution's kernel and the modules built with them, from a small archive on disk."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ajuste.machine.home import Home
from ajuste.model.error import RequestError, RunError
from ajuste.model.kernel import KernelImage
from ajuste.model.wording import Say
from ajuste_guest.kernel.own_module import build_module, fetch_headers

if TYPE_CHECKING:
    from tests.debian_archive import Archive

RELEASE, VERSION = "5.10.0-11-cloud-amd64", "5.10.100-1"
COMMON = "linux-headers-5.10.0-11-common"
MODULE = "ajuste_linpack"

COMPILES = "modules:\n\t@echo object >> $(M)/log\n\t$(CC) -x c -c /dev/null -o $(M)/ajuste_linpack.ko\n"
FAILS = "modules:\n\t@echo 'solve.c:7:1: error: no such thing'; echo '      7 | thing'; false\n"


@pytest.fixture
def image(tmp_path: Path) -> KernelImage:
    return KernelImage(
        spec="debian:5.10",
        release=RELEASE,
        vmlinuz=tmp_path / "vmlinuz",
        package=f"linux-image-{RELEASE} {VERSION}",
        sha256="0" * 64,
    )


def publish(archive: Archive, makefile: str, common_version: str = VERSION) -> None:
    """Headers as Debian has them: a makefile that includes the common one by its absolute path."""
    suite = "bullseye-security"
    depends = f"{COMMON} (= {VERSION}), linux-kbuild-5.10 (>= {VERSION}), linux-compiler-gcc-10-x86"
    include = f"include /usr/src/{COMMON}/Makefile\n".encode()
    archive.add(
        suite, f"linux-headers-{RELEASE}", VERSION, {f"usr/src/linux-headers-{RELEASE}/Makefile": include}, depends
    )
    archive.add(suite, COMMON, common_version, {f"usr/src/{COMMON}/Makefile": makefile.encode()})
    archive.add(suite, "linux-kbuild-5.10", VERSION, {"usr/lib/linux-kbuild-5.10/scripts/fixdep": b"#!/bin/sh\n"})
    archive.publish()


def test_headers_come_with_what_they_need_and_are_found_without_a_network(
    archive: Archive, image: KernelImage, place: Home
) -> None:
    publish(archive, COMPILES)
    headers = fetch_headers(image, place)
    named = sorted(text.split(" ")[0] for text in headers.packages)
    assert named == [f"linux-headers-{RELEASE}", COMMON, "linux-kbuild-5.10"]
    included = (headers.directory / "Makefile").read_text().removeprefix("include ").strip()
    assert Path(included).read_text() == COMPILES
    assert Path(included).is_relative_to(place.cache)
    archive.remove()
    assert fetch_headers(image, place) == headers


def test_damaged_headers_are_fetched_again(archive: Archive, image: KernelImage, place: Home) -> None:
    publish(archive, COMPILES)
    makefile = fetch_headers(image, place).directory / "Makefile"
    makefile.write_text("")
    assert "include" in (fetch_headers(image, place).directory / "Makefile").read_text()
    assert makefile.read_text()


def test_a_part_of_another_build_will_not_do(archive: Archive, image: KernelImage, place: Home) -> None:
    publish(archive, COMPILES, common_version="5.10.99-1")
    with pytest.raises(RequestError, match=f"linux-headers-{RELEASE} {VERSION} not found") as caught:
        fetch_headers(image, place)
    assert "a newer kernel" in str(caught.value.hint)


@pytest.mark.parametrize("spec", ["mine:base", "path:/boot/vmlinuz"])
def test_only_a_distributions_kernel_has_headers(image: KernelImage, place: Home, spec: str) -> None:
    with pytest.raises(RequestError, match="requires a distribution's kernel"):
        fetch_headers(image.model_copy(update={"spec": spec, "package": ""}), place)


@pytest.mark.skipif(shutil.which("make") is None or shutil.which("gcc") is None, reason="no make and gcc here")
class TestModule:
    """A module that is built."""

    def test_it_is_built_once(
        self, archive: Archive, image: KernelImage, place: Home, say: Say, messages: list[str]
    ) -> None:
        publish(archive, COMPILES)
        module = build_module(MODULE, image, place, say)
        assert module.name == f"{MODULE}.ko"
        assert module.read_bytes().startswith(b"\x7fELF")
        assert build_module(MODULE, image, place, say) == module
        assert [text for text in messages if "building" in text] == [f"building the module {MODULE} for {RELEASE}"]

    def test_one_that_is_not_what_was_built_is_built_again(
        self, archive: Archive, image: KernelImage, place: Home, say: Say, messages: list[str]
    ) -> None:
        publish(archive, COMPILES)
        module = build_module(MODULE, image, place, say)
        whole = module.read_bytes()
        module.write_bytes(whole[:100] + bytes([whole[100] ^ 1]) + whole[101:])
        assert build_module(MODULE, image, place, say) == module
        assert module.read_bytes() == whole
        assert len([text for text in messages if "building" in text]) == 2

    def test_headers_that_changed_are_fetched_again_before_anything_is_built_with_them(
        self, archive: Archive, image: KernelImage, place: Home
    ) -> None:
        publish(archive, COMPILES)
        makefile = fetch_headers(image, place).directory / "Makefile"
        whole = makefile.read_bytes()
        makefile.write_bytes(whole[:-1] + b"#")
        build_module(MODULE, image, place)
        assert makefile.read_bytes() == whole

    def test_an_error_is_the_compilers_own(self, archive: Archive, image: KernelImage, place: Home) -> None:
        publish(archive, FAILS)
        with pytest.raises(RunError, match=r"does not build with linux-headers-\S+ \S+: solve.c:7:1: error: no such"):
            build_module(MODULE, image, place)
        assert not list(place.cache.glob("modules/*/*.ko"))

    def test_a_compiler_that_is_too_old_is_named(self, archive: Archive, image: KernelImage, place: Home) -> None:
        publish(archive, "modules:\n\t$(CC) -fno-such-alignment=16 -x c -c /dev/null -o $(M)/x.o\n")
        with pytest.raises(RunError, match="gcc: error: unrecognized command-line option") as caught:
            build_module(MODULE, image, place)
        assert "newer compiler than this machine's, gcc" in str(caught.value.hint)


def test_a_missing_compiler_is_named(
    image: KernelImage, place: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RequestError, match=f"{MODULE} requires gcc, ld, make, setpriv, strip") as caught:
        build_module(MODULE, image, place)
    assert "apt install binutils gcc make util-linux" in str(caught.value.hint)
