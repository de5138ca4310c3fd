"""Studies that name something of the machine that measures them: one for each kind of the table of capabilities."""

from __future__ import annotations

from typing import Any

from ajuste.model.capability import Kind

BASE: dict[str, Any] = {
    "name": "asked",
    "factor": [{"name": "vm.swappiness", "levels": [10, 60]}],
    "workload": {"kind": "fio"},
    "target": {"kind": "vm", "kernel": "debian:6.12"},
    "analysis": {"metrics": ["elapsed"]},
}
HOST = {"target": {"kind": "host", "clock": "wall"}}
HARMFUL: dict[str, tuple[Kind, dict[str, Any]]] = {
    "a file of a workload": ("path", HOST | {"workload": {"kind": "fio", "parameters": {"file": "/etc/shadow"}}}),
    "the sources of a build": ("path", HOST | {"workload": {"kind": "kernbench", "parameters": {"source": "/x"}}}),
    "a directory of programs": ("path", HOST | {"workload": {"kind": "unixbench", "parameters": {"directory": "x"}}}),
    "a parameter for the host": ("path", HOST | {"workload": {"kind": "fio", "host_parameters": {"file": "/x"}}}),
    "a parameter that varies": (
        "path",
        HOST | {"factor": [{"name": "workload.file", "levels": ["/etc/a", "/etc/b"]}]},
    ),
    "a parameter among settings": (
        "path",
        HOST | {"factor": [{"name": "s", "settings": {"a": {"workload.file": "/a"}, "b": {"workload.file": "/b"}}}]},
    ),
    "a file of the background": (
        "path",
        HOST | {"workload": {"kind": "matrix", "background": [{"kind": "fio", "parameters": {"file": "/x"}}]}},
    ),
    "a command": ("command", HOST | {"workload": {"command": ["id"]}}),
    "a preparation": ("command", HOST | {"workload": {"kind": "matrix", "prepare": ["id"]}}),
    "a variant": (
        "command",
        HOST
        | {
            "factor": [{"name": "command", "levels": ["a", "b"]}],
            "workload": {"variant": [{"name": "a", "command": ["id"]}, {"name": "b", "command": ["ls"]}]},
        },
    ),
    "a service": ("command", HOST | {"workload": {"kind": "matrix", "service": [{"command": ["id"]}]}}),
    "a setting of the catalogue's server": (
        "command",
        HOST
        | {
            "factor": [{"name": "service.loadmodule", "levels": ["/tmp/a.so", "/tmp/b.so"]}],
            "workload": {"kind": "redis-benchmark"},
        },
    ),
    "root": ("root command", HOST | {"workload": {"kind": "matrix", "as_root": True}}),
    "a user of a service": (
        "root command",
        HOST | {"workload": {"kind": "matrix", "service": [{"command": ["id"], "user": "root"}]}},
    ),
    "a file system": ("file system", HOST | {"scratch": {}}),
    "a disk": ("file system", HOST | {"disk": {"device": "/dev/ofnobody"}}),
    "a disk to overwrite": ("device", HOST | {"scratch": {"device": "/dev/ofnobody"}}),
    "a disk for a journal": ("device", HOST | {"scratch": {"make_options": ["-J", "device=/dev/ofnobody"]}}),
    "a directory to copy": ("device", HOST | {"scratch": {"make_options": ["-N", "64", "-d", "root"]}}),
    "a second disk": ("device", HOST | {"scratch": {"filesystem": "btrfs", "make_options": ["-M", "sdb"]}}),
    "a journal to mount": ("device", HOST | {"scratch": {"mount_options": "noatime,journal_path=/dev/ofnobody"}}),
    "a mount of something else": ("device", HOST | {"scratch": {"mount_options": "noatime, bind"}}),
    "a priority": ("tunable", HOST | {"workload": {"kind": "matrix", "attributes": {"nice": -20}}}),
    "a policy that can hang it": ("risk", HOST | {"workload": {"kind": "matrix", "attributes": {"policy": "fifo"}}}),
    "a boot": (
        "boot",
        HOST | {"factor": [{"name": "boot.mitigations", "levels": ["off", "auto"]}]},
    ),
    "a reboot": ("boot", HOST | {"design": {"blocks_per_boot": 3}}),
    "a program by its file": ("path", {"workload": {"command": ["true"], "programs": ["/root/key"]}}),
    "a command by its file": ("path", {"workload": {"command": ["/root/key"]}}),
    "a way out of the system's directories": ("path", {"workload": {"command": ["/usr/bin/../../root/key"]}}),
    "a file beside the study": ("path", {"workload": {"command": ["true"], "files": ["key"]}}),
    "a kernel by its file": ("kernel file", {"target": {"kernel": "path:/root/vmlinuz"}}),
    "a kernel of a tree": ("kernel source", {"target": {"kernel": "build:/agents/tree"}}),
    "a kernel with a patch": ("kernel source", {"target": {"kernel": "build:debian:6.1+x.patch"}}),
    "a kernel with a patch that the study contains": (
        "kernel source",
        {"target": {"kernel": "build:debian:6.1+x.patch"}, "patch": [{"name": "x.patch", "text": "--- a/x\n"}]},
    ),
    "a kernel to build": ("kernel build", {"target": {"kernel": "build:debian:6.1+NUMA=n"}}),
    "kernels that vary": (
        "kernel source",
        {"factor": [{"name": "kernel", "levels": ["debian:6.1", "build:/tree"]}], "target": {"kind": "vm"}},
    ),
}
