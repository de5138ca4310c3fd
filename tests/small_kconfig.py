"""A small tree of Kconfig files with everything that decides about an option."""

from __future__ import annotations

from pathlib import Path

KCONFIG = """\
mainmenu "Linux/x86 $(KERNELVERSION) Kernel Configuration"

config CC_HAS_MAGIC
  def_bool $(success,false)

config MODULES
  bool "Enable loadable module support"
  modules
  default y

menu "General setup"

config NET
  bool "Networking support"
  help
    Unless you really know what you are doing, say Y.
    The reason is that some programs need it.

    A second paragraph.

source "net/Kconfig"

endmenu

menu "Processor type and features"

config SMP
  bool "Symmetric multi-processing support"

config NUMA
  bool "NUMA Memory Allocation and Scheduler Support"
  depends on SMP
  select HAVE_NODES

config NUMA_BALANCING
  bool "Memory placement aware NUMA scheduler"
  depends on NUMA && !RT
  default y

config HAVE_NODES
  bool

config NR_CPUS
  int "Maximum number of CPUs"
  range 2 64 if SMP
  range 1 1
  default 8 if SMP
  default 1

config MAGIC
  bool "Needs a compiler with magic"
  depends on CC_HAS_MAGIC

config RT
  bool "Fully Preemptible Kernel"
  depends on EXPERT || CRAZY

config EXPERT
  bool "Configure standard kernel features"

config CRAZY
  bool "Even more features"

choice
  prompt "Timer frequency"
  default HZ_250

config HZ_100
  bool "100 HZ"

config HZ_250
  bool "250 HZ"

endchoice

config HZ
  int
  default 100 if HZ_100
  default 250 if HZ_250

config OLD_NAME
  bool
  transitional

endmenu
"""

NET = """\
config MPTCP
  bool "Multipath TCP"
  depends on INET
  help
    Multipath TCP lets a connection use several paths at once.

config INET
  bool "TCP/IP networking"
  depends on NET

config VETH
  tristate "Virtual ethernet pair device"
  depends on NET

config FORWARDING
  bool "Forwarding"
  imply TUNNEL
  imply FILTER

config TUNNEL
  tristate "Tunnels"

config FILTER
  tristate "Filters"

config BRIDGE
  tristate "Bridging"
  depends on VETH
"""


def write_source(tree: Path) -> Path:
    """The source of a kernel 6.1.9-rc1, as much of it as Kconfig reads."""
    (tree / "net").mkdir(parents=True)
    (tree / "arch/x86").mkdir(parents=True)
    (tree / "arch/x86/Makefile").touch()
    (tree / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 9\nEXTRAVERSION = -rc1\nNAME = x\n")
    (tree / "Kconfig").write_text("success = $(shell,{ $(1); } >/dev/null 2>&1 && echo y || echo n)\n" + KCONFIG)
    (tree / "net/Kconfig").write_text(NET)
    return tree
