"""GRUB: an entry in custom.cfg for each state, and ``next_entry`` of its environment block, which it takes but once.

As grub-reboot(8) does it: what ``grub-mkconfig`` makes reads ``next_entry``, clears it on the disk, and boots that
entry. If its kernel does not come up, the next boot is the default again. Source: GRUB 2.06, util/grub.d/00_header.in
and 41_custom.in, util/grub-reboot.in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from ajuste.machine.boot.loader import BootEntry, BootLoader, program_of
from ajuste.machine.boot.mounts import content_of, remove_durably, why_not_written_by_grub, write_durably
from ajuste.machine.files import sync_to_disk
from ajuste.model.boot import name_of_word
from ajuste.model.error import RequestError, RunError

_DIRECTORIES: Final = ("boot/grub", "boot/grub2")
_BEGIN: Final = "### entries of an experiment of Ajuste: ajuste restore removes them"
_END: Final = "### end of the entries of Ajuste"
_LINUX: Final = re.compile(r"^\s*linux(?:16|efi)?\s+(\S+)\s*(.*)$")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.,:/+@%=^!-]+", re.ASCII)
"""A word that GRUB's language reads as itself."""


@dataclass(frozen=True)
class _MenuEntry:
    """An entry of the menu: ``before`` and ``after`` its line ``linux``, which boots ``kernel`` with ``words``."""

    kernel: str
    words: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]

    @property
    def release(self) -> str:
        return self.kernel.rpartition("/")[2].removeprefix("vmlinuz-")


class Grub(BootLoader):
    """GRUB 2 with its configuration in /boot/grub or /boot/grub2."""

    name: ClassVar[str] = "grub"

    @property
    def _directory(self) -> Path | None:
        places = (self.root / place for place in _DIRECTORIES)
        return next((place for place in places if (place / "grub.cfg").is_file()), None)

    @property
    def _environment(self) -> Path:
        return self._found / "grubenv"

    @property
    def _custom(self) -> Path:
        return self._found / "custom.cfg"

    @property
    def _found(self) -> Path:
        if (directory := self._directory) is None:
            raise RunError("GRUB's configuration is not there any more")
        return directory

    @property
    def _editor(self) -> str:
        return program_of("grub-editenv", "grub2-editenv") or "grub-editenv"

    @property
    def files(self) -> tuple[Path, ...]:
        return (self._environment, self._custom)

    def why_not(self) -> str:
        directory = self._directory
        if directory is None:
            return "GRUB: no /boot/grub/grub.cfg"
        if program_of("grub-editenv", "grub2-editenv") is None:
            return "GRUB: program grub-editenv not found"
        text = (directory / "grub.cfg").read_text(errors="replace")
        if "next_entry" not in text or "save_env next_entry" not in text:
            return "GRUB: grub.cfg does not read next_entry, so it cannot boot once"
        if "custom.cfg" not in text:
            return "GRUB: grub.cfg does not read custom.cfg"
        if why := why_not_written_by_grub(directory, self.root):
            return f"GRUB: {why}, so it cannot boot once"
        return "" if self._entries() else "GRUB: grub.cfg has no entry that boots Linux"

    def check(self, entries: Sequence[BootEntry]) -> None:
        for entry in entries:
            self._like(entry)
        if not self._environment.is_file():
            raise RequestError(
                f"{self._environment} not found; GRUB boots once only with it",
                hint=f"make it with: {self._editor} {self._environment} create",
            )

    def prepare(self, entries: Sequence[BootEntry]) -> None:
        own = "\n".join((_BEGIN, *(line for entry in entries for line in self._lines(entry)), _END))
        others = _without_own((content_of(self._custom) or b"").decode(errors="surrogateescape"))
        text = f"{others}{own}\n"
        write_durably(self._custom, text.encode(errors="surrogateescape"), 0o644)

    def arm(self, entry: BootEntry) -> None:
        self.run((self._editor, str(self._environment), "set", f"next_entry={_id(entry)}"))
        sync_to_disk(self._environment)

    def restore(self, originals: dict[str, bytes | None]) -> tuple[str, ...]:
        return (*self._restore_environment(originals), *self._restore_custom(originals))

    def _restore_environment(self, originals: dict[str, bytes | None]) -> tuple[str, ...]:
        before, now = originals.get(str(self._environment)), content_of(self._environment)
        if before is None or now == before:
            return ()
        if now is None or _variables(now) == _variables(before):
            write_durably(self._environment, before, 0o644)
            return ()
        self.run((self._editor, str(self._environment), "unset", "next_entry"))
        sync_to_disk(self._environment)
        return (f"{self._environment} was changed by another program meanwhile; only next_entry was taken out",)

    def _restore_custom(self, originals: dict[str, bytes | None]) -> tuple[str, ...]:
        before, now = originals.get(str(self._custom)), content_of(self._custom)
        if now == before or now is None:
            return ()
        left = _without_own(now.decode(errors="surrogateescape")).encode(errors="surrogateescape")
        if not left and before is None:
            remove_durably(self._custom)
            return ()
        write_durably(self._custom, left, 0o644)
        return (
            () if left == (before or b"") else (f"{self._custom} was changed by another program meanwhile; that stays",)
        )

    def _lines(self, entry: BootEntry) -> Iterator[str]:
        like = self._like(entry)
        words = entry.command_line(like.words, watchdog=self.has_watchdog)
        yield f"menuentry 'Ajuste, for an experiment: {entry.index}' --id {_id(entry)} {{"
        yield from like.before
        yield f"\tlinux {like.kernel} {' '.join(words)}"
        yield from like.after
        yield "}"

    def _like(self, entry: BootEntry) -> _MenuEntry:
        """The entry of this machine that boots the same kernel. Raises RequestError."""
        found = next((one for one in self._entries() if one.release == entry.kernel), None)
        if found is None:
            known = ", ".join(dict.fromkeys(one.release for one in self._entries()))
            raise RequestError(
                f"GRUB has no entry for the kernel {entry.kernel}; it has {known or 'none'}",
                hint="run update-grub, or choose another kernel",
            )
        odd = [word for word in found.words if not _PLAIN.fullmatch(word)]
        if odd:
            raise RequestError(
                f"GRUB's entry for {entry.kernel} has {odd[0]!r} on its command line, which cannot be copied",
                hint="remove it from GRUB_CMDLINE_LINUX in /etc/default/grub and run update-grub",
            )
        return found

    def _entries(self) -> list[_MenuEntry]:
        text = (self._found / "grub.cfg").read_text(errors="replace")
        return [one for one in _menu(text) if not {"single", "recovery"} & set(map(name_of_word, one.words))]


