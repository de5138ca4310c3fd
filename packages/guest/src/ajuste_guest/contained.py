"""Contents of a study file for guests: patches of kernels, and BPF schedulers, as programs or with their sources.

Nothing is built unless the table of capabilities allows it.
"""

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

from ajuste.analysis.condition import renamed
from ajuste.catalogue.programs import install_hint, require_git
from ajuste.executor.host.caller import LAST_LINES, Caller, finished, invoking_user
from ajuste.kernel.building.configuration import kernel_options
from ajuste.kernel.building.make import first_error, says_full
from ajuste.kernel.building.schedulers import ELF, path_within, read_schedulers, require_llvm, require_loadable
from ajuste.kernel.spec import is_to_build, specs_to_build
from ajuste.machine.files import file_sha256, hold, make_directory, remove_file, replace_file, write_text
from ajuste.machine.home import Home
from ajuste.model.caller import open_given
from ajuste.model.capability import Asked
from ajuste.model.error import Place, RequestError, RunError
from ajuste.model.kernel import KernelImage
from ajuste.model.wording import Say
from ajuste.run.testbed import Contained
from ajuste.study.overrides import with_kernels
from ajuste.study.schema import SchedulerTable, Study
from ajuste.study.site import study_directory
from ajuste_guest.kernel.fetch import fetch_kernel
from ajuste_guest.kernel.symbols import read_vmlinux

# Other transports, such as ext, run commands (gitremote-helpers(7)).
_TRANSPORTS: Final = (
    "-c",
    "protocol.allow=never",
    "-c",
    "protocol.https.allow=always",
    "-c",
    "protocol.file.allow=always",
)


def with_patches(study: Study, home: Home) -> Study:
    """Return ``study`` with the patches of its kernels as files, the form of ``kernel.spec``. Raises RequestError for a
    patch that the study does not contain.
    """
    texts = {patch.name: patch.text for patch in study.patches}
    names = {}
    for text, spec in specs_to_build(study.kernels).items():
        if lacking := next((str(patch) for patch in spec.patches if str(patch) not in texts), None):
            raise RequestError(
                f"the study does not contain the patch {lacking}; expected a [[patch]] with this name",
                hint="write one with ajuste reproduce RUN -o FILE",
                place=study.kernel_place(text),
            )
        files = []
        for patch in spec.patches:
            content = texts[str(patch)].encode()
            files.append(_folder(hashlib.sha256(content).hexdigest(), home) / patch)
            _put(content, files[-1])
        names[text] = str(spec.model_copy(update={"patches": tuple(files)}))
    expect = renamed(study.expect, names) if study.expect else None
    return with_kernels(study, names).model_copy(update={"patches": (), "expect": expect})


def with_schedulers(
    study: Study, home: Home, rights: Asked, say: Say, paths: Sequence[Path] = (), within: Path | None = None
) -> Contained:
    """Return ``study`` with the programs of its BPF schedulers in the cache: from ``paths`` (in the directory
    ``within``), from the study's own directory, or built.

    Raises RequestError for a program that may not be built, is not found or has another hash, RunError if building
    fails.
    """
    programs = {scheduler.name: scheduler for scheduler in read_schedulers(paths, within)}
    tables = {table.name: table for table in study.schedulers}
    for name in programs:
        tables.setdefault(name, SchedulerTable(name=name, program=name))
    ready, notes = [], []
    for table in tables.values():
        place = study.place("scheduler", study.schedulers.index(table)) if table in study.schedulers else None
        if table.build is not None and table.name not in programs:
            rights.require("kernel source", shlex.join(table.build), f"scheduler {table.name}")
        if supplied := programs.get(table.name):
            digest = _keep(_program(supplied.file, table.name, None), table.name, home)
        elif table.build is not None:
            digest = _built(table, study, home, say)
        elif table.sha256 and _is_kept(table.sha256, table.name, home):
            digest = table.sha256
        else:
            digest = _of_file(table, study_directory(study), home, place)
        if table.sha256 not in (None, digest):
            notes.append(f"{table.name} has the hash {digest[:12]}, not {table.sha256[:12]}")
        ready.append(table.model_copy(update={"sha256": digest}))
    return Contained(study.model_copy(update={"schedulers": tuple(ready)}), tuple(notes))


