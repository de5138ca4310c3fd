"""Code of a program, by what it does and not by where it is: the same however the rest of the program changes.

A byte of a linked program depends on all others: each call has a distance, and each ``panic!`` the number of its line.
The code of a function is therefore taken as its instructions, with names in place of addresses and with the constants
that they load. The code of a workload is that of its functions and of all that they call, directly or not.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from elftools.elf.elffile import ELFFile

_FUNCTION: Final = re.compile(r"^[0-9a-f]+ <(.+)>:$")
_INSTRUCTION: Final = re.compile(r"^ *[0-9a-f]+:\t(\S.*)$")
_JUMP: Final = re.compile(r"\b[0-9a-f]+ <(.+?)(\+0x[0-9a-f]+)?>$")
_RELATIVE: Final = re.compile(r"-?0x[0-9a-f]+(\(%rip\))")
_SINGLE, _DOUBLE, _PACKED = 4, 8, 16


@dataclass
class Function:
    """Instructions without addresses, and the names of the functions that they refer to."""

    instructions: list[str] = field(default_factory=list)
    refers: set[str] = field(default_factory=set)


def functions(program: Path) -> dict[str, Function]:
    """Return the functions of ``program``, which has its symbols; those of one name are one."""
    constant = _constants(program)
    listing = subprocess.run(
        ["objdump", "--disassemble", "--demangle", "--no-show-raw-insn", program],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return parse(listing.splitlines(), constant)


def parse(listing: Iterable[str], constant: Callable[[int, int], bytes]) -> dict[str, Function]:
    """Return the functions in what ``objdump`` lists; ``constant`` gives bytes of constants by address and size."""
    by_name: defaultdict[str, Function] = defaultdict(Function)
    name = ""
    for line in listing:
        if start := _FUNCTION.match(line):
            name = start[1]
        elif name and (match := _INSTRUCTION.match(line)):
            _add(by_name[name], name, match[1].rstrip(), constant)
    return dict(by_name)


def code(by_name: Mapping[str, Function], prefix: str = "") -> str:
    """Return a digest of the functions whose names begin with ``prefix`` and of all that they refer to.

    Raises KeyError if there is none.
    """
    reached = {name for name in by_name if name.startswith(prefix)}
    if not reached:
        raise KeyError(prefix)
    waiting = list(reached)
    while waiting:
        new = (by_name[waiting.pop()].refers & by_name.keys()) - reached
        reached |= new
        waiting += new
    texts = ("\n".join((name, *by_name[name].instructions)) for name in sorted(reached))
    return hashlib.sha256("\n\n".join(texts).encode()).hexdigest()[:16]


def _add(function: Function, name: str, text: str, constant: Callable[[int, int], bytes]) -> None:
    instruction, _, comment = text.partition(" # ")
    if (jump := _JUMP.search(instruction)) is not None:
        target, offset = jump[1], jump[2] or ""
        if target != name and not offset:
            function.refers.add(target)
        place = f"<{'' if target == name else target}{offset}>" if target == name or not offset else "<elsewhere>"
        instruction = f"{instruction[: jump.start()]}{place}"
    if "(%rip)" in instruction:
        instruction = _RELATIVE.sub(r"\1", instruction.rstrip())
        address, _, symbol = comment.strip().partition(" ")
        if instruction.startswith("lea"):
            if symbol and "+0x" not in symbol:
                function.refers.add(symbol.removeprefix("<").removesuffix(">"))
                instruction += f" {symbol}"
        elif address:
            instruction += f" {constant(int(address, 16), _width(instruction)).hex()}"
    function.instructions.append(re.sub(r"\s+", " ", instruction).strip())


def _width(instruction: str) -> int:
    operation = instruction.split(maxsplit=1)[0]
    if operation.endswith("ss") or "%xmm" not in instruction:
        return _SINGLE
    return _DOUBLE if operation.endswith(("sd", "q")) else _PACKED


def _constants(program: Path) -> Callable[[int, int], bytes]:
    with program.open("rb") as file:
        section = ELFFile(file).get_section_by_name(".rodata")
        if section is None:
            raise ValueError(f"{program} has no section .rodata")
        start, data = section["sh_addr"], section.data()

    def constant(address: int, size: int) -> bytes:
        return data[address - start : address - start + size] if start <= address < start + len(data) else b""

    return constant
