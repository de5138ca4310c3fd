from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ajuste.model.error import RequestError
from ajuste.model.plan import MemoryNode
from ajuste.model.topology import Topology
from ajuste_guest.executor.qemu import (
    Channels,
    Emulator,
    GuestLayout,
    GuestMachine,
    Lens,
    checked_layout,
    command_line,
    kernel_line,
)

EMULATOR = Emulator(binary=Path("/usr/bin/qemu-system-x86_64"), version="7.2.22")
CHANNELS = Channels(plan=Path("/s/plan"), console=Path("/s/console"), events=Path("/s/events"), monitor=7)


def machine(**changes: object) -> GuestMachine:
    values = {
        "emulator": EMULATOR,
        "kernel": Path("/k/vmlinuz"),
        "initramfs": Path("/s/initramfs"),
        "clock": "virtual",
        **changes,
    }
    return GuestMachine.model_validate(values)


def option(arguments: list[str], name: str) -> str:
    return arguments[arguments.index(name) + 1]


def test_the_virtual_clock_counts_instructions_and_hears_nothing_from_the_host() -> None:
    arguments = command_line(machine(seed=5), CHANNELS, restored=False)
    assert option(arguments, "-accel") == "tcg,thread=single"
    assert option(arguments, "-icount") == "shift=1,sleep=off"
    assert "clock=vm" in option(arguments, "-rtc")
    assert {"-rdrand", "-rdseed"} <= set(option(arguments, "-cpu").split(","))
    assert (option(arguments, "-seed"), option(arguments, "-nic")) == ("5", "none")
    assert "-incoming" not in arguments


@pytest.mark.parametrize(("instruction_ns", "shift"), [(1, 0), (2, 1), (4, 2), (8, 3), (16, 4)])
def test_an_instruction_takes_as_long_as_was_asked(instruction_ns: int, shift: int) -> None:
    """qemu(1): with -icount shift=N, one instruction takes 2^N ns."""
    arguments = command_line(machine(instruction_ns=instruction_ns), CHANNELS, restored=False)
    assert option(arguments, "-icount").startswith(f"shift={shift},")
    assert 2**shift == instruction_ns


def test_the_wall_clock_uses_all_cpus_and_counts_nothing() -> None:
    emulated = command_line(machine(clock="wall", cpus=3), CHANNELS, restored=False)
    assert option(emulated, "-accel") == "tcg,thread=multi"
    assert option(emulated, "-smp") == "3"
    assert "-icount" not in emulated
    virtualised = command_line(machine(clock="wall", accelerator="kvm"), CHANNELS, restored=False)
    assert (option(virtualised, "-accel"), option(virtualised, "-cpu")) == ("kvm", "host")


@pytest.mark.parametrize(("clock", "cpus"), [("wall", 1), ("virtual", 2)])
def test_a_restored_machine_differs_only_in_waiting_for_its_snapshot(clock: str, cpus: int) -> None:
    described = machine(clock=clock, cpus=cpus)
    cold = command_line(described, CHANNELS, restored=False)
    assert command_line(described, CHANNELS, restored=True) == [*cold, "-incoming", "defer"]


def test_with_one_cpu_a_restored_machine_records_too_and_nothing_else_differs() -> None:
    cold = command_line(machine(), CHANNELS, restored=False)
    counting = option(cold, "-icount")
    recording = [f"{word},rr=record,rrfile=/dev/null" if word == counting else word for word in cold]
    assert command_line(machine(), CHANNELS, restored=True) == [*recording, "-incoming", "defer"]


def test_commas_in_paths_do_not_end_an_option() -> None:
    channels = Channels(plan=Path("/a,b/plan"), console=Path("/a,b/con"), events=Path("/a,b/ev"), monitor=7)
    arguments = command_line(machine(), channels, restored=False)
    assert option(arguments, "-fw_cfg") == "name=opt/ajuste/plan,file=/a,,b/plan"
    assert "file,id=events,path=/a,,b/ev" in arguments


def test_a_fetched_emulator_has_its_firmware_and_libraries() -> None:
    fetched = Emulator(binary=Path("/q/qemu"), version="10.0.2", firmware=Path("/q/fw"), libraries=Path("/q/lib"))
    arguments = command_line(machine(emulator=fetched), CHANNELS, restored=False)
    assert arguments[:3] == ["/q/qemu", "-L", "/q/fw"]
    assert fetched.environment == {"LD_LIBRARY_PATH": "/q/lib"}
    assert fetched.release == (10, 0)


def test_kernel_arguments_are_added_at_the_end() -> None:
    assert kernel_line(machine(kernel_arguments=("isolcpus=1", 'x="y"'))).endswith(' isolcpus=1 x="y"')


@pytest.mark.parametrize("argument", ["", "a b", "a\nb", "a\0b", "é", "x" * 2100])
def test_what_cannot_be_passed_to_a_kernel_is_refused(argument: str) -> None:
    with pytest.raises(RequestError):
        kernel_line(machine(kernel_arguments=(argument,)))


