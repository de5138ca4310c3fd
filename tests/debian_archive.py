"""A small signed Debian archive, which a server on this machine's loopback gives out, well or badly."""

from __future__ import annotations

import hashlib
import lzma
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest
from pysequoia import SignatureMode, Tsk, sign
from tests.loopback import Server, serving


def make_bzimage(release: str, padding: int = 4096) -> bytes:
    """The smallest file with the header of Documentation/arch/x86/boot.rst: 4 setup sectors, then ``padding``."""
    image = bytearray(5 * 512 + padding)
    image[0x1F1] = 4
    image[0x1FE:0x200] = b"\x55\xaa"
    image[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", image, 0x20E, 0x300 - 0x200)
    text = f"{release} (someone@example.org) #1 SMP".encode() + b"\0"
    image[0x300 : 0x300 + len(text)] = text
    return bytes(image)


@dataclass
class Archive:
    """Suites with packages. Call ``publish`` after adding some."""

    root: Path
    server: Server
    stanzas: dict[str, list[str]] = field(default_factory=dict)

    def add(
        self, suite: str, name: str, version: str, files: dict[str, bytes], depends: str = "", *, more: str = ""
    ) -> Path:
        """Build a package; gives the path of its file. ``more`` are lines for its description."""
        tree = self.root / "build" / f"{name}_{version}"
        for path, content in files.items():
            file = tree / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
            file.chmod(0o755)
        control = f"Package: {name}\nVersion: {version}\nArchitecture: amd64\nMaintainer: Someone <s@example.org>\n"
        control += f"Installed-Size: {sum(map(len, files.values())) // 1024 + 1}\nDescription: for a test\n"
        if depends:
            control += f"Depends: {depends}\n"
        control += more
        (tree / "DEBIAN").mkdir(parents=True)
        (tree / "DEBIAN/control").write_text(control)
        pool = self._base(suite) / "pool"
        pool.mkdir(parents=True, exist_ok=True)
        package = pool / f"{name}_{version.rpartition(':')[2]}_amd64.deb"
        subprocess.run(
            ["dpkg-deb", "--root-owner-group", "-Znone", "-b", tree, package], check=True, stdout=subprocess.DEVNULL
        )
        content = package.read_bytes()
        stanza = control + f"Filename: pool/{package.name}\nSize: {len(content)}\n"
        self.stanzas.setdefault(suite, []).append(stanza + f"SHA256: {hashlib.sha256(content).hexdigest()}\n")
        return package

    def add_kernel(self, suite: str, release: str, version: str, *, unsigned: bool = False) -> Path:
        """A kernel in one package, as Debian had them until 6.18."""
        files = {
            f"boot/vmlinuz-{release}": make_bzimage(release),
            f"boot/config-{release}": b"CONFIG_SMP=y\n",
            f"lib/modules/{release}/modules.builtin": b"kernel/fs/ext4/ext4.ko\n",
            f"lib/modules/{release}/kernel/drivers/block/zram.ko": b"a module",
        }
        return self.add(suite, f"linux-image-{release}" + ("-unsigned" if unsigned else ""), version, files)

    def publish(
        self, *, date: datetime | None = None, valid_until: datetime | None = None, signer: Tsk | None = None
    ) -> None:
        """Write signed lists of all suites, as of now unless a ``date`` is given."""
        date = date or datetime.now(UTC)
        for suite, stanzas in self.stanzas.items():
            dist = self.dist(suite)
            lists = dist / "main/binary-amd64"
            lists.mkdir(parents=True, exist_ok=True)
            plain = "\n".join(stanzas).encode()
            packed = lzma.compress(plain)
            (lists / "Packages.xz").write_bytes(packed)
            described = (
                f"Origin: Debian\nSuite: {suite}\nCodename: {suite}\nArchitectures: amd64\nComponents: main\n"
                f"Date: {date:%a, %d %b %Y %H:%M:%S} UTC\n"
            )
            if valid_until:
                described += f"Valid-Until: {valid_until:%a, %d %b %Y %H:%M:%S} UTC\n"
            described += "SHA256:\n"
            for name, content in (("Packages", plain), ("Packages.xz", packed)):
                described += f" {hashlib.sha256(content).hexdigest()} {len(content)} main/binary-amd64/{name}\n"
            (dist / "InRelease").write_bytes(signed(described, signer or archive_key()))

    def dist(self, suite: str) -> Path:
        return self._base(suite) / "dists" / suite

    def remove(self) -> None:
        """Stop the server, as if the network were gone."""
        self.server.stop()

    def _base(self, suite: str) -> Path:
        return self.root / ("debian-security" if suite.endswith("-security") else "debian")


@cache
def archive_key() -> Tsk:
    """The key that signs the archive of every test."""
    return Tsk.generate("Archive of a test <archive@example.org>")


def signed(text: str, key: Tsk) -> bytes:
    """``text`` with its signature around it, as in an InRelease."""
    return bytes(sign(key.signer(), text.encode(), mode=SignatureMode.CLEAR))


@contextmanager
def archive_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Archive]:
    """An archive that the settings name as the mirror, with its key; nothing of this machine's apt is used."""
    root = tmp_path / "mirror"
    root.mkdir()
    keys = tmp_path / "archive-keys.pgp"
    keys.write_bytes(bytes(archive_key().extract_certificate()))
    (tmp_path / "machine-apt.conf").write_text('Dir::Etc::parts "/dev/null";\nDir::Etc::main "/dev/null";\n')
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "machine-apt.conf"))
    monkeypatch.setenv("AJUSTE_MIRROR_KEYS", str(keys))
    with serving(root) as server:
        monkeypatch.setenv("AJUSTE_MIRROR", f"{server.url}/debian")
        monkeypatch.setenv("AJUSTE_SECURITY_MIRROR", f"{server.url}/debian-security")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        yield Archive(root, server)
