"""A source tree that is built like a kernel's: Kconfig decides, make compiles a few files, and out comes an image."""

from __future__ import annotations

import sys
from pathlib import Path

RELEASE = "6.1.7"

_FILES = {
    "Makefile": f"""\
VERSION = 6
PATCHLEVEL = 1
SUBLEVEL = 7
export srctree := $(CURDIR)
export KCONFIG_CONFIG := $(O)/.config
ifeq ($(filter %config,$(MAKECMDGOALS)),)
-include $(O)/include/config/auto.conf
endif
objects := $(O)/fair.o $(O)/core.o $(if $(CONFIG_KYBER),$(O)/kyber.o)

allnoconfig olddefconfig:
	@{sys.executable} -m $@ Kconfig

$(O)/include/config/auto.conf: $(O)/.config
	@{sys.executable} synchronise.py $(O)

bzImage: $(O)/arch/x86/boot/bzImage $(O)/System.map
modules:
	@true

$(O)/arch/x86/boot/bzImage: $(objects) $(O)/.config
	@mkdir -p $(@D)
	@{sys.executable} image.py $@ $(objects)
	@cp $@ $(O)/vmlinux

$(O)/System.map: $(objects)
	@nm $^ > $@

$(O)/%.o: kernel/%.c $(O)/include/config/NUMA
	@echo "  CC      kernel/$*.o"
	@gcc -c -o $@ $<
	@echo 'read := $$(wildcard include/config/NUMA)' > $(O)/.$*.o.cmd

modules_install:
	@mkdir -p $(INSTALL_MOD_PATH)/lib/modules/{RELEASE}
	@touch $(INSTALL_MOD_PATH)/lib/modules/{RELEASE}/modules.builtin
""",
    "image.py": f"""\
import struct, sys
image = bytearray(5 * 512)
image[0x1F1] = 4
image[0x1FE:0x200] = b"\\x55\\xaa"
image[0x202:0x206] = b"HdrS"
struct.pack_into("<H", image, 0x20E, 0x100)
image[0x300:0x300 + {len(RELEASE) + 1}] = b"{RELEASE} "
with open(sys.argv[1], "wb") as out:
    out.write(image)
    for name in sys.argv[2:]:
        out.write(open(name, "rb").read())
""",
    # As scripts/kconfig does it: the file of an option gets a new time when the option changes.
    "synchronise.py": """\
import pathlib, sys
objects = pathlib.Path(sys.argv[1])
kept = objects / "include/config"
kept.mkdir(parents=True, exist_ok=True)
lines = [line for line in (objects / ".config").read_text().splitlines() if line.startswith("CONFIG_")]
before = (kept / "auto.conf").read_text().splitlines() if (kept / "auto.conf").exists() else ["CONFIG_NUMA=?"]
for line in set(lines) ^ set(before):
    (kept / line.partition("=")[0].removeprefix("CONFIG_")).touch()
(kept / "auto.conf").write_text("\\n".join(lines) + "\\n")
""",
    "Kconfig": """\
config MODULES
	bool "Loadable modules"
config EXPERT
	bool "For experts"
config BLOCK
	bool "Disks"
	depends on EXPERT
config KYBER
	bool "An I/O scheduler"
	depends on BLOCK
config SCHED_CLASS_EXT
	bool "Schedulers written in BPF"
config DEBUG_INFO_BTF
	bool "Type information"
config NUMA
	bool "What every file reads"
config HZ
	int "Ticks a second"
	default 250
""",
    "arch/x86/Makefile": "",
    "kernel/fair.c": """\
/* The scheduler. */

unsigned int sched_latency = 6000000;

unsigned int sched_granularity = 750000;

int sched_features = 1;
""",
    "kernel/core.c": "int core = 1;\n",
    "kernel/kyber.c": "int kyber = 1;\n",
}

PATCH = """\
A longer turn for everybody.

--- a/kernel/fair.c
+++ b/kernel/fair.c
@@ -2,6 +2,6 @@

 unsigned int sched_latency = 6000000;

-unsigned int sched_granularity = 750000;
+unsigned int sched_granularity = 3000000;

 int sched_features = 1;
"""

OPTIONS = "CONFIG_EXPERT=y\nCONFIG_BLOCK=y\nCONFIG_KYBER=y\nCONFIG_MODULES=y\n"

# What builds schedulers: every one is a program that says its name and that of the tools it was built by.
EXAMPLES = {
    "tools/sched_ext/Makefile": """\
scx_%:
	@test -e $(VMLINUX_BTF) && $(BPFTOOL)
	@mkdir -p $(O)/build/bin
	@echo "$@ $(LLVM)" > $(O)/build/bin/$@
""",
    "tools/bpf/bpftool/Makefile": """\
bootstrap:
	@mkdir -p $(OUTPUT)bootstrap && ln -sf /bin/true $(OUTPUT)bootstrap/bpftool
""",
    "tools/sched_ext/scx_simple.bpf.c": "",
    "tools/sched_ext/scx_qmap.bpf.c": "",
}


def small_kernel(directory: Path) -> Path:
    """Write the tree; gives its directory."""
    for name, text in _FILES.items():
        file = directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return directory


class Silent:
    """Watches a build and says nothing."""

    def say(self, text: str) -> None: ...

    def compiling(self, expected: int | None) -> None: ...

    def compiled(self, count: int) -> None: ...
