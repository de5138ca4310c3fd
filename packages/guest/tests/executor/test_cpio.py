"""Archives are read back by cpio(1) and by the reader below, written from the format's description alone."""

from __future__ import annotations

import io
import os
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ajuste_guest.executor.tree import CharacterDevice, Directory, Entry, Link, Regular, write_archive

names = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=20).filter(
    lambda name: name not in (".", "..", "TRAILER!!!")
)
paths = st.lists(names, min_size=1, max_size=4).map("/".join)
entries = st.one_of(
    st.builds(Directory, st.integers(0, 0o7777)),
    st.builds(Link, st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=30)),
    st.builds(Regular, st.binary(max_size=200), st.integers(0, 0o7777)),
    st.builds(CharacterDevice, st.integers(0, 255), st.integers(0, 255), st.integers(0, 0o7777)),
)


def written(tree: dict[str, Entry]) -> bytes:
    out = io.BytesIO()
    write_archive(tree.items(), out)
    return out.getvalue()


def read_back(archive: bytes) -> tuple[dict[str, Entry], list[list[int]]]:
    """The tree, and each header's thirteen numbers."""
    tree: dict[str, Entry] = {}
    headers: list[list[int]] = []
    at = 0
    while True:
        assert archive[at : at + 6] == b"070701"
        fields = [int(archive[at + 6 + 8 * i : at + 14 + 8 * i], 16) for i in range(13)]
        _, mode, _, _, _, _, size, _, _, major, minor, name_size, _ = fields
        name = archive[at + 110 : at + 110 + name_size]
        assert name.endswith(b"\0")
        at += 110 + name_size
        at += -at % 4
        content = archive[at : at + size]
        at += size
        at += -at % 4
        if name == b"TRAILER!!!\0":
            assert not archive[at:].strip(b"\0")
            return tree, headers
        headers.append(fields)
        path = name[:-1].decode()
        match stat.S_IFMT(mode):
            case stat.S_IFDIR:
                tree[path] = Directory(stat.S_IMODE(mode))
            case stat.S_IFLNK:
                tree[path] = Link(content.decode())
            case stat.S_IFCHR:
                tree[path] = CharacterDevice(major, minor, stat.S_IMODE(mode))
            case stat.S_IFREG:
                tree[path] = Regular(content, stat.S_IMODE(mode))


@given(st.dictionaries(paths, entries, max_size=12))
def test_what_is_written_is_read_back(tree: dict[str, Entry]) -> None:
    entries, headers = read_back(written(tree))
    assert entries == tree
    for number, (inode, _, owner, group, _, modified, *_rest) in enumerate(headers, start=1):
        assert (inode, owner, group, modified) == (number, 0, 0, 0)


@given(st.dictionaries(paths, entries, max_size=12), st.randoms())
def test_the_order_of_the_entries_does_not_matter(tree: dict[str, Entry], random: Any) -> None:  # type: ignore[no-untyped-def]
    shuffled = list(tree.items())
    random.shuffle(shuffled)
    assert written(dict(shuffled)) == written(tree)


@given(st.dictionaries(paths, entries, max_size=12))
def test_parents_come_before_their_children(tree: dict[str, Entry]) -> None:
    order = list(read_back(written(tree))[0])
    for place, path in enumerate(order):
        parents = [order.index(other) for other in order if path.startswith(f"{other}/")]
        assert all(parent < place for parent in parents)


@pytest.mark.skipif(shutil.which("cpio") is None, reason="cpio is not installed")
def test_cpio_unpacks_the_same_tree(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(os.urandom(70_001))
    tree: dict[str, Entry] = {
        "usr": Directory(),
        "usr/bin": Directory(0o750),
        "usr/bin/program": Regular(program, 0o755),
        "bin": Link("usr/bin"),
        "empty": Regular(b"", 0o600),
    }
    out = tmp_path / "out"
    out.mkdir()
    subprocess.run(["cpio", "-id", "--quiet"], input=written(tree), cwd=out, check=True)
    assert (out / "bin/program").read_bytes() == program.read_bytes()
    assert stat.S_IMODE((out / "usr/bin/program").stat().st_mode) == 0o755
    assert stat.S_IMODE((out / "usr/bin").stat().st_mode) == 0o750
    assert (out / "bin").readlink() == Path("usr/bin")
    assert (out / "empty").stat().st_size == 0
