"""Schedulers written in BPF are built with the kernel that they are for, by tools that are played here."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ajuste.machine.home import Home
from ajuste.model.error import RequestError, RunError
from ajuste_guest.kernel.schedulers import read_schedulers
from ajuste_kernels.building.build import BuildRequest, build_kernel
from ajuste_kernels.building.built import BuiltKernel, find_built
from small_kernel import EXAMPLES, Silent, small_kernel

LLVM = {
    "clang-98": "#!/bin/sh\necho 'Debian clang version 19.1.7'\n",
    "ld.lld-98": "#!/bin/sh\n",
    "llvm-ar-98": "#!/bin/sh\n",
    "llvm-strip-98": '#!/bin/sh\n{ cat "$3"; echo stripped; } > "$2"\n',
    "clang-97": "#!/bin/sh\necho 'without its linker'\n",
    "pahole": "#!/bin/sh\n",
}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "data", tmp_path / "cache", tmp_path / "state")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    tree = small_kernel(tmp_path / "linux")
    for name, text in EXAMPLES.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    return tree


@pytest.fixture
def llvm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, text in LLVM.items():
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    monkeypatch.setattr("ajuste_kernels.building.schedulers._SUFFIXES", ("-97", "-98"))
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    return tools


def built(
    tree: Path, home: Home, *settings: str, config: str = "lab-ext", schedulers: tuple[Path, ...] = ()
) -> BuiltKernel:
    request = BuildRequest(str(tree), config, settings, name="ext", schedulers=schedulers)
    return build_kernel(request, home, Silent())


@pytest.mark.usefixtures("llvm")
def test_a_kernel_for_them_comes_with_the_schedulers_of_its_sources(tree: Path, home: Home) -> None:
    kernel = built(tree, home)
    folder = find_built("ext", home).image.schedulers
    assert folder is not None
    assert folder == kernel.image.schedulers
    texts = {file.name: file.read_text() for file in folder.iterdir()}
    assert texts == {name: f"{name} -98\nstripped\n" for name in ("scx_simple", "scx_qmap")}
    assert kernel.provenance.compiler.endswith("Debian clang version 19.1.7")


@pytest.mark.usefixtures("llvm")
def test_other_kernels_have_none(tree: Path, home: Home) -> None:
    assert built(tree, home, config="lab").image.schedulers is None
    assert built(tree, home, "SCHED_CLASS_EXT=n").image.schedulers is None


@pytest.mark.usefixtures("llvm")
def test_a_scheduler_that_does_not_build_is_an_error_and_no_kernel_is_kept(tree: Path, home: Home) -> None:
    (tree / "tools/sched_ext/Makefile").write_text("scx_%:\n\t@echo 'scx.c:7:1: error: no such kfunc'; false\n")
    with pytest.raises(RunError, match=r"the schedulers do not build: scx.c:7:1: error: no such kfunc"):
        built(tree, home)
    with pytest.raises(RequestError, match="built kernel 'ext' not found"):
        find_built("ext", home)


def test_their_compiler_is_asked_for_before_anything_is_built(
    tree: Path, home: Home, llvm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (llvm / "ld.lld-98").unlink()
    with pytest.raises(RequestError, match=r"lab-ext builds schedulers, which requires clang") as refused:
        built(tree, home)
    assert "apt install clang-19 llvm-19 lld-19" in str(refused.value.hint)
    assert not list((home.cache / "build").glob("*/objects"))


@pytest.mark.usefixtures("llvm")
def test_a_scheduler_that_was_built_elsewhere_is_kept_with_the_kernel(tree: Path, home: Home, tmp_path: Path) -> None:
    elsewhere = tmp_path / "scx_elsewhere"
    shutil.copy("/bin/true", elsewhere)
    without = built(tree, home)
    kernel = built(tree, home, schedulers=(elsewhere,))
    assert kernel.image.schedulers is not None
    assert {file.name for file in kernel.image.schedulers.iterdir()} == {"scx_simple", "scx_qmap", "scx_elsewhere"}
    assert subprocess.run([kernel.image.schedulers / "scx_elsewhere"], check=False).returncode == 0
    digest = hashlib.sha256(elsewhere.read_bytes()).hexdigest()
    assert [(used.name, used.sha256) for used in kernel.provenance.schedulers] == [("scx_elsewhere", digest)]
    # Another program is another kernel, though nothing of it is compiled again.
    shutil.copy("/bin/false", elsewhere)
    other = built(tree, home, schedulers=(elsewhere,))
    assert len({without.key, kernel.key, other.key}) == 3
    assert other.provenance.compiled == 0


@pytest.mark.usefixtures("llvm")
@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("bpfland", b"\x7fELF", "wrong file name"),
        ("scx_../x", b"", "wrong file name"),
        ("scx_text", b"#!/bin/sh\n", "not an ELF file"),
        ("scx_missing", None, "No such file"),
        ("scx_simple", b"\x7fELF", "the sources already have scx_simple"),
    ],
)
def test_what_cannot_be_a_scheduler_is_refused(
    tree: Path, home: Home, tmp_path: Path, name: str, content: bytes | None, words: str
) -> None:
    file = tmp_path / "given" / Path(name).name
    file.parent.mkdir()
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(RequestError, match=words):
        built(tree, home, schedulers=(file,))
    assert not list(home.cache.glob("built/names/*"))


@pytest.mark.usefixtures("llvm")
def test_a_scheduler_that_is_cut_off_is_an_error_and_no_kernel_is_kept(tree: Path, home: Home, tmp_path: Path) -> None:
    file = tmp_path / "scx_cut"
    file.write_bytes(Path("/bin/true").read_bytes()[:100])
    with pytest.raises(RunError, match=r"cannot store .*scx_cut with the kernel"):
        built(tree, home, schedulers=(file,))
    assert not list(home.cache.glob("built/names/*"))


@pytest.mark.usefixtures("llvm")
def test_two_schedulers_of_one_name_are_refused(tree: Path, home: Home, tmp_path: Path) -> None:
    files = tuple(tmp_path / place / "scx_twin" for place in ("a", "b"))
    for file in files:
        file.parent.mkdir()
        shutil.copy("/bin/true", file)
    with pytest.raises(RequestError, match="a/scx_twin has the same name"):
        built(tree, home, schedulers=files)


def test_a_kernel_that_cannot_load_it_is_refused(tree: Path, home: Home, tmp_path: Path) -> None:
    file = tmp_path / "scx_fine"
    shutil.copy("/bin/true", file)
    with pytest.raises(RequestError, match="cannot load scx_fine: it lacks SCHED_CLASS_EXT=y") as refused:
        built(tree, home, config="lab", schedulers=(file,))
    assert "--config lab-ext" in str(refused.value.hint)


def test_a_program_has_another_name_than_its_file_if_that_is_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "a=b" / "scx_mine"
    file.parent.mkdir()
    shutil.copy("/bin/true", file)
    read = read_schedulers((file, Path(f"scx_new={file}")))
    assert [(scheduler.name, scheduler.file) for scheduler in read] == [("scx_mine", file), ("scx_new", file)]
    with pytest.raises(RequestError, match="same name") as refused:
        read_schedulers((file, file))
    assert f"scx_mine_2={file}" in str(refused.value.hint)


def test_what_a_project_names_is_in_the_project(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "build").mkdir(parents=True)
    shutil.copy("/bin/true", project / "build/scx_mine")
    shutil.copy("/bin/true", tmp_path / "scx_out")
    (project / "scx_link").symlink_to("../scx_out")
    read = read_schedulers((Path("build/scx_mine"), Path("scx_new=build/scx_mine")), project)
    assert [(scheduler.name, scheduler.file) for scheduler in read] == [
        ("scx_mine", project / "build/scx_mine"),
        ("scx_new", project / "build/scx_mine"),
    ]
    for outside in ("../scx_out", "scx_new=../scx_out", str(tmp_path / "scx_out"), "scx_link"):
        with pytest.raises(RequestError, match="outside of"):
            read_schedulers((Path(outside),), project)
