"""Package lists and files of a mirror that is good, gone, outdated or lies."""

from __future__ import annotations

import hashlib
import lzma
import os
import platform
import resource
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from debian.deb822 import Deb822
from packages.guest.tests.kernel.archive.test_deb import look
from pysequoia import Tsk
from tests.debian_archive import archive_key, signed
from tests.loopback import self_signed, serving

from ajuste.kernel.spec import kernel_sources
from ajuste.model.error import RunError
from ajuste.model.wording import Say
from ajuste_guest.kernel.archive.archive import Archive as Lists
from ajuste_guest.kernel.archive.archive import PackageGone
from ajuste_guest.kernel.archive.deb import unpack

if TYPE_CHECKING:
    from tests.debian_archive import Archive

DEBIAN = kernel_sources()["debian"]
NOW = datetime.now(UTC)


@pytest.fixture
def lists(archive: Archive, tmp_path: Path, say: Say) -> Lists:
    archive.add("bullseye", "hello", "1.0-1", {"usr/bin/hello": b"hello"}, depends="libc6")
    archive.add("bookworm", "hello", "2.0-1", {"usr/bin/hello": b"hello again"})
    archive.add("bullseye-security", "hello", "1.0-2", {"usr/bin/hello": b"hello, safely"})
    return Lists(tmp_path / "lists", DEBIAN, say)


def versions(lists: Lists) -> dict[str, tuple[str, ...]]:
    return {package.version: package.suites for package in lists.packages(["hello"])}


def test_the_packages_of_all_suites_are_found(lists: Lists, archive: Archive) -> None:
    archive.publish()
    lists.refresh()
    assert versions(lists) == {"1.0-1": ("bullseye",), "2.0-1": ("bookworm",), "1.0-2": ("bullseye-security",)}
    assert lists.names("hel") == ["hello"]
    assert lists.lacking(["sid"]).startswith("the lists of sid: ")
    assert lists.lacking(["bookworm", "bullseye", "bullseye-security"]) == ""


def test_a_version_that_two_suites_have_is_one(lists: Lists, archive: Archive) -> None:
    archive.stanzas["bookworm"] += archive.stanzas["bullseye"]
    archive.publish()
    lists.refresh()
    assert versions(lists)["1.0-1"] == ("bullseye", "bookworm")


def test_lists_are_fetched_once(lists: Lists, archive: Archive, messages: list[str]) -> None:
    for suite in lists.suites:
        archive.stanzas.setdefault(suite, [])
    archive.publish()
    lists.refresh()
    requests = len(archive.server.requests)
    assert requests == 2 * len(lists.suites)
    lists.refresh()
    versions(lists)
    assert len(archive.server.requests) == requests
    # How far a slow machine is follows after a colon.
    assert [message for message in messages if ":" not in message] == ["fetching package lists"]


def test_only_the_suites_that_are_needed_are_fetched(lists: Lists, archive: Archive) -> None:
    archive.publish()
    lists.refresh(["bullseye"])
    assert {path.split("/")[-2] for path in archive.server.paths() if path.endswith("InRelease")} == {"bullseye"}
    assert set(versions(lists)) == {"1.0-1"}
    archive.server.requests.clear()
    lists.refresh(["bullseye", "bookworm"])
    assert {path.split("/")[-2] for path in archive.server.paths() if path.endswith("InRelease")} == {"bookworm"}
    assert set(versions(lists)) == {"1.0-1", "2.0-1"}


def test_what_did_not_change_is_not_fetched_again(lists: Lists, archive: Archive) -> None:
    archive.publish()
    lists.refresh()
    file = lists.directory / "bookworm.sqlite"
    os.utime(file, (0, 0))
    archive.server.requests.clear()
    archive.publish()
    lists.refresh(force=True)
    assert [path for path in archive.server.paths() if "Packages" in path] == []
    assert file.stat().st_mtime > 0, "they are known to be the mirror's"