def _id(entry: BootEntry) -> str:
    return f"ajuste-{entry.index}"


def _menu(text: str) -> Iterator[_MenuEntry]:
    """The entries of a grub.cfg, also those of submenus."""
    body: list[str] | None = None
    for line in text.splitlines():
        if line.lstrip().startswith("menuentry "):
            body = []
        elif body is not None and line.strip() == "}":
            yield from _one(body)
            body = None
        elif body is not None:
            body.append(line)


def _one(body: Sequence[str]) -> Iterator[_MenuEntry]:
    for place, line in enumerate(body):
        if match := _LINUX.match(line):
            # An entry says on the screen what it does; with a quote of its own that is no use here.
            before = tuple(one for one in body[:place] if not one.lstrip().startswith("echo"))
            after = tuple(one for one in body[place + 1 :] if not one.lstrip().startswith("echo"))
            yield _MenuEntry(match[1], tuple(match[2].split()), before, after)
            return


def _without_own(text: str) -> str:
    """A custom.cfg without the entries of an experiment."""
    before, begin, rest = text.partition(_BEGIN)
    if not begin:
        return text
    _, _, after = rest.partition(f"{_END}\n")
    return before + after


def _variables(block: bytes) -> dict[str, str]:
    """Those of an environment block, but for the one boot (GRUB's own boot_once goes with it)."""
    lines = (line.partition("=") for line in block.decode(errors="replace").splitlines() if not line.startswith("#"))
    found = {name: value for name, equals, value in lines if equals}
    return {name: value for name, value in found.items() if name not in ("next_entry", "boot_once")}
