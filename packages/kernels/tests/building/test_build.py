"""Kernels are built by a small tree that make and Kconfig treat like a kernel's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ajuste.machine.home import Home
from ajuste.model.error import RequestError, RunError
from ajuste_guest.kernel.fetch import fetch_kernel
from ajuste_kernels.building.build import BuildRequest, build_kernel
from ajuste_kernels.building.built import BuiltKernel, built_kernels, built_names, find_built, remove_built
from small_kernel import OPTIONS, PATCH, RELEASE, small_kernel
from small_kernel import __file__ as small_kernel_file


@dataclass
class Watcher:
    """Remembers what it was told."""

    messages: list[str] = field(default_factory=list)
    expected: list[int | None] = field(default_factory=list)
    count: int = 0

    def say(self, text: str) -> None:
        self.messages.append(text)

    def compiling(self, expected: int | None) -> None:
        self.expected.append(expected)

    def compiled(self, count: int) -> None:
        self.count = count


@dataclass
class Workshop:
    """A home, a tree of sources and a configuration for it."""

    home: Home
    tree: Path
    config: Path
    directory: Path

    def build(self, *settings: str, patches: tuple[Path, ...] = (), name: str | None = None, source: str = "") -> int:
        """Return the number of objects that were compiled."""
        return self.watched(*settings, patches=patches, name=name, source=source)[1].count

    def watched(
        self, *settings: str, patches: tuple[Path, ...] = (), name: str | None = None, source: str = ""
    ) -> tuple[BuiltKernel, Watcher]:
        watcher = Watcher()
        request = BuildRequest(source or str(self.tree), str(self.config), settings, patches, name)
        return build_kernel(request, self.home, watcher), watcher

    def patch(self, text: str, name: str = "turns.patch") -> Path:
        file = self.directory / name
        file.write_text(text)
        return file


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    config = tmp_path / "options.config"
    config.write_text(OPTIONS)
    home = Home(tmp_path / "data", tmp_path / "cache", tmp_path / "state")
    return Workshop(home, small_kernel(tmp_path / "linux"), config, tmp_path)


def contents(directory: Path) -> dict[str, tuple[bytes, int]]:
    files = (file for file in directory.rglob("*") if file.is_file())
    return {str(file): (file.read_bytes(), file.stat().st_mtime_ns) for file in files}


def test_a_built_kernel_is_a_kernel_by_its_name(workshop: Workshop) -> None:
    built, watcher = workshop.watched(name="base")
    image = fetch_kernel("mine:base", workshop.home)
    assert (image.spec, image.release, watcher.count) == ("mine:base", RELEASE, 3)
    assert b"sched_granularity" in image.vmlinuz.read_bytes()
    assert "CONFIG_KYBER=y" in built.directory.joinpath("config").read_text()
    assert image.modules == built.directory / "lib/modules" / RELEASE
    assert [kernel.name for kernel in built_kernels(workshop.home)] == ["base"]


def test_the_sources_are_only_read(workshop: Workshop) -> None:
    before = contents(workshop.tree)
    workshop.build("KYBER=n", patches=(workshop.patch(PATCH),))
    assert contents(workshop.tree) == before


def test_a_kernel_that_was_built_before_is_there_at_once(workshop: Workshop) -> None:
    first, _ = workshop.watched(name="one")
    log = workshop.home.cache / "build" / first.provenance.workspace / "make.log"
    log.unlink()
    again, watcher = workshop.watched(name="two")
    assert (again.key, watcher.messages, log.exists()) == (first.key, [], False)
    assert built_names(workshop.home) == ["one", "two"]


def test_a_variant_compiles_only_what_changed(workshop: Workshop) -> None:
    base, _ = workshop.watched()
    assert workshop.build("KYBER=n") == 0
    assert workshop.build(patches=(workshop.patch(PATCH),)) == 1
    assert workshop.build(name="base") == 0
    # Without the patch the file is another one again, for another kernel of the tree.
    assert workshop.build("HZ=100") == 1
    assert find_built("base", workshop.home).key == base.key


def test_the_way_back_from_an_option_that_every_file_reads_compiles_nothing(workshop: Workshop) -> None:
    base, _ = workshop.watched(name="base")
    there, watcher = workshop.watched("NUMA=y", name="numa")
    assert (watcher.count, watcher.expected) == (3, [3])
    for name in ("base", "numa"):
        remove_built(name, workshop.home)
    back, watcher = workshop.watched(name="base")
    assert (watcher.count, back.key, back.image.sha256) == (0, base.key, base.image.sha256)
    # Another variant of either begins where the least is to be compiled.
    assert workshop.build("NUMA=y", "KYBER=n") == 0
    assert workshop.build("HZ=100") == 0
    again, watcher = workshop.watched("NUMA=y", name="numa")
    assert (watcher.count, again.key) == (0, there.key)


def test_sources_that_changed_are_compiled_for_all_options(workshop: Workshop) -> None:
    workshop.build()
    workshop.build("NUMA=y")
    (workshop.tree / "kernel/core.c").write_text("int core = 2;\n")
    assert workshop.build("NUMA=y") == 1
    assert workshop.build() == 1
    (workshop.tree / "kernel/core.c").write_text("int core = 3;\n")
    assert workshop.build() == 1
    assert workshop.build("NUMA=y") == 1


def test_an_edited_source_is_another_kernel(workshop: Workshop) -> None:
    before, _ = workshop.watched(name="kernel")
    core = workshop.tree / "kernel/core.c"
    core.write_text("int core = 2;\n")
    os.utime(core, (0, 0))  # An old time misleads nobody.
    after, watcher = workshop.watched(name="kernel")
    assert (watcher.count, before.key == after.key) == (1, False)


def test_options_that_are_lost_with_another_are_named(workshop: Workshop) -> None:
    built, _ = workshop.watched("BLOCK=n", name="no-disks")
    assert "CONFIG_KYBER=y" not in built.directory.joinpath("config").read_text()


def test_a_name_tells_what_was_asked_for(workshop: Workshop) -> None:
    built, _ = workshop.watched("KYBER=n", "HZ=1000", patches=(workshop.patch(PATCH),))
    assert built.name == f"{RELEASE}-options-no-kyber-hz-1000-turns"


def test_the_provenance_has_all_that_it_was_made_from(workshop: Workshop) -> None:
    made = workshop.watched("KYBER=n", patches=(workshop.patch(PATCH),))[0].provenance
    assert (made.source, made.settings) == (str(workshop.tree), {"KYBER": "n"})
    assert [patch.name for patch in made.patches] == ["turns.patch"]
    assert made.compiler.startswith("gcc")


def test_an_unknown_option_has_its_nearest_names(workshop: Workshop) -> None:
    with pytest.raises(RequestError, match="option KIBER is not supported by") as caught:
        workshop.build("KIBER=y")
    assert "KYBER" in str(caught.value.hint)


def test_an_option_that_cannot_be_had_is_no_kernel(workshop: Workshop) -> None:
    workshop.config.write_text("CONFIG_MODULES=y\n")
    with pytest.raises(RequestError, match="KYBER=y conflicts with other options: it is n") as caught:
        workshop.build("KYBER=y", "BLOCK=n")
    assert "BLOCK" in str(caught.value.hint)
    assert built_names(workshop.home) == []


@pytest.mark.parametrize("setting", ["NUMA", "=y", "A B=y", 'TEXT=a"b', "TEXT=a\nCONFIG_X=y"])
def test_a_setting_that_is_none(workshop: Workshop, setting: str) -> None:
    with pytest.raises(RequestError, match="--set"):
        workshop.build(setting)


def test_a_compiler_error_is_shown_and_nothing_is_kept_of_it(workshop: Workshop) -> None:
    workshop.build(name="good")
    (workshop.tree / "kernel/core.c").write_text("int core = undeclared;\nint other = also;\n")
    with pytest.raises(RunError, match=r"kernel/core.c:1:12: error: .*undeclared") as caught:
        workshop.build(name="bad")
    log = Path(str(caught.value.hint).rpartition("log of make: ")[2])
    assert "also" in log.read_text()
    assert built_names(workshop.home) == ["good"]
    (workshop.tree / "kernel/core.c").write_text("int core = 3;\n")
    assert workshop.build(name="bad") == 1


def test_a_disk_that_fills_up_is_told_as_such(workshop: Workshop) -> None:
    makefile = workshop.tree / "Makefile"
    full = "\t@echo 'as: /x/fork.o: No space left on device'; false\n"
    makefile.write_text(makefile.read_text() + f"\n$(O)/core.o: full\nfull:\n{full}")
    with pytest.raises(RequestError, match="no disk space left"):
        workshop.build(name="base")
    assert built_names(workshop.home) == []


def test_no_kernel_at_all(workshop: Workshop) -> None:
    (workshop.tree / "Kconfig").unlink()
    with pytest.raises(RequestError, match="not a Linux kernel source: Kconfig not found"):
        workshop.build()
    with pytest.raises(RequestError, match="directory not found"):
        workshop.build(source=str(workshop.directory / "nowhere"))


def test_a_tree_that_was_built_in_gives_only_its_sources(workshop: Workshop) -> None:
    (workshop.tree / ".gitignore").write_text("*.o\n.config\n")
    (workshop.tree / ".config").write_text("CONFIG_HZ=1\n")
    (workshop.tree / "kernel/core.o").write_bytes(b"old")
    built, watcher = workshop.watched()
    source = workshop.home.cache / "build" / built.provenance.workspace / "source"
    assert (watcher.count, (source / "kernel/core.o").exists(), (source / ".config").exists()) == (3, False, False)


def test_a_revision_is_built_whatever_the_work_tree_has(workshop: Workshop) -> None:
    def git(*words: str) -> None:
        who = ("-c", "user.name=Someone", "-c", "user.email=s@example.org")
        subprocess.run(["git", "-C", workshop.tree, *who, *words], check=True, capture_output=True)

    git("init", "--initial-branch=main")
    git("add", ".")
    git("commit", "--message=one")
    (workshop.tree / "kernel/core.c").write_text("int core = 2;\n")
    git("commit", "--all", "--message=two")
    (workshop.tree / "kernel/core.c").write_text("not C")
    assert workshop.build(source=f"git:{workshop.tree}") == 3
    assert workshop.build(source=f"git:{workshop.tree}@main~1") == 1
    with pytest.raises(RequestError, match="revision nothing not found"):
        workshop.build(source=f"git:{workshop.tree}@nothing")
    with pytest.raises(RequestError, match="not a readable git repository"):
        workshop.build(source=f"git:{workshop.directory}")


def test_a_removed_kernel_is_gone_with_its_last_name(workshop: Workshop) -> None:
    directory = workshop.watched(name="one")[0].directory
    workshop.build(name="two")
    remove_built("one", workshop.home)
    assert (built_names(workshop.home), directory.exists()) == (["two"], True)
    remove_built("two", workshop.home)
    assert (built_names(workshop.home), directory.exists()) == ([], False)
    with pytest.raises(RequestError, match="built kernel 'two' not found"):
        fetch_kernel("mine:two", workshop.home)
    assert workshop.build(name="two") == 0


def test_a_damaged_kernel_is_built_again(workshop: Workshop) -> None:
    built, _ = workshop.watched(name="base")
    built.image.vmlinuz.write_bytes(b"")
    with pytest.raises(RequestError, match="mine:base is damaged"):
        fetch_kernel("mine:base", workshop.home)
    workshop.build(name="base")
    assert fetch_kernel("mine:base", workshop.home).sha256 == built.image.sha256


def test_damaged_objects_are_thrown_away_and_all_is_built_anew(workshop: Workshop) -> None:
    built, _ = workshop.watched(name="base")
    objects = workshop.home.cache / "build" / built.provenance.workspace / "objects"
    remove_built("base", workshop.home)
    (core,) = objects.rglob("core.o")
    before = core.stat()
    content = core.read_bytes()
    core.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    os.utime(core, ns=(before.st_atime_ns, before.st_mtime_ns))
    again, watcher = workshop.watched(name="base")
    assert watcher.count == 3, "all of them"
    assert core.read_bytes() == content
    assert again.image.sha256 == built.image.sha256
    remove_built("base", workshop.home)
    assert workshop.watched(name="base")[1].count == 0


BUILD = """
import signal, sys
# Whoever runs the tests may ignore Ctrl-C, and children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path[:0] = {path!r}
from test_build import Watcher
from pathlib import Path
from ajuste.machine.home import Home
from ajuste_kernels.building.build import BuildRequest, build_kernel
root = Path({root!r})
home = Home(root / "data", root / "cache", root / "state")
build_kernel(BuildRequest(str(root / "linux"), str(root / "options.config"), name="slow"), home, Watcher())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_build_goes_on_and_leaves_no_process(workshop: Workshop, number: signal.Signals) -> None:
    makefile = workshop.tree / "Makefile"
    makefile.write_text(makefile.read_text() + "\n$(O)/core.o: | wait\nwait: $(O)/fair.o\n\t@sleep 1234.5\n")
    script = BUILD.format(
        path=[str(Path(file).parent) for file in (__file__, small_kernel_file)], root=str(workshop.directory)
    )
    process = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL)
    fair = "build/*/objects/fair.o"
    while not list(workshop.home.cache.glob(fair)):
        time.sleep(0.05)
    process.send_signal(number)
    process.wait(timeout=60)
    while _sleeps(workshop.tree):
        time.sleep(0.05)
    assert built_names(workshop.home) == []
    makefile.write_text(makefile.read_text().replace("@sleep 1234.5", "@true"))
    workshop.build(name="slow")
    assert fetch_kernel("mine:slow", workshop.home).release == RELEASE


def _sleeps(tree: Path) -> bool:
    """Return whether a make of this tree is still at work."""
    for cwd in Path("/proc").glob("[0-9]*/cwd"):
        try:
            if tree.parent in cwd.readlink().parents:
                return True
        except OSError:
            continue
    return False
