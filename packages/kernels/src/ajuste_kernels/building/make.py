"""The directory that a kernel is built in, and the kernel's own make there: counted, kept in a log, ended in order."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from ajuste.machine.files import file_sha256, locked, read_kept, read_sealed, replace_file, sealed, unsealed
from ajuste.machine.home import Home
from ajuste.model.error import RequestError, RunError
from ajuste.model.wording import Say
from ajuste.outputs.builds import compiles, first_error, says_full
from ajuste_guest.kernel.cache import out_of_space
from ajuste_guest.kernel.toolchain import REPRODUCIBLE, require_none
from ajuste_kernels.building.built import LINK, PROGRAM, Manifest, SourceOrigin, digest_texts, list_files

# A tree to build in: a copy of the sources, whose unchanged files keep their times, and the objects made from it.


_NEW: Final = ".ajuste-new"
_COMPLETE: Final = ".ajuste-complete"
_CHECKSUMS: Final = ".ajuste-checksums"
_UNSETTLED: Final = ".ajuste-unsettled"
_MADE: Final = frozenset({".o", ".a", ".ko", ".so", ".bin"})
_IMAGES: Final = frozenset({"vmlinux", "bzImage"})
# No step of make writes for longer than that and leaves a file that looks whole.
_UNFINISHED_SECONDS: Final = 120.0
# Size, time of the last change in ns, SHA-256.
_RECORD: Final = TypeAdapter(dict[str, tuple[int, int, str]])

Watch = Callable[[int], None]
"""A receiver of the number of objects compiled since make began."""

_CACHE_SIZE: Final = "10G"
_END_SECONDS: Final = 20

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


@dataclass(frozen=True)
class Edit:
    """A file after patches: its content, or ``None`` where they remove it."""

    content: bytes | None
    program: bool = False

    @property
    def mark(self) -> str:
        """Return the entry of a manifest."""
        assert self.content is not None
        return f"{PROGRAM if self.program else 'f'}:patched:{digest_texts([self.content.decode('latin-1')])}"


Edits = Mapping[str, Edit]


@dataclass(frozen=True)
class Workspace:
    """The place of a build: ``directory`` has ``source``, ``objects``, others ``aside`` and what is known of them. One
    process at a time: see ``workspace``.
    """

    directory: Path

    @property
    def source(self) -> Path:
        return self.directory / "source"

    @property
    def objects(self) -> Path:
        return self.directory / "objects"

    @property
    def aside(self) -> Path:
        """Return the directory of objects that were made of the same sources with other options."""
        return self.directory / "aside"

    def objects_aside(self) -> list[Path]:
        return list(self.aside.iterdir()) if self.aside.is_dir() else []

    @property
    def log(self) -> Path:
        """Return the output of the last make."""
        return self.directory / "make.log"

    @property
    def _state(self) -> Path:
        return self.directory / "manifest.json"

    def update(self, origin: SourceOrigin, edits: Edits) -> None:
        """Make ``source`` what ``origin`` has, with ``edits``. Files that are so already keep their times, others are
        newer than all that was made of them, so that make sees exactly what changed.
        """
        wanted = {path: mark for path, mark in origin.manifest.items() if path not in edits}
        wanted |= {path: edit.mark for path, edit in edits.items() if edit.content is not None}
        present: dict[str, str] = read_sealed(self._state)
        changed = [path for path, mark in wanted.items() if present.get(path) != mark]
        gone = [path for path in present if path not in wanted]
        if not changed and not gone:
            return
        _refuse_detours(wanted)
        # Whatever happens meanwhile: these are to be written again.
        self._remember(
            {path: mark for path, mark in present.items() if wanted.get(path) == mark} | dict.fromkeys(changed, "?")
        )
        fresh = self.empty
        if any(self.source.iterdir()):
            for path in (*gone, *changed):
                (self.source / path).unlink(missing_ok=True)
        # A file can then take the place of a directory.
        for deepest in sorted({path.rpartition("/")[0] for path in gone}, reverse=True):
            folder = deepest
            while folder and (self.source / folder).is_dir() and not any((self.source / folder).iterdir()):
                (self.source / folder).rmdir()
                folder = folder.rpartition("/")[0]
        for folder in sorted({path.rpartition("/")[0] for path in changed}):
            (self.source / folder).mkdir(parents=True, exist_ok=True)
        origin.write([path for path in changed if path not in edits], self.source)
        for path in changed:
            if path in edits:
                edit = edits[path]
                assert edit.content is not None
                (self.source / path).write_bytes(edit.content)
                (self.source / path).chmod(0o755 if edit.program else 0o644)
            elif not fresh and not wanted[path].startswith(LINK):
                _renew(self.source / path)
        self._remember(wanted)

    @property
    def empty(self) -> bool:
        """Return whether nothing was ever made of the sources."""
        return not any(self.objects.iterdir()) and not self.objects_aside()

    @property
    def complete(self) -> bool:
        """Return whether the objects became a whole kernel, and most of them still are what they were then."""
        return (self.objects / _COMPLETE).exists()

    def set_complete(self, complete: bool) -> None:
        if complete:
            (self.objects / _COMPLETE).touch()
        else:
            (self.objects / _COMPLETE).unlink(missing_ok=True)

    def object_count(self) -> int:
        return sum(1 for _ in self.objects.rglob("*.o"))

    @contextmanager
    def making(self, say: Say) -> Iterator[None]:
        """Guard the objects while make runs. If this process is killed meanwhile, what make was at is made again the
        next time. Objects that are not what make left are thrown away, and all is made anew.
        """
        marker = self.directory / "making"
        if marker.exists():
            _remove_unfinished(self.objects)
            unsettle(self.objects)
        if damage := find_damage(self.objects):
            say(f"the objects of an earlier build are damaged ({damage}): building all again")
            shutil.rmtree(self.objects)
            self.objects.mkdir()
        marker.touch()
        try:
            yield
            _record(self.objects)
        except BaseException:
            unsettle(self.objects)
            raise
        finally:
            marker.unlink()

    def _remember(self, manifest: Manifest) -> None:
        replace_file(self._state, sealed(json.dumps(dict(manifest))).encode())


def unsettle(objects: Path) -> None:
    """Record that some of ``objects`` are newer than what is recorded of them."""
    (objects / _UNSETTLED).touch()


def find_damage(objects: Path) -> str | None:
    """Say what of ``objects`` changed since they were recorded, or None; unsettled ones only of unchanged size and
    time.
    """
    try:
        record = _RECORD.validate_json(unsealed(read_kept(objects / _CHECKSUMS)))
    except FileNotFoundError:
        return None if not any(objects.glob("*")) or (objects / _UNSETTLED).exists() else f"{_CHECKSUMS} is missing"
    except (OSError, ValueError):
        return f"{_CHECKSUMS} cannot be read"
    unsettled = (objects / _UNSETTLED).exists()
    for name, (size_bytes, time_ns, digest) in record.items():
        try:
            status = (objects / name).lstat()
            if unsettled and (status.st_size, status.st_mtime_ns) != (size_bytes, time_ns):
                continue
            if file_sha256(objects / name) != digest:
                return f"{name} changed after the build (its SHA-256 differs)"
        except OSError as error:
            if not unsettled:
                return f"{name}: {error.strerror}"
    return None


def _record(objects: Path) -> None:
    record = {}
    for name, kind, status in list_files(objects):
        if kind != LINK and not name.startswith(".ajuste-"):
            record[name] = (status.st_size, status.st_mtime_ns, file_sha256(objects / name))
    temporary = objects / f"{_CHECKSUMS}.new"
    temporary.write_text(sealed(json.dumps(record)), encoding="utf-8")
    temporary.replace(objects / _CHECKSUMS)
    (objects / _UNSETTLED).unlink(missing_ok=True)


def _remove_unfinished(objects: Path) -> None:
    # What make was writing when it was killed may be there in part.
    made = [file for file in objects.rglob("*") if file.suffix in _MADE or file.name in _IMAGES]
    times = {file: file.lstat().st_mtime for file in made}
    latest = max(times.values(), default=0.0)
    for file, time in times.items():
        if time > latest - _UNFINISHED_SECONDS:
            file.unlink()


def _renew(file: Path) -> None:
    # Other trees may share the file: write a new one, with the time of now.
    if file.stat().st_nlink > 1:
        copy = file.with_name(file.name + _NEW)
        copy.write_bytes(file.read_bytes())
        copy.chmod(file.stat().st_mode)
        copy.replace(file)
    os.utime(file)


def _refuse_detours(manifest: Manifest) -> None:
    # No file may lie behind a symbolic link or outside the tree. Raises RequestError.
    links = {path for path, mark in manifest.items() if mark.startswith(LINK)}
    for path in manifest:
        parts = path.split("/")
        above = ("/".join(parts[:count]) for count in range(1, len(parts)))
        if path.startswith("/") or ".." in parts or any(place in links for place in above):
            raise RequestError(f"{path} is outside the source tree; expected a path within it")


@contextmanager
def workspace(origin: SourceOrigin, home: Home, say: Say) -> Iterator[Workspace]:
    """Yield the tree for all versions and variants of an origin, to be used by nobody else meanwhile."""
    directory = home.cache / "build" / digest_texts([origin.place])[:16]
    with locked(directory / "lock", waiting=lambda: say(f"waiting for another ajuste that is building {origin.title}")):
        for part in ("source", "objects"):
            (directory / part).mkdir(exist_ok=True)
        (directory / "origin").write_text(origin.place + "\n", encoding="utf-8", errors="surrogateescape")
        # Make resolves links itself: one name for the directory keeps its commands the same.
        yield Workspace(directory.resolve())


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
    # Nothing of the caller that could change what is built.
    inherited = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    cache = _cache(tree, home, inherited.get("PATH", os.defpath)) if cached else {"CCACHE_DISABLE": "1"}
    with tree.log.open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**inherited, **cache, **REPRODUCIBLE, "LC_ALL": "C"},
            process_group=0,
        )
        try:
            assert process.stdout
            compiled = 0
            for line in process.stdout:
                log.write(line)
                if compiles(line.decode(errors="replace")):
                    compiled += 1
                    watch(compiled)
            process.wait()
        finally:
            _end(process)
    if process.returncode:
        raise _failure(tree, words, complaint)


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
    # Make removes an unfinished file when it gets a signal to end, and continues from there another time.
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
    if says_full(lines):
        return out_of_space(tree.directory, "a kernel's objects")
    reported = first_error(lines) or [f"make {' '.join(words)} failed"]
    failed_log = tree.log.with_name("failed.log")
    tree.log.replace(failed_log)
    excerpt = "\n".join(line.replace(f"{tree.directory}/", "") for line in reported[1:])
    return RunError(
        f"{complaint}: {reported[0].replace(f'{tree.directory}/', '')}",
        hint=(f"{excerpt}\n" if excerpt.strip() else "") + f"see the log of make: {failed_log}",
        of_candidate=True,
    )


def jobs_here() -> int:
    """Return the number of compilers to run at once."""
    return len(os.sched_getaffinity(0)) + 1


# The programs and headers that building a kernel takes.


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


def _has_header(name: str) -> bool:
    if any((Path(folder) / name).exists() for folder in ("/usr/include", "/usr/local/include")):
        return True
    return any(Path("/usr/include").glob(f"*-linux-gnu/{name}"))
