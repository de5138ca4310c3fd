"""A Debian of its own for the emulated machine: systemd, GRUB on a virtio disk, two kernels, and this tree's Ajuste.

By debootstrap (as root) from the Debian mirror, without loop devices: the file system is made from a directory, and
GRUB installs itself when the machine boots for the first time.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
MIRROR: Final = "http://deb.debian.org/debian"
SECURITY: Final = "http://deb.debian.org/debian-security"
SIZE_MIB: Final = 1500
_RESULTS_MIB: Final = 64
_SECTOR: Final = 2048
_PACKAGES: Final = (
    *("systemd", "systemd-sysv", "udev", "dbus", "kmod", "python3", "grub-pc-bin", "grub2-common", "e2fsprogs"),
    *("initramfs-tools", "zstd", "procps", "util-linux", "ca-certificates"),
)
_KERNELS: Final = ("linux-image-cloud-amd64/bookworm", "linux-image-cloud-amd64/bookworm-backports")
_MASKED: Final = (
    *("apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "fstrim.timer"),
    *("e2scrub_reap.service", "systemd-timesyncd.service", "getty@tty1.service", "serial-getty@ttyS0.service"),
)

_CX16: Final = 141
"""X86_FEATURE_CX16: after cmpxchg16b the emulator of QEMU 7.2 has wrong flags, and Linux 6.12.95 panics. Programs may
still see it in the CPU, which NumPy requires.
"""

_FILES: Final = {
    "etc/hostname": "emulated\n",
    "etc/fstab": "/dev/vda1 / ext4 defaults 0 1\n",
    "etc/apt/sources.list": (
        f"deb {MIRROR} bookworm main\ndeb {MIRROR} bookworm-backports main\ndeb {SECURITY} bookworm-security main\n"
    ),
    "etc/default/grub": (
        'GRUB_DEFAULT=0\nGRUB_TIMEOUT=0\nGRUB_DISTRIBUTOR=Debian\nGRUB_CMDLINE_LINUX_DEFAULT="quiet"\n'
        f'GRUB_CMDLINE_LINUX="console=ttyS0 clearcpuid={_CX16}"\nGRUB_TERMINAL=serial\n'
        'GRUB_SERIAL_COMMAND="serial --unit=0 --speed=115200"\nGRUB_DISABLE_OS_PROBER=true\n'
    ),
    "etc/initramfs-tools/modules": "virtio_pci\nvirtio_blk\next4\n",
    "etc/initramfs-tools/conf.d/small": "MODULES=list\nBUSYBOX=n\nCOMPRESS=zstd\nCOMPRESSLEVEL=1\nFSTYPE=ext4\n",
    "usr/local/bin/ajuste": (
        '#!/usr/bin/python3\nimport sys\n\nsys.path.insert(0, "/opt/ajuste")\n'
        "from ajuste.cli.main import main\n\nmain()\n"
    ),
    "opt/emulated/install": (
        "#!/bin/sh\nexport PATH=/usr/sbin:/usr/bin:/sbin:/bin\nmount -o remount,rw /\nmount -t proc proc /proc\n"
        "grub-install /dev/vda && update-grub && grub-editenv /boot/grub/grubenv create && echo GRUB IS THERE\n"
        "sync; mount -o remount,ro /; sync; echo o > /proc/sysrq-trigger; sleep 100\n"
    ),
    "opt/emulated/go": Path(__file__).with_name("go.sh").read_text(),
    "etc/systemd/system/emulated.service": (
        "[Unit]\nDescription=What the emulated machine is for\nAfter=network.target\n\n[Service]\nType=exec\n"
        "ExecStart=/opt/emulated/go\nStandardOutput=tty\nStandardError=tty\nTTYPath=/dev/ttyS0\n"
        "Environment=HOME=/root AJUSTE_HOME=/var/lib/ajuste\n\n[Install]\nWantedBy=multi-user.target\n"
    ),
}
_PROGRAMS: Final = ("usr/local/bin/ajuste", "opt/emulated/install", "opt/emulated/go")


def image(cache: Path) -> Path:
    """The disk of a machine with this tree's Ajuste. The Debian of it is made once and kept in ``cache``."""
    tree = cache / "debian"
    if not (cache / "debian.complete").exists():
        _debootstrap(tree)
        (cache / "debian.complete").touch()
    _write_files(tree)
    _install_ajuste(tree)
    disk = cache / "machine.qcow2"
    _make_disk(tree, disk)
    _install_grub(tree, disk)
    return disk


