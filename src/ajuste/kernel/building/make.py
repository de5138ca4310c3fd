"""Running the kernel's own make: counted, kept in a log, and ended in order; and the programs that building takes."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from ajuste.catalogue.programs import install_hint
from ajuste.kernel.building.workspace import Workspace
from ajuste.kernel.cache import out_of_space
from ajuste.machine.home import Home
from ajuste.model.error import RequestError, RunError

Watch = Callable[[int], None]
"""Told how many objects have been compiled since make began."""

# The same sources and options give the same kernel, whoever builds it and whenever.
REPRODUCIBLE: Final = {
    "KBUILD_BUILD_TIMESTAMP": "Thu Jan  1 00:00:00 UTC 1970",
    "KBUILD_BUILD_USER": "ajuste",
    "KBUILD_BUILD_HOST": "ajuste",
    "KBUILD_BUILD_VERSION": "1",
}
_CACHE_SIZE: Final = "10G"
_END_SECONDS: Final = 20
_ERROR_LINES: Final = 4

_COMPILED: Final = re.compile(r"^ {2}(?:CC|AS)(?: \[M\])? +\S")
_FULL: Final = re.compile(r"no space left on device|disk quota exceeded", re.IGNORECASE)
_ERRORS: Final = (
    re.compile(r"^[^\s:]+:\d+(?::\d+)?: (?:fatal )?error: "),
    re.compile(r"^(?:gcc|cc1|as): (?:fatal )?error: "),
    re.compile(r"^[^\s:]+:\d+: (?:syntax error|invalid|unknown|missing|can't open)"),
    re.compile(r"^\S*ld: .*|.*undefined reference to"),
    re.compile(r"^(?:ERROR|FAILED|Error): "),
    re.compile(r".*: not found$|.*: command not found$"),
    re.compile(r"^.*make(?:\[\d+\])?: \*\*\* (?!\[|Waiting)"),
    re.compile(r"^.*make(?:\[\d+\])?: \*\*\* "),
)


def run_make(
    tree: Workspace,
    home: Home,
    targets: Sequence[str],
    *,
    jobs: int = 1,
    watch: Watch = lambda _: None,
    cached: bool = False,
) -> None:
    """Make ``targets`` (and ``NAME=VALUE``) of the tree's sources in its ``objects``, with a log.

    ``cached`` asks ccache for each file, which costs a quarter of the time for those it does not have. Make ends with
    this process. Raises RunError with the compiler's first error, RequestError where the disk is full.
    """
    words = [f"O={tree.objects}", "LOCALVERSION=", "DEPMOD=true", *targets]
    run_make_in(tree.source, tree, home, words, "the kernel does not build", jobs=jobs, watch=watch, cached=cached)


def run_make_in(
    directory: Path,
    tree: Workspace,
    home: Home,
    words: Sequence[str],
    complaint: str,
    *,
    jobs: int = 1,
    watch: Watch = lambda _: None,
    cached: bool = False,
) -> None:
    """Run make as ``run_make``, with only ``words``, in a directory of the sources; ``complaint`` begins errors."""
    command = ["setpriv", "--pdeathsig", "TERM", "--", "make", f"-j{jobs}", "--output-sync=target", *words]
    with tree.log.open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=_environment(tree, home, cached=cached),
            process_group=0,
        )
        try:
            assert process.stdout
            compiled = 0
            for line in process.stdout:
                log.write(line)
                if _COMPILED.match(line.decode(errors="replace")):
                    compiled += 1
                    watch(compiled)
            process.wait()
        finally:
            _end(process)
    if process.returncode:
        raise _failure(tree, words, complaint)


def _environment(tree: Workspace, home: Home, *, cached: bool) -> dict[str, str]:
    # Nothing of the caller that could change what is built.
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    cache = _cache(tree, home, kept.get("PATH", os.defpath)) if cached else {"CCACHE_DISABLE": "1"}
    return {**kept, **cache, **REPRODUCIBLE, "LC_ALL": "C"}


def _cache(tree: Workspace, home: Home, path: str) -> dict[str, str]:
    # ccache is found as gcc, so that make's commands are the same with and without it: it compiles again what it would
    # do by another command.
    program = shutil.which("ccache")
    if program is None:
        return {}
    disguised = tree.directory / "compiler"
    disguised.mkdir(exist_ok=True)
    gcc = disguised / "gcc"
    gcc.unlink(missing_ok=True)
    gcc.symlink_to(program)
    return {
        "PATH": f"{disguised}:{path}",
        "CCACHE_DIR": str(home.cache / "ccache"),
        "CCACHE_MAXSIZE": _CACHE_SIZE,
        # Each of the thousands of files includes hundreds: they are read once, and then known by inode and times.
        "CCACHE_INODECACHE": "1",
    }


def _end(process: subprocess.Popen[bytes]) -> None:
    # Make removes an unfinished file when it is told to end, and continues from there another time.
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        os.killpg(process.pid, number)
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            continue


def _failure(tree: Workspace, words: Sequence[str], complaint: str) -> RunError | RequestError:
    lines = tree.log.read_text(errors="replace").splitlines()
    if any(_FULL.search(line) for line in lines):
        return out_of_space(tree.directory, "a kernel's objects")
    reported = first_error(lines) or [f"make {' '.join(words)} failed"]
    kept = tree.log.with_name("failed.log")
    tree.log.replace(kept)
    excerpt = "\n".join(line.replace(f"{tree.directory}/", "") for line in reported[1:])
    return RunError(
        f"{complaint}: {reported[0].replace(f'{tree.directory}/', '')}",
        hint=(f"{excerpt}\n" if excerpt.strip() else "") + f"see the log of make: {kept}",
    )


def first_error(lines: Sequence[str]) -> list[str]:
    """Return the first error of a compiler, or else of a linker, of make, …, with its further lines."""
    for pattern in _ERRORS:
        for number, line in enumerate(lines):
            if pattern.match(line):
                below = [text for text in lines[number + 1 : number + 1 + _ERROR_LINES] if text.startswith((" ", "\t"))]
                return [line, *(text for text in below if not _COMPILED.match(text))]
    return []


def jobs_here() -> int:
    """Return the number of compilers to run at once."""
    return len(os.sched_getaffinity(0)) + 1


# The programs and headers that building a kernel takes.


_PROGRAMS: Final = {
    "make": "make",
    "gcc": "gcc",
    "ld": "binutils",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "perl": "perl-base",
    "xz": "xz-utils",
    "setpriv": "util-linux",
}
_HEADERS: Final = {"gelf.h": "libelf-dev"}

# What only some options take.
_PROGRAMS_FOR: Final = {
    "KERNEL_ZSTD": ("zstd", "zstd"),
    "KERNEL_LZ4": ("lz4", "lz4"),
    "KERNEL_LZO": ("lzop", "lzop"),
    "DEBUG_INFO_BTF": ("pahole", "dwarves"),
}
_HEADERS_FOR: Final = {
    "SYSTEM_TRUSTED_KEYRING": ("openssl/bio.h", "libssl-dev"),
    "MODULE_SIG": ("openssl/bio.h", "libssl-dev"),
}


def require_tools() -> None:
    """Raise RequestError, with the packages, for missing programs that every kernel takes."""
    lacking = {program: package for program, package in _PROGRAMS.items() if shutil.which(program) is None}
    lacking |= {header: package for header, package in _HEADERS.items() if not _has_header(header)}
    require_none(lacking, "a kernel")


def require_tools_for(options: Mapping[str, str]) -> None:
    """Raise RequestError, with the packages, for missing programs that these options take besides."""
    lacking = {
        program: package
        for name, (program, package) in _PROGRAMS_FOR.items()
        if options.get(name) == "y" and shutil.which(program) is None
    }
    lacking |= {
        header: package
        for name, (header, package) in _HEADERS_FOR.items()
        if options.get(name) == "y" and not _has_header(header)
    }
    require_none(lacking, "a kernel")


def compiler() -> str:
    """Return what compiles and links, with their versions."""
    return "; ".join(_first_line(program) for program in ("gcc", "ld"))


def _first_line(program: str) -> str:
    process = subprocess.run(
        [program, "--version"], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    return (process.stdout.splitlines() or [program])[0]


def _has_header(name: str) -> bool:
    if any((Path(folder) / name).exists() for folder in ("/usr/include", "/usr/local/include")):
        return True
    return any(Path("/usr/include").glob(f"*-linux-gnu/{name}"))


def require_none(lacking: dict[str, str], what: str) -> None:
    """Raise RequestError if programs or headers, by package, are ``lacking`` for ``what``."""
    if lacking:
        raise RequestError(
            f"building {what} requires {', '.join(sorted(lacking))}, not found on this machine",
            hint=install_hint(*sorted(set(lacking.values()))),
        )