def test_another_mirror_is_asked_at_once(
    lists: Lists, archive: Archive, monkeypatch: pytest.MonkeyPatch, messages: list[str]
) -> None:
    archive.publish()
    lists.refresh()
    monkeypatch.setenv("AJUSTE_MIRROR", f"{archive.server.url}/other")
    lists.refresh()
    assert "/other/dists/bookworm/InRelease" in archive.server.paths()
    assert versions(lists), "what is signed stays, wherever it was from"


def test_files_are_found_by_their_hash(lists: Lists, archive: Archive) -> None:
    archive.publish()
    dist = archive.dist("bookworm")
    packed = dist / "main/binary-amd64/Packages.xz"
    by_hash = dist / "main/binary-amd64/by-hash/SHA256" / hashlib.sha256(packed.read_bytes()).hexdigest()
    by_hash.parent.mkdir(parents=True)
    packed.rename(by_hash)
    text = (dist / "InRelease").read_text().partition("\n\n")[2].partition("-----BEGIN")[0]
    (dist / "InRelease").write_bytes(signed("Acquire-By-Hash: yes\n" + text, archive_key()))
    lists.refresh()
    assert "2.0-1" in versions(lists)


def spoil_signature(archive: Archive) -> None:
    archive.publish(signer=Tsk.generate("Somebody else <else@example.org>"))


def spoil_lists(archive: Archive) -> None:
    """Change the lists as a mirror would that adds a package of its own: they differ from what was signed."""
    archive.publish()
    for file in archive.root.rglob("Packages.xz"):
        content = lzma.decompress(file.read_bytes()).replace(b"hello", b"jello")
        file.write_bytes(lzma.compress(content))


def cut_lists(archive: Archive) -> None:
    archive.publish()
    for file in archive.root.rglob("Packages.xz"):
        file.write_bytes(file.read_bytes()[:-20])


def expire(archive: Archive) -> None:
    archive.publish(date=NOW - timedelta(days=9), valid_until=NOW - timedelta(days=2))


def swap(archive: Archive) -> None:
    """Publish every suite as another one, with good signatures."""
    archive.publish()
    for file in archive.root.rglob("InRelease"):
        text = file.read_text().partition("\n\n")[2].partition("-----BEGIN")[0]
        file.write_bytes(signed(text.replace("name: ", "name: not-").replace("Suite: ", "Suite: not-"), archive_key()))


