"""The symbols that a kernel carries, against tables written in every layout, System.map and the exported symbols."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import shutil
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import accumulate
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.debian_archive import make_bzimage

from ajuste.machine.home import Home, home
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelImage
from ajuste_guest.kernel.cache import cached_entries
from ajuste_guest.kernel.fetch import fetch_kernel
from ajuste_guest.kernel.symbols import (
    KernelSymbol,
    function_names,
    kernel_symbols,
    read_symbols,
    read_system_map,
    read_vmlinux,
)

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

BASE = 0xFFFFFFFF81000000
LAYOUTS = ("5.10", "6.1", "6.2", "6.4", "6.16", "7.3")
Symbol = tuple[int, str]
"""Address, and the name after its type."""


def word_tokens(symbols: Sequence[Symbol]) -> list[bytes]:
    """256 tokens: all characters, and frequent beginnings in the place of those that are in no name."""
    used = {character for _, name in symbols for character in name.encode()} | set(b"0123456789")
    frequent = [name[:7].encode() for _, name in symbols] + [b"sys_", b"_init"]
    return [bytes([code]) if code in used else frequent[code % len(frequent)] for code in range(256)]


def compressed(name: str, tokens: list[bytes]) -> bytes:
    encoded, rest = bytearray(), name.encode()
    while rest:
        token = max((text for text in tokens if rest.startswith(text)), key=len)
        encoded.append(tokens.index(token))
        rest = rest[len(token) :]
    length = bytes([len(encoded)]) if len(encoded) < 128 else bytes([len(encoded) & 127 | 128, len(encoded) >> 7])
    return length + encoded


def tables(symbols: Sequence[Symbol], layout: str, place: int) -> bytes:
    """Return the tables that scripts/kallsyms.c of that version writes, to stand at the address ``place``."""
    tokens = word_tokens(symbols)
    names = [compressed(name, tokens) for _, name in symbols]
    starts = [0, *accumulate(map(len, names))]
    align = 4 if layout == "7.3" else 8
    with_percpu = layout not in ("6.16", "7.3")
    numbers = {
        "num_syms": struct.pack("<I", len(symbols)),
        "names": b"".join(names),
        "markers": b"".join(struct.pack("<I", start) for start in starts[:-1:256]),
        "token_table": b"".join(token + b"\0" for token in tokens),
        "token_index": struct.pack("<256H", *[0, *accumulate(len(token) + 1 for token in tokens[:-1])]),
        "relative_base": struct.pack("<Q", BASE),
        "seqs_of_names": bytes(random.Random(1).randrange(256) for _ in range(3 * len(symbols))),
    }
    head = ["num_syms", "names", "markers"]
    tail = ["token_table", "token_index"]
    order = {
        "5.10": ["offsets", "relative_base", *head, *tail],
        "6.1": ["offsets", "relative_base", *head, *tail],
        "6.2": ["offsets", "relative_base", *head, "seqs_of_names", *tail],
        "7.3": [*head, *tail, "offsets", "seqs_of_names"],
    }.get(layout, [*head, *tail, "offsets", "relative_base", "seqs_of_names"])
    written = b""
    for name in order:
        written += b"\0" * (-(place + len(written)) % align)
        if name == "offsets":
            at = place + len(written)
            for number, (address, _) in enumerate(symbols):
                if layout == "7.3":
                    offset = address - (at + 4 * number)
                elif with_percpu:
                    offset = BASE - 1 - address if address >= BASE else address
                else:
                    offset = address - BASE
                written += struct.pack("<i", offset)
        else:
            written += numbers[name]
    return written


def vmlinux(content: bytes, address: int) -> bytes:
    """An ELF file that loads ``content`` there."""
    head = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, 62, 1, address, 64, 0, 0, 64, 56, 1, 64, 0, 0)
    size = len(content)
    return (
        head + struct.pack("<IIQQQQQQ", 1, 5, 0x1000, address, address, size, size, 1) + bytes(0x1000 - 120) + content
    )


def with_payload(payload: bytes) -> bytes:
    """A bzImage that carries it."""
    image = bytearray(make_bzimage("6.1.7", padding=64))
    struct.pack_into("<II", image, 0x248, 64, len(payload))
    return bytes(image) + payload


LETTERS = st.text("abcdefghijklmnopqrstuvwxyz_0123456789.", min_size=1, max_size=20)


@st.composite
def some_symbols(draw: st.DrawFn) -> list[Symbol]:
    few = draw(st.lists(LETTERS, min_size=5, max_size=30))
    longest = draw(st.sampled_from(["a_name", "a_long_name_" * 14]))
    names = [f"{few[number % len(few)]}{number}" for number in range(draw(st.integers(600, 900)))] + [longest]
    steps = draw(st.lists(st.integers(0, 4096), min_size=8, max_size=8))
    places = accumulate(steps[number % 8] for number in range(len(names)))
    kinds = draw(st.text("tTWdDbA", min_size=1, max_size=9))
    return [(BASE + place, kinds[number % len(kinds)] + names[number]) for number, place in enumerate(places)]


def as_tuples(symbols: Sequence[KernelSymbol]) -> list[tuple[int, str, bool]]:
    return [(symbol.address, symbol.name, symbol.is_text) for symbol in symbols]


@settings(max_examples=40, deadline=None)
@given(some_symbols(), st.sampled_from(LAYOUTS), st.binary(max_size=50), st.integers(0, 3))
@pytest.mark.slow
def test_every_layout_is_read(symbols: list[Symbol], layout: str, before: bytes, percpu: int) -> None:
    if layout in ("5.10", "6.1", "6.2", "6.4"):
        symbols = [*((4096 * number, f"Apercpu{number}") for number in range(percpu)), *symbols]
    if layout == "5.10":  # No name takes more than 127 tokens there.
        symbols = [(address, name[:100]) for address, name in symbols]
    content = before + bytes(-len(before) % 16) + tables(symbols, layout, BASE + 16 * -(-len(before) // 16))
    parsed = read_symbols(vmlinux(content, BASE), "a kernel")
    assert as_tuples(parsed) == [(address, name[1:], name[0] in "tTwW") for address, name in symbols]


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(LAYOUTS), st.integers(0, 30_000), st.binary(min_size=1, max_size=600), st.integers(0, 40_000))
@pytest.mark.slow
def test_no_image_however_broken_crashes_it(layout: str, at: int, patch: bytes, cut: int) -> None:
    symbols = [(BASE + 16 * number, f"tfunction_{number}") for number in range(700)]
    image = bytearray(vmlinux(tables(symbols, layout, BASE), BASE))
    image[at : at + len(patch)] = patch
    with suppress(RequestError):
        assert len(read_symbols(bytes(image[:cut]), "a kernel")) > 256


@given(st.binary(max_size=3_000))
def test_random_bytes_are_no_kernel(content: bytes) -> None:
    with pytest.raises(RequestError, match="no table of its symbols"):
        read_symbols(content, "a kernel")


def test_the_size_is_up_to_the_next_symbol() -> None:
    symbols = read_system_map("0000000000001000 T one\n0000000000001000 t alias\n0000000000001080 d two\n")
    assert [(symbol.name, symbol.size) for symbol in symbols] == [("one", 128), ("alias", 128), ("two", 0)]
    assert read_system_map("") == ()


def test_of_several_names_a_function_has_the_plainest() -> None:
    lines = (
        ("_text", "_stext", "startup_64"),
        ("__ia32_sys_getpid", "__do_sys_getpid", "__x64_sys_getpid"),
        ("__pi_memcpy", "memcpy", "__memcpy"),
        ("_etext",),
    )
    text = "".join(f"{16 * place:x} T {name}\n" for place, names in enumerate(lines) for name in names)
    assert list(function_names(read_system_map(text + "100 D data\n")).values()) == [
        "startup_64",
        "__x64_sys_getpid",
        "memcpy",
        "_etext",
    ]


def lz4(content: bytes) -> bytes:
    """Compress as scripts/Makefile.lib does, with the size behind."""
    done = subprocess.run(["lz4", "-l", "-9", "-c"], input=content, capture_output=True, check=True)
    return done.stdout + struct.pack("<I", len(content))


FORMATS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "lzma": lambda content: lzma.compress(content, lzma.FORMAT_ALONE),
    "xz": lzma.compress,
    "zstd": zstd.compress,
    "lz4": lz4,
}


@pytest.mark.parametrize("name", FORMATS)
def test_what_an_image_carries_is_decompressed(tmp_path: Path, name: str) -> None:
    if name == "lz4" and shutil.which("lz4") is None:
        pytest.skip("no lz4 on this machine")
    words = random.Random(7)
    content = b"\x7fELF" + b"".join(
        words.choice([b"abc", b"\0" * 40, words.randbytes(300), b"x" * 700]) for _ in range(20_000)
    )
    (tmp_path / "bzImage").write_bytes(
        with_payload(FORMATS[name](content) + b"size"[: 4 * (name not in ("gzip", "lz4"))])
    )
    assert read_vmlinux(tmp_path / "bzImage") == content


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"\x89LZO\0\r\n", "LZO is not supported; expected gzip"),
        (b"what", "begins with 77686174 is not supported"),
        (b"", "begins with nothing"),
        (lzma.compress(b"\x7fELF" * 99)[:40], "cut short"),
        (b"\x02\x21\x4c\x18\x00\x10\x00\x00abc", "cut short"),
        (b"\x02\x21\x4c\x18\x04\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00", "begins before the content"),
        (b"\x02\x21\x4c\x18\x02\x00\x00\x00\x10a\x09\x00\x00\x00", "its own size"),
        (gzip.compress(b"no ELF", mtime=0), "does not carry an ELF file"),
    ],
)
def test_what_cannot_be_decompressed_says_why(tmp_path: Path, payload: bytes, message: str) -> None:
    (tmp_path / "bzImage").write_bytes(with_payload(payload))
    with pytest.raises(RequestError, match=message):
        read_vmlinux(tmp_path / "bzImage")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from([b"\x1f\x8b", b"BZh", b"\x5d\0\0", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"\x02\x21\x4c\x18"]),
    st.binary(),
)
def test_no_payload_however_broken_crashes_it(tmp_path: Path, magic: bytes, rest: bytes) -> None:
    (tmp_path / "bzImage").write_bytes(with_payload(magic + rest))
    with pytest.raises(RequestError):
        read_vmlinux(tmp_path / "bzImage")


def an_image(directory: Path, content: bytes) -> KernelImage:
    (directory / "bzImage").write_bytes(with_payload(gzip.compress(content)))
    return KernelImage(spec="path:bzImage", release="6.1.7", vmlinuz=directory / "bzImage", sha256="a" * 64)


def test_symbols_are_kept_and_read_again_when_damaged(tmp_path: Path, place: Home) -> None:
    symbols = [(BASE + 16 * number, f"tfunction_{number}") for number in range(700)]
    image = an_image(tmp_path, vmlinux(tables(symbols, "6.4", BASE), BASE))
    first = kernel_symbols(image, place)
    (path,) = (place.cache / "symbols").iterdir()
    image.vmlinuz.rename(tmp_path / "aside")
    assert kernel_symbols(image, place) == first
    (tmp_path / "aside").rename(image.vmlinuz)
    path.write_bytes(path.read_bytes()[:-20])
    assert kernel_symbols(image, place) == first
    assert len(first) == 700


def test_several_threads_may_keep_the_same_symbols(tmp_path: Path, place: Home) -> None:
    """Read symbols in threads, as guests do that start side by side."""
    symbols = [(BASE + 16 * number, f"tfunction_{number}") for number in range(700)]
    image = an_image(tmp_path, vmlinux(tables(symbols, "6.4", BASE), BASE))
    for number in range(20):
        copied = image.model_copy(update={"sha256": f"{number:064x}"})
        together = threading.Barrier(4)

        def count_symbols(image: KernelImage = copied, together: threading.Barrier = together) -> int:
            together.wait()
            return len(kernel_symbols(image, place))

        with ThreadPoolExecutor(4) as threads:
            assert [done.result() for done in [threads.submit(count_symbols) for _ in range(4)]] == [700] * 4
    assert len(list((place.cache / "symbols").iterdir())) == 20


def test_a_kernel_without_symbols_is_refused(tmp_path: Path, place: Home) -> None:
    with pytest.raises(RequestError, match="path:bzImage has no table of its symbols") as caught:
        kernel_symbols(an_image(tmp_path, vmlinux(bytes(9_000), BASE)), place)
    assert caught.value.hint == "use a kernel built with CONFIG_KALLSYMS=y"
    assert not (place.cache / "symbols").exists()


def exported(content: bytes) -> dict[str, int]:
    """The symbols that a kernel offers to modules, by its own table (include/linux/export.h): three offsets, each from
    its own place, to the value, the name and the namespace.
    """
    file = ELFFile(io.BytesIO(content))
    sections = {section.name: section for section in file.iter_sections()}
    names = sections["__ksymtab_strings"]
    texts = names.data()
    addresses = {}
    for section in (sections[name] for name in ("__ksymtab", "__ksymtab_gpl") if name in sections):
        for at, (value, name, _) in enumerate(struct.iter_unpack("<iii", section.data())):
            place = section["sh_addr"] + 12 * at
            begin = place + 4 + name - names["sh_addr"]
            addresses[texts[begin : texts.index(b"\0", begin)].decode()] = place + value
    return addresses


@pytest.mark.vm
@pytest.mark.slow
def test_cached_kernels_have_what_they_export() -> None:
    fetch_kernel("debian:5.10", home())
    images = {str(entry.image.version): entry.image for entry in cached_entries(home())}
    for image in images.values():
        content = read_vmlinux(image.vmlinuz)
        functions = {(s.name, s.address) for s in read_symbols(content, image.spec) if s.is_text}
        names = {name for name, _ in functions}
        exports = {(name, address) for name, address in exported(content).items() if name in names}
        assert len(exports) > 1_000
        assert exports <= functions
