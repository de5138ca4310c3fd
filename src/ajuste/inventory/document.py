"""The inventory: one document with all facts, as it is shown, kept and compared."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from ajuste.inventory.cache import Cache
from ajuste.inventory.cpu import Cpu
from ajuste.inventory.disk import Disk
from ajuste.inventory.frequency import Frequency
from ajuste.inventory.idle import Idle
from ajuste.inventory.kernel import Kernel
from ajuste.inventory.limit import Limits
from ajuste.inventory.memory import Memory
from ajuste.inventory.mount import Mount
from ajuste.inventory.nic import Nic
from ajuste.inventory.numa import Node
from ajuste.inventory.software import Software
from ajuste.inventory.virtualisation import Virtualisation

INVENTORY_VERSION: Final = 1


class Inventory(BaseModel):
    """What a machine is. Nothing in it changes by itself from one minute to the next, and nothing names the machine,
    its user or any device of it: see docs/inventory.md for what is left out.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")
    inventory: Literal[1] = INVENTORY_VERSION
    cpu: Cpu = Cpu()
    caches: dict[str, Cache] = Field(default_factory=dict)
    numa: dict[str, Node] = Field(default_factory=dict)
    frequency: Frequency = Frequency()
    idle: Idle = Idle()
    mitigations: dict[str, str] = Field(default_factory=dict)
    kernel: Kernel = Kernel()
    memory: Memory = Memory()
    disks: dict[str, Disk] = Field(default_factory=dict)
    mounts: dict[str, Mount] = Field(default_factory=dict)
    nics: dict[str, Nic] = Field(default_factory=dict)
    virtual_nics: int = 0
    virtualisation: Virtualisation = Virtualisation()
    limits: Limits = Limits()
    software: Software = Software()
