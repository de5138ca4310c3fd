"""Package lists, as they are unpacked, read and found again."""

from __future__ import annotations

import gzip
import hashlib
import lzma
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from debian.deb822 import Deb822
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ajuste_guest.kernel.archive.download import (
    Differs,
    Listed,
    ListedFile,
    find_names,
    find_packages,
    read_listed,
    read_packages,
    unpack_list,
    write_list,
)

SHA256 = "0123456789abcdef" * 4
STANZA = f"""\
Package: linux-image-6.1.0-9-amd64
Source: linux-signed-amd64 (6.1.27+1)
Version: 6.1.27-1
Installed-Size: 400
Maintainer: Debian Kernel Team <debian-kernel@lists.debian.org>
Architecture: amd64
Depends: kmod, linux-base (>= 4.3~),
 initramfs-tools (>= 0.120+deb8u2) | linux-initramfs-tool
Pre-Depends: libc6
Description: Linux 6.1 for 64-bit PCs (signed)
Size: 69000
SHA256: {SHA256}
Filename: pool/main/l/linux-signed-amd64/linux-image-6.1.0-9-amd64_6.1.27-1_amd64.deb
"""
LISTED = Listed(date=datetime(2026, 1, 1, tzinfo=UTC), sha256="0" * 64)


def test_what_is_said_of_a_package() -> None:
    (package,) = read_packages(STANZA)
    assert str(package) == "linux-image-6.1.0-9-amd64 6.1.27-1"
    assert (package.size_bytes, package.installed_bytes, package.sha256) == (69_000, 400 * 1024, SHA256)
    assert package.depends == (
        "libc6, kmod, linux-base (>= 4.3~), initramfs-tools (>= 0.120+deb8u2) | linux-initramfs-tool"
    )
    assert package.path == "pool/main/l/linux-signed-amd64/linux-image-6.1.0-9-amd64_6.1.27-1_amd64.deb"


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("Package: linux-image-6.1.0-9-amd64", "Package: ../../etc/cron.d/evil"),
        ("Package: linux-image-6.1.0-9-amd64", "Package:"),
        ("Version: 6.1.27-1", "Version: 1/../../1"),
        ("Version: 6.1.27-1\n", ""),
        ("Size: 69000", "Size: -1"),
        ("Size: 69000", "Size: 99999999999999999999"),
        ("Installed-Size: 400", "Installed-Size: much"),
        (SHA256, "0123"),
        (SHA256, "x" * 64),
    ],
)
def test_one_whose_name_version_size_or_checksum_is_none_is_left_out(line: str, instead: str) -> None:
    assert line in STANZA
    other = STANZA.replace("6.1.0-9", "6.1.0-10")
    assert [p.name for p in read_packages(STANZA.replace(line, instead, 1) + "\n" + other)] == [
        "linux-image-6.1.0-10-amd64"
    ]


NAMES = st.from_regex(r"[a-z0-9][a-z0-9+.-]{0,10}", fullmatch=True)
VALUES = st.text(st.characters(codec="ascii", categories=["L", "N", "P", "S", "Zs"]), max_size=30)
FOLDED = st.lists(VALUES.filter(str.strip), min_size=1, max_size=3).map("\n ".join)
FIELDS = st.fixed_dictionaries(
    {
        "Package": NAMES,
        "Version": st.from_regex(r"[0-9][0-9a-z.+~-]{0,10}", fullmatch=True),
        "Size": st.integers(0, 10**13).map(str),
        "SHA256": st.just(SHA256),
    },
    optional={
        "Installed-Size": st.integers(0, 10**9).map(str),
        "Depends": FOLDED,
        "Pre-Depends": FOLDED,
        "Filename": NAMES,
        "Description": FOLDED,
        "Package-Type": NAMES,
        "Tag": FOLDED,
    },
)


