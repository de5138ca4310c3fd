"""From a study's guest to a parcel and the files that go with it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ajuste.model.kernel import KernelImage
from ajuste.target.cluster.parcel import Parcel
from ajuste.target.vm import GuestOptions
from ajuste.version import ajuste_version
from ajuste.vm.emulator import choose_emulator
from ajuste.vm.guest_files import GuestFiles
from ajuste.vm.initramfs import build_initramfs


@dataclass(frozen=True)
class Packed:
    """``files`` of this disk by their SHA-256."""

    parcel: Parcel
    files: dict[str, Path]


def pack_guest(image: KernelImage, files: GuestFiles, guest: GuestOptions, directory: Path) -> Packed:
    """Pack all that the guest needs; what is made for that goes into ``directory``. Raises RequestError for files that
    are missing or unsuitable.
    """
    archive = build_initramfs(files, image, directory / "initramfs", quiet_gate=guest["clock"] == "virtual")
    parcel = Parcel(
        ajuste=ajuste_version(),
        qemu=choose_emulator(guest["clock"], guest["cpus"], guest["home"], guest["say"]).version,
        spec=image.spec,
        release=image.release,
        package=image.package,
        kernel=image.sha256,
        initramfs=archive.sha256,
        clock=guest["clock"],
        cpus=guest["cpus"],
        memory_mib=guest["memory_mib"],
        seed=guest["seed"],
        instruction_ns=guest["instruction_ns"],
        kernel_arguments=guest["kernel_arguments"],
        nodes=guest["nodes"],
        snapshot=guest["snapshot"],
    )
    return Packed(parcel, {image.sha256: image.vmlinuz, archive.sha256: archive.path})