LIES: dict[str, tuple[Callable[[Archive], None], str]] = {
    "signature": (spoil_signature, "the list of bullseye is not signed by a key of the archive"),
    "lists": (spoil_lists, r"Packages\.xz (has \d+ (or more )?bytes|is not the listed file)"),
    "cut off": (cut_lists, r"Packages\.xz has \d+ bytes; expected \d+, as listed"),
    "expired": (expire, r"the lists of bullseye on the mirror expired on \d{4}-"),
    "another suite": (swap, "the suite not-bullseye in the place of bullseye"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_mirror_that_lies_gives_one_error_and_no_lists(lists: Lists, archive: Archive, lie: str) -> None:
    spoil, complaint = LIES[lie]
    spoil(archive)
    with pytest.raises(RunError, match=f"could not fetch any package list: .*{complaint}") as caught:
        lists.refresh()
    assert "AJUSTE_MIRROR" in (caught.value.hint or "")
    assert versions(lists) == {}
    assert [path.name for path in lists.directory.iterdir()] == ["lock"]


def test_a_suite_that_is_lacking_among_good_ones_says_why_to_the_next_command_too(
    lists: Lists, archive: Archive, tmp_path: Path, say: Say
) -> None:
    archive.publish()
    (lying,) = archive.root.rglob("bookworm/InRelease")
    lying.write_bytes(signed(lying.read_text(), Tsk.generate("Somebody else <else@example.org>")))
    lists.refresh()
    later = Lists(tmp_path / "lists", DEBIAN, say)
    later.refresh()
    assert set(versions(later)) == {"1.0-1", "1.0-2"}
    assert later.lacking(["bullseye"]) == ""
    assert later.lacking(["bullseye", "bookworm"]).startswith(
        "the lists of bookworm: the list of bookworm is not signed by a key of the archive"
    )


@pytest.mark.parametrize("lie", LIES)
def test_the_good_lists_that_are_here_stay(lists: Lists, archive: Archive, lie: str, messages: list[str]) -> None:
    archive.publish(date=NOW - timedelta(days=10))
    lists.refresh()
    before = versions(lists)
    archive.add("bullseye", "hello", "6.66-1", {"usr/bin/hello": b"evil"})
    LIES[lie][0](archive)
    lists.refresh(force=True)
    assert versions(lists) == before
    assert messages[-1].startswith("could not fetch all package lists: ")
    assert "; using those fetched on " in messages[-1]


def test_lists_do_not_become_older(lists: Lists, archive: Archive, messages: list[str]) -> None:
    """Well signed, but from before a correction."""
    archive.publish()
    lists.refresh()
    archive.stanzas["bookworm"] = [archive.stanzas["bookworm"][0].replace("2.0-1", "1.9-1")]
    archive.publish(date=NOW - timedelta(days=3))
    lists.refresh(force=True)
    assert "2.0-1" in versions(lists)
    assert "older than those already here" in messages[-1]


def test_without_a_network_the_older_lists_are_used(lists: Lists, archive: Archive, messages: list[str]) -> None:
    archive.publish()
    lists.refresh()
    before = NOW - timedelta(days=10)
    for file in lists.directory.glob("*.sqlite"):
        os.utime(file, (before.timestamp(), before.timestamp()))
    archive.remove()
    for _ in range(2):
        lists.refresh(force=True)
        assert "2.0-1" in versions(lists)
        assert "Connection refused" in messages[-1]
        assert messages[-1].endswith(f"; using those fetched on {before:%Y-%m-%d}")


def test_a_mirror_that_does_not_answer_is_asked_once(
    lists: Lists, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not for each of nine suites."""
    archive.publish()
    archive.server.breaks["/debian/dists/bullseye/InRelease"] = [10] * 3
    with pytest.raises(RunError, match="the mirror broke off after 30 bytes"):
        lists.refresh()
    assert len(archive.server.requests) == 3


def test_a_redirecting_mirror(lists: Lists, archive: Archive) -> None:
    archive.publish()
    base = archive.server.url
    archive.server.redirects["/debian/dists/bookworm/InRelease"] = f"{base}/debian/dists/bookworm/../bookworm/InRelease"
    lists.refresh()
    assert "2.0-1" in versions(lists)


def test_a_machine_without_certificates_is_told_which_package_has_them(
    lists: Lists, archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive.publish()
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: {"ID": "fedora"})
    with serving(archive.root, self_signed(tmp_path)) as secure:
        monkeypatch.setenv("AJUSTE_MIRROR", f"{secure.url}/debian")
        monkeypatch.setenv("AJUSTE_SECURITY_MIRROR", f"{secure.url}/debian-security")
        with pytest.raises(RunError, match="certificate verify failed") as caught:
            lists.refresh()
        assert "the certificates of the web (dnf install ca-certificates)" in (caught.value.hint or "")


def test_damaged_lists_are_one_error_and_then_fetched_again(lists: Lists, archive: Archive) -> None:
    archive.publish()
    lists.refresh()
    (lists.directory / "bookworm.sqlite").write_bytes(b"SQLite format 3\0" + b"\xff" * 8000)
    with pytest.raises(RunError, match="the package lists of bookworm are damaged on the disk") as caught:
        versions(lists)
    assert caught.value.hint == "run the command again to fetch them again"
    lists.refresh()
    assert "2.0-1" in versions(lists)


def test_lists_that_cannot_be_written_are_one_error_and_leave_nothing(lists: Lists, archive: Archive) -> None:
    archive.publish()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (6000, hard))
    try:
        with pytest.raises(RunError, match=f"cannot write the package lists of bullseye in {lists.directory}: "):
            lists.refresh()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [path.name for path in lists.directory.iterdir()] == ["lock"]


class TestDownload:
    """The files of packages."""

    @pytest.fixture
    def fetched(self, lists: Lists, archive: Archive) -> Lists:
        archive.publish()
        lists.refresh()
        return lists

    def test_a_file_is_what_the_lists_name(self, fetched: Lists, tmp_path: Path) -> None:
        (package,) = (p for p in fetched.packages(["hello"]) if p.version == "2.0-1")
        (file,) = fetched.download([package], tmp_path)
        assert hashlib.sha256(file.read_bytes()).hexdigest() == package.sha256
        unpack([file], tmp_path / "tree")
        assert (tmp_path / "tree/usr/bin/hello").read_bytes() == b"hello again"
        assert package.depends == ""

    @pytest.mark.parametrize("change", [lambda c: b"x" + c[1:], lambda c: c[:-1], lambda c: c + b"x", lambda c: b""])
    def test_another_one_is_not_kept(
        self, fetched: Lists, archive: Archive, tmp_path: Path, change: Callable[[bytes], bytes]
    ) -> None:
        for file in archive.root.rglob("pool/*.deb"):
            file.write_bytes(change(file.read_bytes()))
        with pytest.raises(PackageGone, match=r"hello 1\.0-1: .*hello_1\.0-1_amd64\.deb (has|is not the listed file)"):
            fetched.download(fetched.packages(["hello"])[:1], tmp_path)
        assert not list(tmp_path.glob("*.deb"))

    def test_a_file_that_only_one_of_two_suites_still_has(self, lists: Lists, archive: Archive, tmp_path: Path) -> None:
        archive.stanzas["bullseye"] += archive.stanzas["bullseye-security"]
        archive.publish()
        lists.refresh()
        (package,) = (p for p in lists.packages(["hello"]) if p.version == "1.0-2")
        assert package.suites == ("bullseye", "bullseye-security")
        assert lists.download([package], tmp_path)

    def test_one_that_breaks_off_for_good_is_a_failed_run(
        self, fetched: Lists, archive: Archive, tmp_path: Path
    ) -> None:
        archive.server.breaks["/debian/pool/hello_1.0-1_amd64.deb"] = [100] * 9
        with pytest.raises(RunError, match=r"could not download hello 1\.0-1: .* broke off") as caught:
            fetched.download(fetched.packages(["hello"])[:1], tmp_path)
        assert caught.value.hint


@pytest.mark.network
@pytest.mark.timeout(600)
@pytest.mark.slow
def test_a_real_package_is_what_apt_and_dpkg_make_of_it(tmp_path: Path, say: Say) -> None:
    """Debian's own hello of this machine's suite."""
    control = subprocess.run(["apt-cache", "show", "hello"], check=True, capture_output=True, text=True).stdout
    theirs = next(iter(Deb822.iter_paragraphs(control, use_apt_pkg=False)))
    lists = Lists(tmp_path / "lists", DEBIAN, say)
    lists.refresh()
    (ours,) = (p for p in lists.packages(["hello"]) if p.version == theirs["Version"])
    assert (ours.sha256, ours.size_bytes, ours.path) == (theirs["SHA256"], int(theirs["Size"]), theirs["Filename"])
    assert ours.depends == theirs["Depends"]
    for folder in ("theirs", "ours"):
        (tmp_path / folder).mkdir()
    subprocess.run(["apt-get", "download", f"hello={ours.version}"], check=True, cwd=tmp_path / "theirs")
    (file,) = lists.download([ours], tmp_path / "ours")
    (their_file,) = (tmp_path / "theirs").iterdir()
    assert file.read_bytes() == their_file.read_bytes()
    subprocess.run(["dpkg-deb", "-x", their_file, tmp_path / "their-tree"], check=True)
    unpack([file], tmp_path / "tree")
    assert look(tmp_path / "tree") == look(tmp_path / "their-tree")
