"""Signed descriptions of suites: only what a known key signed is read, whatever the mirror sends."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pysequoia import Tsk
from tests.debian_archive import archive_key, signed

from ajuste.kernel.spec import kernel_sources
from ajuste.model.error import RequestError
from ajuste_guest.kernel.archive.download import RejectedRelease, Release, read_keys, read_release, require_valid

DEBIAN = kernel_sources()["debian"]
A, B = "a" * 64, "b" * 64
TEXT = f"""\
Origin: Debian
Suite: oldstable
Codename: bookworm
Date: Sat, 11 Jul 2026 10:16:37 UTC
Valid-Until: Sat, 18 Jul 2026 10:16:37 UTC
Acquire-By-Hash: yes
MD5Sum:
 0123456789abcdef0123456789abcdef 5000 main/binary-amd64/Packages
SHA256:
 {A} 5000 main/binary-amd64/Packages
 {B} 1000 main/binary-amd64/Packages.xz
 {B} 1000 contrib/binary-amd64/Packages.xz
"""
KEYS = [archive_key().extract_certificate()]


def read(content: bytes, suite: str = "bookworm") -> Release:
    return read_release(content, suite, KEYS)


def test_what_a_suite_says_of_itself() -> None:
    release = read(signed(TEXT, archive_key()))
    assert release.date == datetime(2026, 7, 11, 10, 16, 37, tzinfo=UTC)
    assert release.valid_until == datetime(2026, 7, 18, 10, 16, 37, tzinfo=UTC)
    assert (release.plain.size_bytes, release.plain.sha256) == (5000, A)
    assert list(release.lists) == [".xz", ""]
    assert release.path(".xz") == f"main/binary-amd64/by-hash/SHA256/{B}"


def test_a_mirror_that_has_no_files_by_their_hash() -> None:
    release = read(signed(TEXT.replace("Acquire-By-Hash: yes\n", ""), archive_key()))
    assert release.path(".xz") == "main/binary-amd64/Packages.xz"


def test_a_suite_has_two_names() -> None:
    assert read(signed(TEXT, archive_key()), "oldstable") == read(signed(TEXT, archive_key()), "bookworm")


def test_another_suite_than_was_asked_for_is_refused() -> None:
    with pytest.raises(RejectedRelease, match="the suite bookworm in the place of trixie"):
        read(signed(TEXT, archive_key()), "trixie")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        TEXT.encode(),
        b"\0\xff" * 1000,
        signed(TEXT, Tsk.generate("Somebody else <else@example.org>")),
        signed(TEXT, archive_key()).replace(A.encode(), B.encode()),
        signed(TEXT, archive_key()).replace(b"-----BEGIN PGP SIGNATURE-----", b"-----BEGIN PGP MESSAGE-----"),
        signed(TEXT, archive_key())[:-200],
        signed(TEXT, archive_key())[:500],
    ],
    ids=["empty", "unsigned", "garbage", "another key", "changed", "no signature", "cut off", "cut off early"],
)
def test_what_no_known_key_signed_is_refused(content: bytes) -> None:
    with pytest.raises(RejectedRelease, match="the list of bookworm is not signed by a key of the archive: "):
        read(content)


def test_of_what_stands_around_the_signed_text_nothing_is_read() -> None:
    whole = signed(TEXT, archive_key())
    evil = TEXT.replace(A, "c" * 64).encode()
    for content in (evil + whole, whole + evil, evil + whole + evil):
        assert read(content) == read(whole)


def test_a_signature_by_an_unknown_key_beside_a_known_one_does_no_harm(tmp_path: Path) -> None:
    """Sign as Debian does, by the keys of two releases; with gpg, another program than the one that reads it."""
    home = tmp_path / "g"
    home.mkdir(mode=0o700)
    gpg = ["gpg", "--homedir", str(home), "--batch", "--quiet", "--passphrase", "", "--pinentry-mode", "loopback"]
    try:
        for name in ("first", "second"):
            subprocess.run([*gpg, "--quick-generate-key", f"{name}@example.org", "ed25519"], check=True)
        subprocess.run([*gpg, "--export", "--output", tmp_path / "first.pgp", "first@example.org"], check=True)
        (tmp_path / "text").write_text(TEXT)
        by = ["--local-user", "first@example.org", "--local-user", "second@example.org"]
        subprocess.run([*gpg, *by, "--output", tmp_path / "InRelease", "--clearsign", tmp_path / "text"], check=True)
    finally:
        subprocess.run(["gpgconf", "--homedir", home, "--kill", "gpg-agent"], check=False)
    keys = read_keys(DEBIAN.keyring, (), str(tmp_path / "first.pgp"))
    content = (tmp_path / "InRelease").read_bytes()
    assert read_release(content, "bookworm", keys).plain.sha256 == A
    with pytest.raises(RejectedRelease, match="not signed by a key of the archive"):
        read_release(content, "bookworm", read_keys(DEBIAN.keyring, ()))


@pytest.mark.parametrize(
    ("replaced", "by"),
    [
        ("SHA256:", "SHA512:"),
        ("Date: Sat, 11 Jul 2026 10:16:37 UTC\n", ""),
        ("Date: Sat", "Date: once upon a time"),
        (f" {A} 5000 ", f" {A} many "),
        (f" {A} 5000 main/binary-amd64/Packages\n", ""),
        (f" {A} 5000 main/binary-amd64/Packages\n", " alone\n"),
    ],
)
def test_a_signed_text_that_is_no_description_is_refused(replaced: str, by: str) -> None:
    assert replaced in TEXT
    with pytest.raises(RejectedRelease, match="the description of bookworm is not as expected"):
        read(signed(TEXT.replace(replaced, by), archive_key()))


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=200))
def test_whatever_is_signed_is_read_or_refused(text: str) -> None:
    with suppress(RejectedRelease):
        assert read(signed(TEXT + text, archive_key())).plain.sha256


WHOLE = signed(TEXT, archive_key())


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(WHOLE) - 1), st.binary(max_size=3))
def test_a_change_anywhere_is_refused_or_says_nothing_else(position: int, instead: bytes) -> None:
    with suppress(RejectedRelease):
        assert read(WHOLE[:position] + instead + WHOLE[position + 1 :]) == read(WHOLE)


def test_a_suite_expires() -> None:
    release = read(signed(TEXT, archive_key()))
    until = datetime(2026, 7, 18, 10, 16, 37, tzinfo=UTC)
    require_valid(release, "bookworm", until)
    with pytest.raises(RejectedRelease, match="the lists of bookworm on the mirror expired on 2026-07-18"):
        require_valid(release, "bookworm", until + timedelta(seconds=1))
    require_valid(
        read(signed(TEXT.replace("Valid-Until", "Valid-From"), archive_key())), "bookworm", until + timedelta(days=9)
    )


def test_the_keys_that_ajuste_has_are_debians_of_three_releases() -> None:
    """The fingerprints are those of https://ftp-master.debian.org/keys.html."""
    keys = {key.fingerprint for key in read_keys(DEBIAN.keyring, ())}
    assert {
        "1f89983e0081fde018f3cc9673a4f27b8dd47936",
        "b8b80b5b623eab6ad8775c45b7c5d7d6350947f8",
        "04b54c3cdca79751b16bc6b5225629df75b188bd",
    } <= keys


def test_keys_that_cannot_be_read_are_a_wrong_request(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("no keys")
    for file in (tmp_path / "keys", tmp_path / "gone"):
        with pytest.raises(RequestError, match=f"cannot read the keys of the mirror in {file}: ") as caught:
            read_keys(DEBIAN.keyring, (), str(file))
        assert "AJUSTE_MIRROR_KEYS" in (caught.value.hint or "")
