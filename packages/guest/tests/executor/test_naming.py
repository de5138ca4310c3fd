"""Functions by name: of programs that are found by a few bytes of their code."""

from __future__ import annotations

import hashlib
import io
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile
from hypothesis import given
from hypothesis import strategies as st

from ajuste.machine.home import WORKLOADS, native_program
from ajuste.model.cost import CostCode, Costs, CostTask
from ajuste_guest.executor.lens import Program, costs_by_name, function_at, locate, read_programs
from ajuste_guest.executor.tree import Directory, Entry, Link, Regular, read_archive, write_archive
from costs import documents

SOURCE = """\
static int __attribute__((noinline)) inner(int x) { volatile int y = x * 7; return y + 3; }
int __attribute__((noinline)) outer(int x) { volatile int y = inner(x) + 1; return inner(y) * 5; }
int __attribute__((noinline)) unused(int x) { volatile int y = x; return y ^ 0x1234567; }
int main(int argc, char **argv) { return outer(argc); }
"""
WAYS: dict[str, list[str]] = {"static-pie": ["-static-pie", "-fPIE"], "fixed": ["-static", "-no-pie"], "dynamic": []}


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same program, built in every way; also without its symbols."""
    if shutil.which("gcc") is None or shutil.which("strip") is None:
        pytest.skip("no compiler on this machine")
    place = tmp_path_factory.mktemp("built")
    (place / "program.c").write_text(SOURCE)
    for name, options in WAYS.items():
        out = ["-o", str(place / name), str(place / "program.c")]
        subprocess.run(["gcc", "-O1", "-Wl,--build-id", *options, *out], check=True)
    subprocess.run(["strip", "-o", place / "stripped", place / "static-pie"], check=True)
    return place


def program(file: Path) -> Program:
    (parsed,) = read_programs([(file.name, file.read_bytes())])
    return parsed


def functions(file: Path) -> dict[str, int]:
    """Return what the file itself calls its functions, by nm(1)."""
    symbols = subprocess.run(["nm", "--defined-only", file], capture_output=True, text=True, check=True).stdout
    lines = (line.split() for line in symbols.splitlines())
    return {words[2]: int(words[0], 16) for words in lines if len(words) == 3 and words[1] in "tT"}


def code(file: Path, address: int, base: int, size: int = 16) -> CostCode:
    """Return what is seen of a file that was moved by ``base``, where it has ``address`` itself."""
    for part in ELFFile(io.BytesIO(file.read_bytes())).iter_segments("PT_LOAD"):
        if part["p_vaddr"] <= address < part["p_vaddr"] + part["p_filesz"]:
            start = part["p_offset"] + address - part["p_vaddr"]
            return CostCode(address=base + address, bytes_=file.read_bytes()[start : start + size].hex())
    raise AssertionError(address)


@pytest.mark.parametrize("way", WAYS)
def test_a_program_is_found_and_its_functions_are_those_of_nm(built: Path, way: str) -> None:
    file = built / way
    base = 0 if way == "fixed" else 0x7F12_3456_7000
    addresses = functions(file)
    seen = [code(file, addresses[name], base) for name in ("main", "outer", "inner")]
    others = read_programs(
        (str(path), path.read_bytes()) for path in (built / "program.c", built / "dynamic", Path("/bin/ls"))
    )
    (mapped,) = locate(seen, [*others, program(file)])
    assert (mapped.program.path, mapped.base) == (f"/{way}", base) or way == "dynamic"
    assert mapped.base == base
    for name in ("main", "outer", "inner", "unused"):
        assert mapped.program.function(addresses[name]) == name
        assert mapped.program.function(addresses[name] + 3) == name
        assert base + addresses[name] in mapped.places
    assert mapped.program.function(0) == ""


def test_a_program_that_says_where_it_is_mapped_is_nowhere_else(built: Path) -> None:
    addresses = functions(built / "fixed")
    assert locate([code(built / "fixed", addresses["main"], 0x10_0000)], [program(built / "fixed")]) == ()


def test_a_few_bytes_are_no_program(built: Path) -> None:
    addresses = functions(built / "static-pie")
    assert (
        locate([code(built / "static-pie", addresses["main"], 0x10_0000, size=4)], [program(built / "static-pie")])
        == ()
    )
    assert locate([], [program(built / "static-pie")]) == ()


def test_what_was_stripped_is_named_by_its_debug_file(built: Path, tmp_path: Path) -> None:
    stripped = program(built / "stripped")
    address = functions(built / "static-pie")["inner"]
    assert stripped.function(address) == ""
    notes = subprocess.run(["readelf", "-n", built / "stripped"], capture_output=True, text=True, check=True).stdout
    build = notes.partition("Build ID: ")[2].split()[0]
    (tmp_path / build[:2]).mkdir()
    subprocess.run(
        ["objcopy", "--only-keep-debug", built / "static-pie", tmp_path / build[:2] / f"{build[2:]}.debug"], check=True
    )
    with_debug = Program(stripped.path, stripped.content, stripped.parts, stripped.is_fixed, debug=tmp_path)
    assert with_debug.function(address) == "inner"


def mapped_code(pid: int) -> Iterator[tuple[str, int, int]]:
    """The file, the begin and the offset of every mapping with code, by the kernel."""
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        words = line.split()
        if "x" in words[1] and len(words) == 6 and words[5].startswith("/"):
            yield words[5], int(words[0].partition("-")[0], 16), int(words[2], 16)


def test_a_running_process_is_mapped_as_the_kernel_says() -> None:
    picking = random.Random(3)
    process = subprocess.Popen(["sleep", "60"])
    try:
        while len(expected := list(mapped_code(process.pid))) < 3:
            assert process.poll() is None
        with Path(f"/proc/{process.pid}/mem").open("rb", buffering=0) as memory:
            seen = []
            for _, begin, _ in expected:
                for place in (begin + 0x400 + picking.randrange(0x2000) for _ in range(4)):
                    memory.seek(place)
                    seen.append(CostCode(address=place, bytes_=memory.read(16).hex()))
    finally:
        process.kill()
        process.wait()
    decoys = [Path("/bin/ls"), Path(shutil.which("python3") or "/bin/cat")]
    files = [Path(name) for name, _, _ in expected] + decoys
    located = locate(seen, read_programs((str(file), file.read_bytes()) for file in files))
    bases = {name: begin - offset for name, begin, offset in expected}
    for mapped in located:
        (part,) = (part_with_size for part_with_size in mapped.program.parts if part_with_size.size)
        assert mapped.base + part.address - part.offset == bases.pop(mapped.program.path)
    assert bases == {}


def costs_of(file: Path, base: int, *names: str) -> Costs:
    """Return the costs of one task that was in functions of ``file``, in the kernel, and in code of no file."""
    addresses = functions(file)
    places = [(addresses[name] + base, "user", 100) for name in names]
    places += [(0xFFFFFFFF81000010, "kernel", 50), (0xFFFFFFFFC0000000, "kernel", 30), (0x7FFF00000000, "user", 20)]
    frames = [
        {"parent": -1, "space": space, "address": address, "kind": "start", "calls": 1, "instructions": count}
        for address, space, count in places
    ]
    task = {
        **{"number": 0, "parent": None, "role": "workload", "entry": None, "switches_in": 1},
        **{"user": 100 * len(names) + 20, "kernel": 80, "loads": 0, "stores": 0, "branches": 0},
        "frames": frames,
        "code": [code(file, addresses[name], base) for name in names],
    }
    totals = {"user": task["user"], "kernel": task["kernel"], "faulted": 0}
    return Costs.model_validate({"version": 1, "depth": "functions", **totals, "tasks": [task]})


KERNEL = {0xFFFFFFFF81000010: "schedule"}


def test_every_function_has_its_name_and_its_file(built: Path) -> None:
    costs = costs_of(built / "static-pie", 0x5000_0000, "main", "inner")
    named = costs_by_name(costs, KERNEL, [program(built / "static-pie")], lambda _: "")
    assert [(function.name, function.file) for function in named.functions] == [
        ("main", "/static-pie"),
        ("inner", "/static-pie"),
        ("schedule", ""),
        ("0xffffffffc0000000", ""),
        ("0x7fff00000000", ""),
    ]
    assert named.instructions == costs.instructions
    assert named.notes == (
        "Functions of the kernel's modules, and of code that it made itself, are shown by address.",
        "Functions of no file, such as the vDSO's, are shown by address.",
    )


def test_an_address_within_a_function_has_its_name_and_its_place_in_the_file(built: Path) -> None:
    file, base = built / "static-pie", 0x5000_0000
    costs, inner = costs_of(file, base, "main", "inner"), functions(file)["inner"]
    assert function_at(costs, [program(file)], base + inner + 1) == f"inner (static-pie+{inner + 1:#x})"
    assert function_at(costs, [program(file)], 0xFFFFFFFFC0000000) == ""


@pytest.mark.parametrize(
    ("package", "advice"),
    [("tool-dbgsym", "Install tool-dbgsym to see their names."), ("", "Do not strip its symbols to see their names.")],
)
def test_without_symbols_addresses_stay_and_the_package_is_named(built: Path, package: str, advice: str) -> None:
    main = functions(built / "static-pie")["main"]
    (built / "static-pie.names").write_bytes((built / "static-pie").read_bytes())
    costs = costs_of(built / "static-pie.names", 0x5000_0000, "main")
    named = costs_by_name(costs, KERNEL, [program(built / "stripped")], lambda file: package)
    assert (named.functions[0].name, named.functions[0].file) == (f"{main:#x}", "/stripped")
    assert f"Functions of /stripped without a name are shown by address. {advice}" in named.notes


def test_nobody_is_asked_for_the_symbols_of_ajustes_own_programs(built: Path) -> None:
    (program_file,) = read_programs([("ajuste/bin/ajuste-workloads", (built / "stripped").read_bytes())])
    named = costs_by_name(
        costs_of(built / "static-pie", 0x5000_0000, "main"), KERNEL, [program_file], lambda _: "a-package"
    )
    note = "Functions of Ajuste's own ajuste-workloads are shown by address. Build it again to see their names."
    assert note in named.notes


def test_a_list_names_the_functions_of_the_program_that_it_was_made_of(built: Path, tmp_path: Path) -> None:
    content, addresses = (built / "stripped").read_bytes(), functions(built / "static-pie")
    lines = "".join(f"{addresses[name]:016x} {16:x} my::{name}<T, U>\n" for name in ("main", "inner"))
    (tmp_path / "right").write_text(f"{hashlib.sha256(content).hexdigest()}\n{lines}")
    (tmp_path / "wrong").write_text(f"{'0' * 64}\n{lines.replace('my', 'your')}")
    (tmp_path / "broken").write_bytes(b"\xff")
    lists = tuple(tmp_path / name for name in ("right", "wrong", "broken", "none"))
    (named,) = read_programs([("tool", content)], lists)
    assert named.function(addresses["main"]) == named.function(addresses["main"] + 15) == "my::main<T, U>"
    assert named.function(addresses["main"] + 16) == ""
    assert named.function(addresses["outer"]) == ""
    (nameless,) = read_programs([("tool", content)], lists[1:])
    assert nameless.function(addresses["main"]) == ""


def test_ajustes_own_programs_are_built_with_such_a_list() -> None:
    program = native_program(WORKLOADS)
    (named,) = read_programs([(WORKLOADS, program.read_bytes())], (program.with_name(f"{WORKLOADS}.symbols"),))
    entry = ELFFile(io.BytesIO(program.read_bytes())).header["e_entry"]
    assert named.function(entry) == "_start"


def test_the_package_of_a_file_is_asked_of_dpkg(built: Path) -> None:
    if shutil.which("dpkg-query") is None:
        pytest.skip("no dpkg on this machine")
    content = (built / "stripped").read_bytes()
    (program_file,) = read_programs([("usr/bin/env", content)])
    named = costs_by_name(costs_of(built / "static-pie", 0x5000_0000, "main"), KERNEL, [program_file])
    assert any("Install coreutils-dbgsym" in note for note in named.notes)


@given(documents(), st.lists(st.binary(max_size=200), max_size=3))
def test_whatever_files_a_guest_has_every_instruction_stays(document: dict[str, Any], contents: list[bytes]) -> None:
    for task in document["tasks"]:
        task["code"] = [{"address": 0x401000, "bytes_": "90" * 16}]
    costs = Costs.model_validate(document)
    programs = read_programs(("file", b"\x7fELF" + content) for content in contents)
    assert costs_by_name(costs, {}, programs, lambda _: "").instructions == costs.instructions


@given(st.integers(0, 63), st.binary(min_size=1, max_size=80), st.integers(0, 20_000))
def test_no_file_however_broken_crashes_it(at: int, patch: bytes, cut: int) -> None:
    content = bytearray(Path("/bin/true").read_bytes())
    content[at : at + len(patch)] = patch
    for broken in read_programs([("true", bytes(content[:cut]))]):
        assert broken.function(0x1000) is not None
        list(broken.bases(CostCode(address=0x1000, bytes_="f30f1efa")))


def test_an_archive_gives_back_its_files(tmp_path: Path) -> None:
    entries: list[tuple[str, Entry]] = [
        ("bin", Directory()),
        ("bin/one", Regular(b"first")),
        ("bin/two", Link("one")),
        ("empty", Regular(b"")),
    ]
    with (tmp_path / "archive").open("wb") as out:
        write_archive(entries, out)
    content = (tmp_path / "archive").read_bytes()
    assert list(read_archive(content)) == [("bin/one", b"first"), ("empty", b"")]
    with pytest.raises(ValueError, match="not an archive"):
        list(read_archive(content[:100]))


def test_tasks_with_the_same_code_are_looked_up_once(built: Path) -> None:
    costs = costs_of(built / "static-pie", 0x5000_0000, "main")
    (task,) = costs.tasks
    twin: CostTask = task.model_copy(update={"number": 1})
    both = Costs(version=1, depth="functions", user=2 * costs.user, kernel=160, faulted=0, tasks=(task, twin))
    named = costs_by_name(both, KERNEL, [program(built / "static-pie")], lambda _: "")
    assert named.parts[0].tasks == 2
    assert named.instructions == 2 * costs.instructions
