"""A small Debian archive on disk, which this machine's apt is made to believe is its mirror."""

from __future__ import annotations

import hashlib
import struct
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest


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
    stanzas: dict[str, list[str]] = field(default_factory=dict)

    def add(self, suite: str, name: str, version: str, files: dict[str, bytes], depends: str = "") -> Path:
        """Build a package; gives the path of its file."""
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

    def publish(self) -> None:
        for suite, stanzas in self.stanzas.items():
            dist = self._base(suite) / "dists" / suite
            lists = dist / "main/binary-amd64"
            lists.mkdir(parents=True, exist_ok=True)
            content = "\n".join(stanzas).encode()
            (lists / "Packages").write_bytes(content)
            digest = hashlib.sha256(content).hexdigest()
            (dist / "Release").write_text(
                f"Origin: Debian\nSuite: {suite}\nCodename: {suite}\nArchitectures: amd64\nComponents: main\n"
                f"SHA256:\n {digest} {len(content)} main/binary-amd64/Packages\n"
            )

    def remove(self) -> None:
        """As if the network were gone."""
        self.root.rename(self.root.with_name("gone"))

    def _base(self, suite: str) -> Path:
        return self.root / ("debian-security" if suite.endswith("-security") else "debian")


def archive_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Archive:
    """An archive that this machine's apt is configured for (unsigned, so that has to be allowed)."""
    root = tmp_path / "mirror"
    root.mkdir()
    sources = tmp_path / "machine-sources.list"
    sources.write_text(
        f"deb copy:{root}/debian bullseye main\ndeb copy:{root}/debian-security bullseye-security main\n"
    )
    configuration = tmp_path / "machine-apt.conf"
    configuration.write_text(
        f'Dir::Etc::sourcelist "{sources}";\nDir::Etc::sourceparts "/dev/null";\n'
        'Acquire::AllowInsecureRepositories "true";\nAPT::Get::AllowUnauthenticated "true";\n'
    )
    monkeypatch.setenv("APT_CONFIG", str(configuration))
    return Archive(root)