def _built(table: SchedulerTable, study: Study, home: Home, say: Say) -> str:
    # By what it is built from and never by the hash in the file: who edits a commit or a text means another program.
    assert table.build is not None
    kernel = next((spec for spec in study.kernels if not is_to_build(spec)), None)
    image = fetch_kernel(kernel, home, say=say) if kernel else None
    about = image.sha256 if image else ""
    recipe = table.model_copy(update={"sha256": None})
    if digest := already_built(recipe, about, home):
        return digest
    say(f"building {table.name}")
    with scheduler_workplace(home, table.build) as workplace:
        return workplace.build_once(recipe, workplace.toolchain(image), about)


def with_programs(image: KernelImage, study: Study, home: Home) -> KernelImage:
    """Return the kernel with the schedulers of ``study`` beside its own. Raises RequestError for a kernel that cannot
    load them, or a scheduler that is not in the cache.
    """
    if not study.schedulers:
        return image
    stored = [_folder(table.sha256 or "", home) / table.name for table in study.schedulers]
    for table in study.schedulers:
        if not table.sha256 or not _is_kept(table.sha256, table.name, home):
            raise RequestError(
                f"the program of {table.name} is not in the cache",
                hint="run the study again: ajuste run FILE" + (" --build" if table.build else ""),
            )
    require_loadable(read_schedulers(stored, cached=True), kernel_options(image), image.spec)
    others = sorted(image.schedulers.iterdir()) if image.schedulers else []
    files = {file.name: file for file in (*others, *stored)}
    digest = hashlib.sha256(
        "".join(f"{name} {file_sha256(file)}\n" for name, file in files.items()).encode()
    ).hexdigest()
    # Named by its content, so that processes may write the same folder at once.
    folder = _folder(digest, home)
    for name, file in files.items():
        if not (folder / name).is_file():
            _put(file.read_bytes(), folder / name)
    return image.model_copy(update={"schedulers": folder})


def _folder(digest: str, home: Home) -> Path:
    return home.cache / "contained" / digest


def _put(content: bytes, file: Path) -> None:
    make_directory(file.parent)
    replace_file(file, content, mode=0o700)
    hold(file.parent)


def _keep(content: bytes, name: str, home: Home) -> str:
    digest = hashlib.sha256(content).hexdigest()
    _put(content, _folder(digest, home) / name)
    return digest


def _is_kept(digest: str, name: str, home: Home) -> bool:
    file = _folder(digest, home) / name
    if not file.is_file() or file_sha256(file) != digest:
        return False
    hold(file.parent)
    return True


def _of_file(table: SchedulerTable, directory: Path, home: Home, place: Place | None) -> str:
    if table.program is None:
        raise RequestError(
            f"{table.name} is not contained in the file, only its hash",
            hint=f"give its program, of SHA-256 {table.sha256}: --scheduler DIR/{table.name}",
            place=place,
        )
    file = path_within(directory, table.program, place)
    if not file.is_file():
        raise RequestError(
            f"the program {table.program} of {table.name} not found in {directory}",
            hint=f"build it, or give it with --scheduler DIR/{table.name}",
            place=place,
        )
    content = _program(file, table.name, place)
    digest = hashlib.sha256(content).hexdigest()
    if table.sha256 not in (None, digest):
        raise RequestError(
            f"{table.program} has the SHA-256 {digest}; expected {table.sha256}",
            hint=f"add --scheduler DIR/{table.name} to test this program instead",
            place=place,
        )
    return _keep(content, table.name, home)


def _program(file: Path, name: str, place: Place | None) -> bytes:
    with open_given(file) as opened:
        content = opened.read()
    if not content.startswith(ELF):
        raise RequestError(
            f"{file.name} is not an ELF file; expected the program of {name}", place=place, of_candidate=True
        )
    return content


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
        return _keep(_program(file, table.name, None), table.name, self.home)

    def build_once(self, table: SchedulerTable, environment: Mapping[str, str], about: str) -> str:
        """Build as ``build``, once for each commit; ``about`` identifies all else that determines the program."""
        digest = already_built(table, about, self.home)
        if not digest:
            digest = self.build(table, environment)
            _put(digest.encode(), _build_record(table, about, self.home))
        return digest


def already_built(table: SchedulerTable, about: str, home: Home) -> str:
    """Return the hash of the program that was built of ``table`` and ``about``, if it is still in the cache."""
    record = _build_record(table, about, home)
    digest = record.read_text(encoding="utf-8") if record.is_file() else ""
    return digest if digest and _is_kept(digest, table.name, home) else ""


def _build_record(table: SchedulerTable, about: str, home: Home) -> Path:
    key = hashlib.sha256(f"{table.model_dump_json()}\n{about}".encode()).hexdigest()
    return _folder(key, home) / "built"


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
