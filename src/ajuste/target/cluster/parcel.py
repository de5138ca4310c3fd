"""What a worker is told of the machine that trials run on: checksums and versions, no places on a disk."""

from __future__ import annotations

import hashlib
from functools import cached_property

from pydantic import BaseModel, ConfigDict

from ajuste.model.memory_node import MemoryNode
from ajuste.model.results import Clock, InstructionNs


class HostParcel(BaseModel):
    """A study that is to be measured on machines as they are: each resolves it for itself.

    ``ajuste`` is the version that a worker must have, too, and ``agent`` the SHA-256 of the agent, so that everywhere
    the same program measures. ``directory`` is where the study's own files are, on every machine alike.
    """

    model_config = ConfigDict(frozen=True)
    ajuste: str
    agent: str
    study: str
    directory: str
    accept_risk: bool = False


class Parcel(BaseModel):
    """A guest, by the SHA-256 of its ``kernel`` and of its ``initramfs``, in which everything is that it ever has.

    ``ajuste`` and ``qemu`` are versions that a worker must have, too: with these the same plan gives the same bytes on
    every machine. ``spec``, ``release`` and ``package`` name the kernel for people.
    """

    model_config = ConfigDict(frozen=True)
    ajuste: str
    qemu: str
    spec: str
    release: str
    package: str
    kernel: str
    initramfs: str
    clock: Clock
    cpus: int
    memory_mib: int
    seed: int
    instruction_ns: InstructionNs
    kernel_arguments: tuple[str, ...] = ()
    nodes: tuple[MemoryNode, ...] = ()
    snapshot: bool = True

    @property
    def contents(self) -> tuple[str, ...]:
        """The checksums of the files that a worker must have."""
        return (self.kernel, self.initramfs)

    @cached_property
    def name(self) -> str:
        """The same for the same machine."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()
