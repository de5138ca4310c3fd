"""Package files are unpacked as by dpkg-deb, and never beyond the directory that is given."""

from __future__ import annotations

import os
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.packed import ar, deb, entry

from ajuste.model.error import RunError
from ajuste_guest.kernel.archive.deb import unpack


def look(tree: Path) -> dict[str, tuple[str, int, bytes]]:
    """Return the kind, modification time and content of everything below ``tree``, by path."""
    entries = {}
    for path in sorted(tree.rglob("*")):
        status = path.lstat()
        name = str(path.relative_to(tree))
        if path.is_symlink():
            entries[name] = ("link", 0, os.fsencode(path.readlink()))
        elif path.is_dir():
            entries[name] = (f"directory {status.st_mode & 0o777:o}", int(status.st_mtime), b"")
        else:
            entries[name] = (f"file {status.st_mode & 0o777:o}", int(status.st_mtime), path.read_bytes())
    return entries


@pytest.mark.parametrize("compression", ["none", "gzip", "xz", "zstd"])
def test_the_same_as_by_dpkg_deb(tmp_path: Path, compression: str) -> None:
    tree = tmp_path / "build"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN/control").write_text(
        "Package: one\nVersion: 1\nArchitecture: amd64\nMaintainer: Someone <s@example.org>\nDescription: test\n"
    )
    (tree / "usr/lib/deep").mkdir(parents=True)
    (tree / "usr/lib/deep/file").write_bytes(os.urandom(300_000))
    (tree / "usr/lib/deep/empty").touch()
    (tree / "usr/lib/program").write_bytes(b"#!/bin/sh\n")
    (tree / "usr/lib/program").chmod(0o755)
    (tree / "usr/lib/hard").hardlink_to(tree / "usr/lib/deep/file")
    (tree / "usr/lib/ünusual name").write_text("text")
    (tree / f"usr/lib/{'long' * 40}").write_text("text")
    (tree / "usr/lib/relative").symlink_to("deep/file")
    (tree / "usr/lib/absolute").symlink_to("/usr/src/linux-headers")
    (tree / "usr/lib/nowhere").symlink_to("../../nowhere")
    os.utime(tree / "usr/lib", (1_500_000_000, 1_500_000_000))
    package = tmp_path / "one.deb"
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", f"-Z{compression}", "-b", tree, package], check=True, capture_output=True
    )
    subprocess.run(["dpkg-deb", "-x", package, tmp_path / "theirs"], check=True)
    unpack([package], tmp_path / "ours")
    assert look(tmp_path / "ours") == look(tmp_path / "theirs")


def test_modes_that_give_power_are_not_taken(tmp_path: Path) -> None:
    (tmp_path / "one.deb").write_bytes(deb(entry("./program", mode=0o6777), entry("./secret", mode=0)))
    unpack([tmp_path / "one.deb"], tmp_path / "tree")
    assert (tmp_path / "tree/program").stat().st_mode & 0o7777 == 0o755
    assert (tmp_path / "tree/secret").stat().st_mode & 0o7777 == 0o600


@pytest.mark.parametrize(
    "members",
    [
        [entry("../outside")],
        [entry("/outside")],
        [entry("./a/../../outside")],
        [entry("./a", tarfile.LNKTYPE, "../secret")],
        [entry("./a", tarfile.LNKTYPE, "/etc/hostname")],
        [entry("./a", tarfile.LNKTYPE, "missing")],
        [entry("./a", tarfile.CHRTYPE)],
        [entry("./a", tarfile.FIFOTYPE)],
    ],
)
def test_names_that_lead_out_and_special_files_are_refused(tmp_path: Path, members: list[tarfile.TarInfo]) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "secret").write_text("secret")
    (inside / "one.deb").write_bytes(deb(*members))
    with pytest.raises(RunError, match=r"could not extract one\.deb: "):
        unpack([inside / "one.deb"], inside / "tree")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["inside", "secret"]
    assert [*(inside / "tree").iterdir()] == []


@pytest.mark.parametrize("target", ["..", "../outside", "/", "{outside}"])
def test_no_file_is_written_through_a_link(tmp_path: Path, target: str) -> None:
    """Neither within a package nor from one to the next."""
    outside = tmp_path / "outside"
    outside.mkdir()
    link = entry("./way", tarfile.SYMTYPE, target.format(outside=outside))
    (tmp_path / "one.deb").write_bytes(deb(link, entry("./way/evil"), content=b"evil"))
    (tmp_path / "two.deb").write_bytes(deb(entry("./way/evil2"), content=b"evil"))
    unpack([tmp_path / "one.deb", tmp_path / "two.deb"], tmp_path / "tree")
    assert [*outside.iterdir()] == []
    assert not list(tmp_path.glob("evil*"))
    assert (tmp_path / "tree/way").is_dir()
    assert not (tmp_path / "tree/way").is_symlink()


def test_a_file_in_the_place_of_a_link_or_a_link_in_the_place_of_a_file_is_the_last_one(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("untouched")
    link = entry("./a", tarfile.SYMTYPE, str(tmp_path / "target"))
    (tmp_path / "one.deb").write_bytes(deb(link, entry("./a")))
    unpack([tmp_path / "one.deb"], tmp_path / "tree")
    assert (tmp_path / "target").read_text() == "untouched"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda _: b"",
        lambda _: b"no package",
        lambda c: c[:100],
        lambda c: c[:-600],
        lambda c: c.replace(b"4         `", b"-60       `", 1),
        lambda _: ar({"debian-binary": b"2.0\n"}),
        lambda _: ar({"debian-binary": b"2.0\n", "data.tar.br": b"?"}),
        lambda _: ar({"debian-binary": b"2.0\n", "data.tar.xz": b"not packed"}),
        lambda _: ar({"debian-binary": b"2.0\n", "data.tar.gz": b"not packed"}),
        lambda _: ar({"debian-binary": b"2.0\n", "data.tar.zst": b"not packed"}),
        lambda _: ar({"debian-binary": b"2.0\n", "data.tar": b"not a tar" * 200}),
        lambda _: deb(entry("./a"), entry("./a/b")),
        lambda _: deb(entry("./a", tarfile.DIRTYPE), entry("./a")),
        lambda _: deb(entry("./" + "a" * 300)),
    ],
)
def test_what_is_no_package_is_one_error(tmp_path: Path, spoil: Callable[[bytes], bytes]) -> None:
    (tmp_path / "one.deb").write_bytes(spoil(deb(entry("./a"), entry("./b"))))
    with pytest.raises(RunError, match=r"could not extract one\.deb: \S"):
        unpack([tmp_path / "one.deb"], tmp_path / "tree")