@settings(max_examples=200)
@given(st.lists(FIELDS, max_size=4), st.booleans())
def test_fields_are_read_as_by_python_debian(stanzas: list[dict[str, str]], upper: bool) -> None:
    text = "\n".join(
        "".join(f"{name.upper() if upper else name}: {value}\n" for name, value in fields.items()) for fields in stanzas
    )
    expected = []
    for stanza in Deb822.iter_paragraphs(text, use_apt_pkg=False):
        depends = [
            " ".join(stanza[name].split()) for name in ("Pre-Depends", "Depends") if stanza.get(name, "").strip()
        ]
        expected.append(
            (
                stanza["Package"],
                stanza["Version"],
                int(stanza["Size"]),
                1024 * int(stanza.get("Installed-Size", "0")),
                ", ".join(filter(None, depends)),
                stanza.get("Filename", ""),
            )
        )
    packages = [(p.name, p.version, p.size_bytes, p.installed_bytes, p.depends, p.path) for p in read_packages(text)]
    assert packages == expected


@settings(max_examples=200)
@given(st.text(max_size=300))
@example("Package: a\n" * 100)
@example("\n \n\t\n" * 50)
def test_any_text_is_read(text: str) -> None:
    assert len(list(read_packages(text + "\n\n" + STANZA + "\n\n" + text))) >= 1


def test_lists_are_found_again_by_name(tmp_path: Path) -> None:
    file = tmp_path / "bookworm.sqlite"
    newer = STANZA.replace("6.1.27-1", "6.1.28-1")
    write_list(file, LISTED, read_packages(f"{STANZA}\n{newer}\n{STANZA.replace('linux-', 'gnumach-')}"))
    assert read_listed(file) == LISTED
    assert find_names(file, "linux-") == {"linux-image-6.1.0-9-amd64"}
    assert find_names(file, "") == {"linux-image-6.1.0-9-amd64", "gnumach-image-6.1.0-9-amd64"}
    packages = find_packages(file, ["linux-image-6.1.0-9-amd64", "nothing"], "bookworm")
    assert [(p.version, p.suites) for p in packages] == [("6.1.27-1", ("bookworm",)), ("6.1.28-1", ("bookworm",))]
    assert [p.name for p in tmp_path.iterdir()] == ["bookworm.sqlite"]


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + bytes(4000)])
def test_a_damaged_file_is_no_list(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "sid.sqlite").write_bytes(content)
    assert read_listed(tmp_path / "sid.sqlite") is None
    assert read_listed(tmp_path / "gone.sqlite") is None


FORMS: dict[str, Callable[[bytes], bytes]] = {".xz": lzma.compress, ".gz": gzip.compress, "": bytes}


def expected(content: bytes) -> ListedFile:
    return ListedFile(len(content), hashlib.sha256(content).hexdigest())


@pytest.mark.parametrize("ending", FORMS)
def test_every_form_unpacks_to_what_is_signed(tmp_path: Path, ending: str) -> None:
    file = tmp_path / "packed"
    file.write_bytes(FORMS[ending](STANZA.encode()))
    assert unpack_list(file, ending, expected(STANZA.encode())) == STANZA
    with pytest.raises(Differs, match="unpack to something else"):
        unpack_list(file, ending, expected(STANZA.encode()[:-1]))
    with pytest.raises(Differs, match="unpack to something else"):
        unpack_list(file, ending, expected(STANZA.encode() + b"\n"))


@pytest.mark.parametrize("ending", [".xz", ".gz"])
@pytest.mark.parametrize(
    "spoil", [lambda c: c[:-10], lambda c: b"nothing packed", lambda c: c[:30] + bytes(30) + c[60:]]
)
def test_a_damaged_form_is_refused(tmp_path: Path, ending: str, spoil: Callable[[bytes], bytes]) -> None:
    (tmp_path / "packed").write_bytes(spoil(FORMS[ending](STANZA.encode())))
    with pytest.raises(Differs, match="package lists"):
        unpack_list(tmp_path / "packed", ending, expected(STANZA.encode()))


def test_no_more_is_unpacked_than_is_listed(tmp_path: Path) -> None:
    """Twenty megabytes of zeros, of which a few bytes are wanted."""
    (tmp_path / "packed").write_bytes(lzma.compress(bytes(20_000_000)))
    with pytest.raises(Differs, match="unpack to something else"):
        unpack_list(tmp_path / "packed", ".xz", expected(bytes(10)))
