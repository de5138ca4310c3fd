"""Objects of a tree that another configuration begins with. What make does with them is seen in test_build."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from ajuste_kernels.building.configuration import OptionChange, turn_to, written
from ajuste_kernels.building.make import Workspace, find_damage, unsettle


class Disk(NamedTuple):
    """The result of shutil.disk_usage."""

    total: int
    used: int
    free: int


@pytest.fixture
def tree(tmp_path: Path) -> Workspace:
    """Two objects read HZ, ten read nothing. Nothing is made of it yet."""
    made = Workspace(tmp_path)
    made.objects.mkdir()
    return made


def make(tree: Workspace, *, read: str = "HZ", **options: str) -> None:
    """Write what make leaves in a tree."""
    for number in range(12):
        names = f"  $(wildcard include/config/{read}) \\\n" if number < 2 else ""
        extra = "  $(wildcard include/config/NUMA) \\\n"
        (tree.objects / f".{number}.o.cmd").write_text(f"cmd := gcc\ndeps := \\\n{names}{extra}")
    (tree.objects / "include/config").mkdir(parents=True, exist_ok=True)
    (tree.objects / "include/config/auto.conf").write_text(written({k: v.strip('"') for k, v in options.items()}))
    configure(tree, **options)


def configure(tree: Workspace, **options: str) -> None:
    (tree.objects / ".config").write_text(written(options))


def turned(tree: Workspace, **options: str) -> OptionChange:
    configure(tree, **options)
    return turn_to(tree, options)


def test_nothing_was_made_yet(tree: Workspace) -> None:
    assert (turned(tree, HZ="250"), tree.objects_aside()) == (OptionChange(0, 0), [])


def test_what_did_not_change_affects_nothing(tree: Workspace) -> None:
    make(tree, HZ="250", NAME='"a text"', NUMA="y")
    assert turned(tree, HZ="250", NAME='"a text"', NUMA="y", OFF="n") == OptionChange(12, 0)


@pytest.mark.parametrize("read", ["HZ", "hz.h"])
def test_a_local_option_keeps_the_objects_where_they_are(tree: Workspace, read: str) -> None:
    make(tree, read=read, HZ="250")
    assert turned(tree, HZ="1000") == OptionChange(12, 2)
    assert tree.objects_aside() == []


def test_the_nearest_objects_are_taken_with_the_new_options(tree: Workspace) -> None:
    make(tree, NUMA="y", HZ="250")
    assert turned(tree, HZ="250").wide
    make(tree, HZ="250")
    assert turned(tree, NUMA="y", HZ="100") == OptionChange(12, 2)
    assert (tree.objects / ".config").read_text() == written({"NUMA": "y", "HZ": "100"})
    assert len(tree.objects_aside()) == 1


def test_only_a_few_are_kept(tree: Workspace) -> None:
    for number in range(8):
        make(tree, NUMA=f'"{number}"')
        turned(tree, NUMA=f'"{number + 1}"')
    assert len(tree.objects_aside()) == 3
    assert turned(tree, NUMA='"7"') == OptionChange(12, 0)
    assert turned(tree, NUMA='"1"').wide


def test_a_full_disk_has_no_room_for_what_was(tree: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk(10**12, 10**12 - 10**9, 10**9))
    make(tree, NUMA="y")
    assert turned(tree, NUMA="n").wide
    assert tree.objects_aside() == []


def test_an_exchange_that_was_interrupted_loses_nothing(tree: Workspace) -> None:
    make(tree, NUMA="y")
    turned(tree, NUMA="n")
    # Both were put aside, and then the power went.
    make(tree, NUMA="n")
    unsettle(tree.objects)
    tree.objects.rename(tree.aside / "without")
    tree.objects.mkdir()
    assert not tree.empty
    assert turned(tree, NUMA="y") == OptionChange(12, 0)
    assert turned(tree, NUMA="n") == OptionChange(12, 0)


def test_objects_of_the_same_options_do_not_take_each_others_place(tree: Workspace) -> None:
    make(tree, NUMA="y")
    turned(tree, NUMA="n")
    # What is there now is of the options that are aside as well, and less of it remains.
    for command in tree.objects.glob(".*.o.cmd"):
        command.write_text("deps := $(wildcard include/config/HZ)\n")
    assert turned(tree, NUMA="y", HZ="1000") == OptionChange(12, 2)
    assert "NUMA" in (tree.objects / ".5.o.cmd").read_text()


def test_damaged_objects_that_are_aside_are_thrown_away(tree: Workspace) -> None:
    with tree.making(lambda _: None):
        make(tree, NUMA="y")
    turned(tree, NUMA="n")
    (aside,) = tree.objects_aside()
    assert find_damage(aside) is None
    command = aside / ".3.o.cmd"
    before = command.stat()
    command.write_text(command.read_text().replace("gcc", "gcd"))
    os.utime(command, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert find_damage(aside) == ".3.o.cmd changed after the build (its SHA-256 differs)"
    make(tree, NUMA="n")
    assert turned(tree, NUMA="y").affected == 12, "nothing is taken from what was aside"
    assert not command.exists() or find_damage(command.parent) is None
