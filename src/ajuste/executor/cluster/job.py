"""What a worker is told of the machine that trials run on: checksums and versions, no places on a disk."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from ajuste.executor.guest.emulator import choose_emulator
from ajuste.executor.guest.guest import GuestOptions
from ajuste.executor.guest.initramfs import GuestFiles, build_initramfs
from ajuste.machine.installation import ajuste_version
from ajuste.model.kernel import KernelImage
from ajuste.model.plan import MemoryNode
from ajuste.model.results import Clock, InstructionNs

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Word = Annotated[str, Field(max_length=300, pattern=r"^[\x20-\x7e]*$")]


class HostJob(BaseModel):
    """A study that is to be measured on machines as they are: each resolves it for itself.

    ``ajuste`` is the version that a worker must have, too, and ``agent`` the SHA-256 of the agent, so that everywhere
    the same program measures. ``directory`` is where the study's own files are, on every machine alike.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    ajuste: Word
    agent: Digest
    study: Annotated[str, Field(max_length=4 << 20)]
    directory: Annotated[str, Field(max_length=4096, pattern=r"^/[^\x00-\x1f]*$")]
    accept_risk: bool = False


class GuestJob(BaseModel):
    """A guest, by the SHA-256 of its ``kernel`` and of its ``initramfs``, in which everything is that it ever has.

    ``ajuste`` and ``qemu`` are versions that a worker must have, too: with these the same plan gives the same bytes on
    every machine. ``spec``, ``release`` and ``package`` name the kernel for people.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    ajuste: Word
    qemu: Word
    spec: Annotated[str, Field(max_length=4096)]
    release: Word
    package: Word
    kernel: Digest
    initramfs: Digest
    clock: Clock
    cpus: Annotated[int, Field(ge=1, le=16)]
    memory_mib: Annotated[int, Field(ge=64, le=1 << 20)]
    seed: Annotated[int, Field(ge=0, lt=1 << 63)]
    instruction_ns: InstructionNs
    kernel_arguments: Annotated[tuple[Word, ...], Field(max_length=200)] = ()
    nodes: Annotated[tuple[MemoryNode, ...], Field(max_length=64)] = ()
    snapshot: bool = True

    @property
    def contents(self) -> tuple[str, ...]:
        """The checksums of the files that a worker must have."""
        return (self.kernel, self.initramfs)

    @cached_property
    def name(self) -> str:
        """The same for the same machine."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()


# From a study's guest to a parcel and the files that go with it.


@dataclass(frozen=True)
class PackedGuest:
    """``files`` of this disk by their SHA-256."""

    parcel: GuestJob
    files: dict[str, Path]


def pack_guest(image: KernelImage, files: GuestFiles, guest: GuestOptions, directory: Path) -> PackedGuest:
    """Pack all that the guest needs; what is made for that goes into ``directory``. Raises RequestError for files that
    are missing or unsuitable.
    """
    archive = build_initramfs(files, image, directory / "initramfs", quiet_gate=guest["clock"] == "virtual")
    parcel = GuestJob(
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
    return PackedGuest(parcel, {image.sha256: image.vmlinuz, archive.sha256: archive.path})