def test_the_lens_keeps_the_turns_of_several_cpus() -> None:
    several = {"cpus": 2, "lens": Path("/lens,1.so")}
    assert option(command_line(machine(**several), CHANNELS, restored=True), "-plugin") == "/lens,,1.so,depth=halts"
    short = command_line(machine(**several, turn_us=5), CHANNELS, restored=True)
    assert option(short, "-plugin") == "/lens,,1.so,depth=halts,turn=5000"
    at_once = command_line(machine(**several, quantum_us=2), CHANNELS, restored=True)
    assert option(at_once, "-plugin") == "/lens,,1.so,depth=halts,parallel=2000"
    counting = replace(CHANNELS, lens=Lens(library=Path("/lens.so"), depth="counts", symbols=Path("/symbols")))
    assert option(command_line(machine(**several, turn_us=5), counting, restored=True), "-plugin").endswith(
        ",turn=5000"
    )


def test_nodes_share_out_cpus_and_memory_in_their_order() -> None:
    """Check the options against qemu(1), -numa."""
    nodes = (
        MemoryNode(cpus=2, memory_mib=256, distances=(10, 31)),
        MemoryNode(cpus=1, memory_mib=128, distances=(31, 10)),
        MemoryNode(memory_mib=64),
    )
    arguments = command_line(machine(nodes=nodes, cpus=3, memory_mib=448), CHANNELS, restored=False)
    after = [arguments[place + 1] for place, word in enumerate(arguments) if word in ("-numa", "-object")]
    assert after == [
        "memory-backend-ram,id=node0,size=256M",
        "node,nodeid=0,cpus=0-1,memdev=node0",
        "memory-backend-ram,id=node1,size=128M",
        "node,nodeid=1,cpus=2-2,memdev=node1",
        "memory-backend-ram,id=node2,size=64M",
        "node,nodeid=2,memdev=node2",
        "dist,src=0,dst=1,val=31",
        "dist,src=1,dst=0,val=31",
    ]


def test_a_topology_is_all_that_changes_a_machines_board_and_cpu() -> None:
    """qemu(1): cores are those of a die, or of a module; docs/system/i386/cpu.rst and the machine's smp-cache."""
    plain = command_line(machine(cpus=8), CHANNELS, restored=False)
    assert (option(plain, "-smp"), option(plain, "-M")) == ("8", "pc")
    assert option(plain, "-cpu") == "max,-rdrand,-rdseed,-erms,-fsrm"
    shaped = machine(cpus=8, topology=Topology(sockets=2, cores=2, threads=2))
    words = command_line(shaped, CHANNELS, restored=False)
    assert option(words, "-smp") == "8,sockets=2,dies=1,cores=2,threads=2"
    assert option(words, "-M") == "pc"
    assert {"vendor=GenuineIntel", "-monitor"} <= set(option(words, "-cpu").split(","))
    assert set(option(words, "-append").split()) - set(option(plain, "-append").split()) == {"pti=off"}
    same = [word for word in words if word not in (option(words, name) for name in ("-smp", "-cpu", "-append"))]
    assert same == [word for word in plain if word not in (option(plain, name) for name in ("-smp", "-cpu", "-append"))]
    assert "topology" in shaped.in_words
    assert "topology" not in machine(cpus=8).in_words


def test_groups_of_a_die_are_modules_that_share_their_llc() -> None:
    parts = machine(cpus=8, topology=Topology(dies=2, llc_groups=4, cores=8))
    arguments = command_line(parts, CHANNELS, restored=False)
    assert option(arguments, "-smp") == "8,sockets=1,dies=2,modules=2,cores=2,threads=1"
    assert option(arguments, "-M") == "pc,smp-cache.0.cache=l3,smp-cache.0.topology=module"
    whole = machine(cpus=8, topology=Topology(dies=2, cores=8))
    assert option(command_line(whole, CHANNELS, restored=False), "-M") == "pc"


def test_hardware_has_no_need_of_what_only_an_emulated_cpu_lacks() -> None:
    on_kvm = machine(cpus=2, clock="wall", accelerator="kvm", topology=Topology(cores=1, threads=2))
    arguments = command_line(on_kvm, CHANNELS, restored=False)
    assert (option(arguments, "-cpu"), option(arguments, "-smp")) == ("host", "2,sockets=1,dies=1,cores=1,threads=2")
    assert "pti=off" not in option(arguments, "-append")


@pytest.mark.parametrize(
    ("layout", "cpus", "words"),
    [
        (GuestLayout(256, topology=Topology(cores=2)), 3, "cpus is 3; expected 2, as the topology"),
        (GuestLayout(256, (MemoryNode(cpus=2, memory_mib=256),)), 2, "two at least"),
    ],
)
def test_a_layout_of_another_machine_is_refused(layout: GuestLayout, cpus: int, words: str) -> None:
    with pytest.raises(RequestError, match=words):
        checked_layout(layout, cpus)
