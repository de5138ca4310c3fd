"""Patches, tried in a place of their own before any tree is changed: a whole series, or nothing.

Source: patch(1); the format of git's own headers is in git-diff(1), "Generating patch text with -p".
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from ajuste.catalogue.programs import install_hint
from ajuste.model.caller import open_given
from ajuste.model.error import Place, RequestError, RunError
from ajuste_kernels.building.built import LINK, PROGRAM, SourceOrigin
from ajuste_kernels.building.make import Edit, Edits

LARGEST_BYTES: Final = 32 << 20
_MOST_HUNKS: Final = 6
_MOST_LINES: Final = 24

_HUNK: Final = re.compile(rb"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_MOVES: Final = (b"rename from ", b"rename to ", b"copy from ", b"copy to ")
_EXTENDED: Final = (
    *(b"old mode ", b"new mode ", b"deleted file mode ", b"new file mode ", b"similarity index ", b"index "),
    b"\\ No newline",
)
_FUZZ: Final = re.compile(r"^Hunk #\d+ succeeded at \d+ .*(?:with fuzz|offset).*$", re.MULTILINE)


@dataclass(frozen=True)
class PatchFile:
    """A patch as it was read, without the text around it: ``touched`` are the files that it names, without the first
    directory (``-p1``).
    """

    path: Path
    content: bytes
    touched: frozenset[str]


def read_patches(paths: Sequence[Path]) -> tuple[PatchFile, ...]:
    """Read patches. Raises RequestError for files that cannot be read, are no patches, or name files outside of the
    tree.
    """
    return tuple(_read(path) for path in paths)


def _read(path: Path) -> PatchFile:
    try:
        with open_given(path) as file:
            content = file.read(LARGEST_BYTES + 1)
        if len(content) > LARGEST_BYTES:
            raise RequestError(
                f"{path} is larger than {LARGEST_BYTES >> 20} MiB; expected a patch of up to {LARGEST_BYTES >> 20} MiB"
            )
    except OSError as error:
        raise RequestError(
            f"patch {path}: {error.strerror}; expected the file of a patch",
            hint="check that the file exists and is readable",
        ) from error
    if b"GIT binary patch" in content:
        raise RequestError(
            f"{path} changes binary files; expected changes of text files",
            hint="apply it to a source tree and build that directory",
        )
    lines, touched = _sections(path, content)
    if not touched:
        raise RequestError(
            f"{path} is not a patch: it changes no file", hint="make a unified diff with git diff or diff -ru"
        )
    return PatchFile(path, b"\n".join(lines) + b"\n", frozenset(touched))


def _sections(path: Path, content: bytes) -> tuple[list[bytes], set[str]]:
    # The lines of a unified diff without all text around it (which patch could take for another format, one that has
    # commands), and the files that they name.
    section: list[bytes] = []
    touched: set[str] = set()
    lines = content.split(b"\n")
    index = 0
    while index < len(lines):
        line = lines[index]
        end = index + 1
        names: list[tuple[bytes, int]] = []
        if hunk := _HUNK.match(line):
            end = _after_hunk(lines, end, *(int(count) if count else 1 for count in hunk.groups()))
        elif line.startswith(b"--- ") and _is_header(lines[index : index + 3]):
            end = index + 2
            names = [(line[4:], 1), (lines[index + 1][4:], 1)]
        elif line.startswith(_MOVES):
            names = [(line.split(b" ", 2)[2], 0)]
        elif line.startswith(b"diff --git "):
            # A file whose mode changes, or an empty one, has no other line with its name.
            names = [(part, 1) for part in line[11:].split() if b"/" in part]
        elif not line.startswith(_EXTENDED):
            index = end
            continue
        touched.update(name for text, strip in names if (name := _name(path, index + 1, text, strip=strip)))
        section += lines[index:end]
        index = end
    return section, touched


def _is_header(lines: list[bytes]) -> bool:
    return len(lines) == 3 and lines[1].startswith(b"+++ ") and lines[2].startswith(b"@@ -")


def _after_hunk(lines: list[bytes], index: int, old: int, new: int) -> int:
    while (old > 0 or new > 0) and index < len(lines):
        kind = lines[index][:1]
        if kind in (b"-", b" ", b""):
            old -= 1
        if kind in (b"+", b" ", b""):
            new -= 1
        index += 1
    return index


def _name(patch: Path, line: int, text: bytes, *, strip: int) -> str:
    name = text.split(b"\t")[0].rstrip(b"\r ").decode("utf-8", "replace").strip('"')
    if name == "/dev/null":
        return ""
    parts = PurePosixPath(name).parts
    inside = parts[strip:]
    if name.startswith("/") or ".." in parts or not inside or not name.isprintable():
        raise RequestError(
            f"{name!r} is not a path in the source tree",
            place=Place(patch, line=line),
            hint="use paths such as a/kernel/sched/fair.c, as git diff writes",
        )
    return "/".join(inside)


def try_patches(patches: Sequence[PatchFile], origin: SourceOrigin) -> tuple[Edits, list[str]]:
    """Return the files of ``origin`` after the whole series, and notes on what did not fit exactly. Raises RequestError
    with the rejected hunks.
    """
    if not patches:
        return {}, []
    if shutil.which("patch") is None:
        raise RequestError("the program patch was not found", hint=install_hint("patch"))
    touched = sorted(frozenset().union(*(patch.touched for patch in patches)))
    with tempfile.TemporaryDirectory(prefix="ajuste-patch-") as name:
        root = Path(name)
        tree = root / "tree"
        tree.mkdir()
        for path in touched:
            _lay_out(tree, path, origin)
        notes: list[str] = []
        for number, patch in enumerate(patches):
            notes += _apply(patch, root, f"{number}.patch")
        edits = {path: _edit(tree / path) for path in touched if _differs(tree / path, path, origin)}
    if not edits:
        raise RequestError(
            f"{', '.join(str(patch.path) for patch in patches)}: no change; expected a patch that changes the source"
        )
    return edits, notes


def _lay_out(tree: Path, path: str, origin: SourceOrigin) -> None:
    mark = origin.manifest.get(path)
    if any(origin.manifest.get(str(above), "").startswith(LINK) for above in PurePosixPath(path).parents):
        raise RequestError(f"a patch changes {path}, below a symbolic link; expected a file within the tree")
    if mark is None:
        return
    if mark.startswith(LINK):
        raise RequestError(f"a patch changes {path}, a symbolic link; expected a regular file")
    (tree / path).parent.mkdir(parents=True, exist_ok=True)
    (tree / path).write_bytes(origin.read(path))
    (tree / path).chmod(0o755 if mark.startswith(PROGRAM) else 0o644)


def _apply(patch: PatchFile, root: Path, name: str) -> list[str]:
    copy = root / name
    copy.write_bytes(patch.content)
    done = subprocess.run(
        ["patch", "--unified", "--strip=1", "--forward", "--batch", "--no-backup-if-mismatch", f"--input={copy}"],
        cwd=root / "tree",
        capture_output=True,
        stdin=subprocess.DEVNULL,
        check=False,
        env={"PATH": "/usr/bin:/bin:/usr/local/bin", "LC_ALL": "C.UTF-8", "TMPDIR": str(root)},
    )
    output = done.stdout.decode(errors="replace") + done.stderr.decode(errors="replace")
    if done.returncode:
        raise _rejection(patch, root / "tree", output)
    return [f"{patch.path.name}: {line}" for line in _FUZZ.findall(output)]


def _rejection(patch: PatchFile, tree: Path, output: str) -> RequestError:
    hunks = []
    for path in sorted(patch.touched):
        rejects = tree / f"{path}.rej"
        if rejects.is_file():
            text = rejects.read_text(errors="replace")
            hunks += [f"{path}: @@{hunk.rstrip()}" for hunk in re.split(r"^@@(?= -)", text, flags=re.MULTILINE)[1:]]
    if "Reversed (or previously applied) patch detected" in output:
        return RequestError(f"{patch.path} is already applied to this source", hint=_excerpt(hunks) or None)
    if not hunks:
        lacking = [path for path in sorted(patch.touched) if not (tree / path).exists()]
        why = f"{lacking[0]} not found" if lacking else (output.strip().splitlines() or ["patch failed"])[-1]
        return RequestError(f"{patch.path} does not apply: {why}", hint="use a patch for this version of the kernel")
    count = "a hunk is" if len(hunks) == 1 else f"{len(hunks)} hunks are"
    return RequestError(f"{patch.path} does not apply: {count} rejected", hint=_excerpt(hunks))


def _excerpt(hunks: list[str]) -> str:
    lines = "\n".join(hunks[:_MOST_HUNKS]).splitlines()
    more = len(lines) > _MOST_LINES or len(hunks) > _MOST_HUNKS
    return "\n".join(lines[:_MOST_LINES] + (["…"] if more else []))


def _edit(file: Path) -> Edit:
    if not file.exists():
        return Edit(None)
    if file.is_symlink() or not file.is_file():
        raise RunError(f"a patch turns {file.name} into something that is not a file")
    return Edit(file.read_bytes(), program=bool(file.stat().st_mode & 0o100))


def _differs(file: Path, path: str, origin: SourceOrigin) -> bool:
    mark = origin.manifest.get(path)
    if mark is None or not file.exists():
        return (mark is not None) or file.exists()
    return file.read_bytes() != origin.read(path) or (file.stat().st_mode & 0o100 > 0) != mark.startswith(PROGRAM)