def _debootstrap(tree: Path) -> None:
    if os.geteuid() != 0:
        raise SystemExit("debootstrap requires root")
    shutil.rmtree(tree, ignore_errors=True)
    tree.parent.mkdir(parents=True, exist_ok=True)
    run("debootstrap", "--variant=minbase", f"--include={','.join(_PACKAGES)}", "bookworm", str(tree), MIRROR)
    _write_files(tree)
    policy = tree / "usr/sbin/policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    run("mount", "-t", "proc", "proc", str(tree / "proc"))
    try:
        chroot = ("chroot", str(tree), "env", "DEBIAN_FRONTEND=noninteractive")
        run(*chroot, "apt-get", "update", "-qq")
        for kernel in _KERNELS:
            run(*chroot, "apt-get", "install", "-y", "-qq", "--no-install-recommends", kernel)
        run(*chroot, "apt-get", "clean")
    finally:
        run("umount", str(tree / "proc"))
    policy.unlink()
    for place in ("usr/share/doc", "usr/share/locale", "usr/share/man", "var/lib/apt/lists"):
        shutil.rmtree(tree / place, ignore_errors=True)


def _write_files(tree: Path) -> None:
    for place, text in _FILES.items():
        (tree / place).parent.mkdir(parents=True, exist_ok=True)
        (tree / place).write_text(text)
    for place in _PROGRAMS:
        (tree / place).chmod(0o755)
    units = tree / "etc/systemd/system"
    for name in _MASKED:
        (units / name).unlink(missing_ok=True)
        (units / name).symlink_to("/dev/null")
    link = units / "multi-user.target.wants/emulated.service"
    link.parent.mkdir(exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to("../emulated.service")


def _install_ajuste(tree: Path) -> None:
    """The wheel of this tree that `make dist` builds, with bytecode: loading it takes long in the emulator."""
    place = tree / "opt/ajuste"
    shutil.rmtree(place, ignore_errors=True)
    run("make", "--silent", "dist")
    (wheel,) = (ROOT / "dist").glob("ajuste-*.whl")
    uv = str(Path(sys.executable).with_name("uv"))
    run(uv, "pip", "install", "--quiet", "--target", str(place), "--python", sys.executable, str(wheel))
    run("chroot", str(tree), "/usr/bin/python3", "-m", "compileall", "-q", "/opt/ajuste")


def _make_disk(tree: Path, disk: Path) -> None:
    with tempfile.TemporaryDirectory(dir=disk.parent) as directory:
        raw = Path(directory) / "disk"
        with raw.open("wb") as file:
            file.truncate((SIZE_MIB << 20) + _SECTOR * 512)
        run("mkfs.ext4", "-q", "-d", str(tree), "-E", f"offset={_SECTOR * 512}", str(raw), f"{SIZE_MIB}M")
        run("sfdisk", "--quiet", str(raw), text=f"start={_SECTOR},type=83,bootable\n")
        run("sync", str(raw))  # Data that are not on the disk yet can look like a hole.
        run("qemu-img", "convert", "-O", "qcow2", str(raw), str(disk))


def _install_grub(tree: Path, disk: Path) -> None:
    kernel = max((tree / "boot").glob("vmlinuz-6.1.*"))
    output = subprocess.run(
        [
            *("qemu-system-x86_64", "-accel", "tcg", "-m", "512", "-nographic", "-no-reboot", "-nic", "none"),
            *("-drive", f"file={disk},if=virtio", "-kernel", str(kernel)),
            *("-initrd", str(kernel.with_name(kernel.name.replace("vmlinuz", "initrd.img")))),
            *("-append", "root=/dev/vda1 rw console=ttyS0 quiet init=/opt/emulated/install"),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=3600,
        check=True,
    ).stdout
    if "GRUB IS THERE" not in output:
        raise SystemExit(f"GRUB could not be installed in the emulated machine:\n{output[-2000:]}")


def run(*words: str, text: str | None = None, where: Path = ROOT) -> None:
    """A program that must succeed."""
    subprocess.run(words, check=True, cwd=where, input=text, text=True, stdout=subprocess.DEVNULL)


def overlay(disk: Path, place: Path) -> Path:
    """A disk that begins as ``disk``."""
    path = place / "overlay.qcow2"
    run("qemu-img", "create", "-q", "-f", "qcow2", "-b", str(disk.absolute()), "-F", "qcow2", str(path))
    return path


def result_disk(place: Path) -> Path:
    """An empty disk, onto which the machine writes an archive of its store and reports at the end."""
    path = place / "results"
    with path.open("wb") as file:
        file.truncate(_RESULTS_MIB << 20)
    return path


def command_disk(place: Path, command: Sequence[str]) -> Path:
    """A disk with the words of ``command``, a line each."""
    path = place / "command"
    text = "".join(f"{word}\n" for word in (*command, "END")).encode()
    path.write_bytes(text.ljust(-(-len(text) // 512) * 512, b"\0"))
    return path


def files_disk(place: Path, directory: Path) -> Path:
    """A disk that is an archive of the files in ``directory``."""
    path = place / "files"
    run("tar", "-C", str(directory), "-cf", str(path), "--sort=name", ".")
    return path
