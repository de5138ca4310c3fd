"""Needed libraries are compared with what the dynamic linker itself says (LD_TRACE_LOADED_OBJECTS, as ldd does)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ajuste.model.error import RequestError
from ajuste_guest.executor.tree import needed_by

compiler = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")


def traced(program: Path) -> set[Path]:
    """The real files that the linker would load."""
    linker = subprocess.run(
        ["/lib64/ld-linux-x86-64.so.2", program],
        env={"LD_TRACE_LOADED_OBJECTS": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return {Path(path).resolve() for path in re.findall(r"(?:=> |^\t)(/\S+)", linker, re.MULTILINE)}


def compile_c(source: str, out: Path, *options: str) -> Path:
    subprocess.run(["gcc", "-x", "c", "-", "-o", out, *options], input=source, text=True, check=True)
    return out


@pytest.mark.parametrize("name", ["ls", "bash", "git", "tar", "perl", "gcc", "find"])
def test_the_linker_agrees(name: str) -> None:
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"{name} is not installed")
    libraries = {path.resolve() for path in needed_by(Path(program)).files}
    assert libraries - traced(Path(program)) <= {Path("/lib/x86_64-linux-gnu/libgcc_s.so.1").resolve()}
    assert traced(Path(program)) <= libraries


@compiler
def test_a_static_program_needs_nothing(tmp_path: Path) -> None:
    program = compile_c("int main(void) { return 0; }", tmp_path / "static", "-static")
    assert needed_by(program).files == ()


@compiler
@pytest.mark.parametrize("kind", ["--enable-new-dtags", "--disable-new-dtags"])
def test_run_paths_relative_to_the_program_are_followed(tmp_path: Path, kind: str) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "bin").mkdir()
    library = compile_c("int f(void) { return 7; }", tmp_path / "lib/libseven.so", "-shared", "-fPIC")
    program = compile_c(
        "int f(void); int main(void) { return f(); }",
        tmp_path / "bin/program",
        f"-L{library.parent}",
        "-lseven",
        f"-Wl,-rpath,$ORIGIN/../lib,{kind}",
    )
    libraries = {path.resolve() for path in needed_by(program).files}
    assert library in libraries
    assert libraries == traced(program)


@compiler
def test_the_rpath_of_a_program_serves_its_libraries_but_its_runpath_does_not(tmp_path: Path) -> None:
    inner = compile_c("int g(void) { return 1; }", tmp_path / "libinner.so", "-shared", "-fPIC")
    outer = compile_c(
        "int g(void); int f(void) { return g(); }", tmp_path / "libouter.so", "-shared", "-fPIC", f"-L{tmp_path}",
        "-linner",
    )  # fmt: skip
    source = "int f(void); int main(void) { return f(); }"
    options = [f"-L{tmp_path}", "-louter", "-Wl,--allow-shlib-undefined", f"-Wl,-rpath,{tmp_path}"]
    by_rpath = compile_c(source, tmp_path / "rpath", *options, "-Wl,--disable-new-dtags")
    by_runpath = compile_c(source, tmp_path / "runpath", *options, "-Wl,--enable-new-dtags")
    assert {inner, outer} <= set(needed_by(by_rpath).files)
    assert traced(by_rpath) == {path.resolve() for path in needed_by(by_rpath).files}
    with pytest.raises(RequestError, match=r"libinner\.so.*not found"):
        needed_by(by_runpath)


@compiler
def test_a_library_of_the_linkers_cache_gets_a_link_where_a_guest_finds_it(tmp_path: Path) -> None:
    library = compile_c("int f(void) { return 7; }", tmp_path / "libseven.so", "-shared", "-fPIC")
    program = compile_c("int f(void); int main(void) { return f(); }", tmp_path / "p", f"-L{tmp_path}", "-lseven")
    needed = needed_by(program, {"libseven.so": library})
    assert needed.links == ((Path("/usr/lib/libseven.so"), library),)


@compiler
def test_a_program_that_ends_threads_gets_the_unwinder(tmp_path: Path) -> None:
    source = "#include <pthread.h>\nint main(void) { pthread_exit(0); }"
    names = {path.name for path in needed_by(compile_c(source, tmp_path / "p", "-pthread")).files}
    assert "libgcc_s.so.1" in names


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"hello\n", b"\x7fELF" + bytes(range(256)) * 4])
def test_what_is_no_program_is_refused(tmp_path: Path, content: bytes) -> None:
    program = tmp_path / "program"
    program.write_bytes(content)
    with pytest.raises(RequestError, match="expected an x86-64 program, or a script"):
        needed_by(program)


def test_no_program_is_ever_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "execve", None)
    monkeypatch.setattr(subprocess, "Popen", None)
    assert needed_by(Path("/bin/ls"), {}).files
