"""The directory where BPF schedulers of a study file are built from their sources, with the caller's tools."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ajuste.catalogue.programs import install_hint, require_git
from ajuste.executor.host.caller import LAST_LINES, Caller, finished, invoking_user
from ajuste.machine.files import remove_file, write_text
from ajuste.machine.home import Home
from ajuste.model.error import RequestError, RunError
from ajuste.model.kernel import KernelImage
from ajuste.model.wording import Say
from ajuste.outputs.builds import first_error, says_full
from ajuste.study.schema import SchedulerTable
from ajuste_guest.contained import contained_folder, is_cached, keep_program, put_file, read_program
from ajuste_guest.kernel.fetch import fetch_kernel
from ajuste_guest.kernel.schedulers import path_within
from ajuste_guest.kernel.symbols import read_vmlinux
from ajuste_kernels.building.schedulers import require_llvm

# Other transports, such as ext, run commands (gitremote-helpers(7)).
_TRANSPORTS: Final = (
    "-c",
    "protocol.allow=never",
    "-c",
    "protocol.https.allow=always",
    "-c",
    "protocol.file.allow=always",
)


def build_scheduler(table: SchedulerTable, kernel: str | None, home: Home, say: Say) -> str:
    """Build the scheduler of a study file for the kernel of the spec ``kernel``, if any, and return the hash of its
    program. Raises RequestError, RunError.
    """
    # By what it is built from and never by the hash in the file: who edits a commit or a text means another program.
    assert table.build is not None
    image = fetch_kernel(kernel, home, say=say) if kernel else None
    about = image.sha256 if image else ""
    recipe = table.model_copy(update={"sha256": None})
    if digest := already_built(recipe, about, home):
        return digest
    say(f"building {table.name}")
    with scheduler_workplace(home, table.build) as workplace:
        return workplace.build_once(recipe, workplace.toolchain(image), about)


@dataclass(frozen=True)
class SchedulerWorkplace:
    """A directory where schedulers are built with the caller's tools. Objects of an earlier commit are reused, as with
    ``git bisect run``, but not the program itself.
    """

    home: Home
    caller: Caller
    directory: Path

    @property
    def tree(self) -> Path:
        return self.directory / "tree"

    def toolchain(self, image: KernelImage | None) -> dict[str, str]:
        """Return the environment of builds for the kernel ``image``: a file with its types, and a compiler of BPF."""
        environment = {}
        if image is not None:
            types = self.directory / "vmlinux"
            types.write_bytes(read_vmlinux(image.vmlinuz))
            environment["VMLINUX_BTF"] = str(types)
        with suppress(RequestError):  # A repository may bring its own compiler.
            clang = f"clang{require_llvm().suffix}"
            environment |= {"CLANG": clang, "BPF_CLANG": clang}
        return environment

    def build(self, table: SchedulerTable, environment: Mapping[str, str] = MappingProxyType({})) -> str:
        """Build the program into the cache and return its hash. Raises RequestError, RunError."""
        assert table.build is not None
        assert table.program is not None
        if table.repository is not None:
            _check_out(self.caller, table, self.tree)
        for name, text in table.source.items():
            write_text(self.tree / name, text)
        file = path_within(self.tree, table.program, None)
        # An earlier commit's program must not pass for this one's.
        remove_file(file)
        command = shlex.join(table.build)
        log = self.directory / "log"
        try:
            with log.open("wb") as out:
                surroundings = {**self.caller.environment, **environment}
                code = finished(table.build, self.tree, out.fileno(), surroundings, self.caller.options)
        except OSError as failure:
            raise RunError(
                f'cannot start "{command}" to build {table.name}: {failure.strerror}', hint=install_hint(table.build[0])
            ) from None
        printed = log.read_bytes()[-100_000:].decode(errors="replace").splitlines()
        lines = printed[-LAST_LINES:]
        if code:
            ended = f'"{command}" ended with code {code}'
            error = "".join(f"{line}\n" for line in first_error(printed)[:1])
            message = "\n".join((f"{table.name} does not build: {error}{ended}", *lines))
            raise RunError(message, of_candidate=code > 0 and not says_full(printed))
        if not file.is_file():
            message = "\n".join((f'"{command}" made no file {table.program}', *lines))
            raise RunError(message, of_candidate=not says_full(printed))
        return keep_program(read_program(file, table.name, None), table.name, self.home)

    def build_once(self, table: SchedulerTable, environment: Mapping[str, str], about: str) -> str:
        """Build as ``build``, once for each commit; ``about`` identifies all else that determines the program."""
        digest = already_built(table, about, self.home)
        if not digest:
            digest = self.build(table, environment)
            put_file(digest.encode(), _build_record(table, about, self.home))
        return digest


def already_built(table: SchedulerTable, about: str, home: Home) -> str:
    """Return the hash of the program that was built of ``table`` and ``about``, if it is still in the cache."""
    record = _build_record(table, about, home)
    digest = record.read_text(encoding="utf-8") if record.is_file() else ""
    return digest if digest and is_cached(digest, table.name, home) else ""


def _build_record(table: SchedulerTable, about: str, home: Home) -> Path:
    key = hashlib.sha256(f"{table.model_dump_json()}\n{about}".encode()).hexdigest()
    return contained_folder(key, home) / "built"


@contextmanager
def scheduler_workplace(home: Home, command: Sequence[str]) -> Iterator[SchedulerWorkplace]:
    """Yield a directory to build in by ``command``; it is removed at the end.

    Its name follows from the command: programs contain the paths of their sources, and have the same bytes everywhere.
    """
    caller = Caller(invoking_user())
    name = hashlib.sha256(shlex.join(command).encode()).hexdigest()[:12]
    with _empty_directory(Path(tempfile.gettempdir()) / f"ajuste-scheduler-{name}") as directory:
        workplace = SchedulerWorkplace(home, caller, directory)
        workplace.tree.mkdir(mode=0o700)
        caller.give(workplace.tree)
        directory.chmod(0o711)  # The builder can enter the tree, and replace nothing beside it.
        yield workplace


@contextmanager
def _empty_directory(wanted: Path) -> Iterator[Path]:
    # Another one where somebody has `wanted` at this moment, or it is another user's. Of a process that was killed it
    # may be left.
    with ExitStack() as stack:
        directory = wanted
        try:
            with suppress(FileExistsError):
                wanted.mkdir(mode=0o700)
            descriptor = os.open(wanted, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            stack.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            status = os.fstat(descriptor)
            if status.st_uid != os.geteuid() or not os.path.samestat(status, wanted.lstat()):
                raise BlockingIOError
            for entry in wanted.iterdir():
                shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        except OSError:
            directory = Path(tempfile.mkdtemp(prefix="ajuste-scheduler-"))
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        yield directory


def _check_out(caller: Caller, table: SchedulerTable, tree: Path) -> None:
    assert table.repository is not None
    assert table.commit is not None
    require_git()
    source = table.repository
    if not source.startswith("https://"):
        source = str(Path(source).expanduser().absolute())
        if not Path(source).is_dir():
            raise RequestError(
                f"scheduler {table.name}: repository {table.repository} not found; expected https://… or a directory",
                hint="write into the file where your clone is",
            )

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", *_TRANSPORTS, "-c", "core.hooksPath=/dev/null", "-C", str(tree), *words],
            env={**caller.environment, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            **caller.options,
        )
        return done.stderr.strip() or f"exit code {done.returncode}" if done.returncode else ""

    failed = git("init", "--quiet")
    failed = failed or git("fetch", "--quiet", "--depth=1", "--", source, table.commit)
    if failed:  # Some servers give only tips of branches and tags: fetch them all.
        failed = git("fetch", "--quiet", "--", source, "+refs/*:refs/ajuste/*")
    failed = failed or git("checkout", "--quiet", "--force", "--detach", table.commit)
    if failed:
        raise RequestError(
            f"scheduler {table.name}: commit {table.commit[:12]} not found in {table.repository}: "
            f"{failed.splitlines()[-1][:200]}",
            hint="fetch it into your clone, or check repository and commit in the file",
        )
