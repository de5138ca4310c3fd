"""A machine made of files, for what reads /proc and /sys below a root that is given to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

CPUS = "sys/devices/system/cpu"


@dataclass(frozen=True)
class Tree:
    root: Path

    def write(self, files: Mapping[str, str | bytes]) -> Tree:
        for path, content in files.items():
            place = self.root / path.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content if isinstance(content, bytes) else f"{content}\n".encode())
        return self

    def link(self, path: str, target: str) -> Tree:
        place = self.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)
        return self

    def cpus(self, *, sockets: int, cores: int, threads: int, caches: bool = True) -> Tree:
        """``cores`` in each of the sockets with ``threads`` each; siblings are numbered as most firmware does."""
        total = sockets * cores * threads
        smt = "on" if threads > 1 else "notsupported"
        self.write({f"{CPUS}/{name}": f"0-{total - 1}" for name in ("online", "possible", "present")})
        self.write({f"{CPUS}/smt/control": smt, f"{CPUS}/isolated": "", f"{CPUS}/offline": ""})
        for cpu in range(total):
            core = cpu % (sockets * cores)
            socket = core // cores
            siblings = range(core, total, sockets * cores)
            package = [c for c in range(total) if c % (sockets * cores) // cores == socket]
            place = f"{CPUS}/cpu{cpu}/topology"
            self.write(
                {
                    f"{place}/thread_siblings_list": joined(siblings),
                    f"{place}/thread_siblings": mask(siblings, total),
                    f"{place}/core_siblings": mask(package, total),
                    f"{place}/core_siblings_list": joined(package),
                    f"{place}/core_id": str(core % cores),
                    f"{place}/physical_package_id": str(socket),
                }
            )
            if caches:
                self._cache(cpu, 0, "1", "Data", "48K", siblings, total)
                self._cache(cpu, 1, "1", "Instruction", "32K", siblings, total)
                self._cache(cpu, 2, "2", "Unified", "1280K", siblings, total)
                self._cache(cpu, 3, "3", "Unified", "36M" if sockets == 1 else "36864K", package, total)
        return self

    def _cache(self, cpu: int, index: int, level: str, kind: str, size: str, shared: Iterable[int], total: int) -> None:
        place = f"{CPUS}/cpu{cpu}/cache/index{index}"
        files = {"level": level, "type": kind, "size": size, "shared_cpu_list": joined(shared)}
        files |= {"shared_cpu_map": mask(shared, total), "id": str(min(shared))}
        self.write({f"{place}/{name}": content for name, content in files.items()})

    def nodes(self, nodes: Mapping[int, tuple[str, int, str]]) -> Tree:
        """Write for each node its CPUs, its memory in kB and its distances."""
        for number, (cpus, memory_kb, distances) in nodes.items():
            place = f"sys/devices/system/node/node{number}"
            self.write(
                {
                    f"{place}/cpulist": cpus,
                    f"{place}/meminfo": f"Node {number} MemTotal:       {memory_kb} kB\nNode {number} MemFree: 7 kB",
                    f"{place}/distance": distances,
                }
            )
        return self


def joined(cpus: Iterable[int]) -> str:
    return ",".join(map(str, cpus))


def mask(cpus: Iterable[int], total: int) -> str:
    """Return CPUs as the kernel writes masks: groups of 32 bits in hexadecimal."""
    bits = sum(1 << cpu for cpu in cpus)
    groups = [f"{bits >> shift & 0xFFFFFFFF:08x}" for shift in range(0, max(total, 32), 32)]
    return ",".join(reversed(groups))
