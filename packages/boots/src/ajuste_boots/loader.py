"""Boot loaders that boot an entry of an experiment once: GRUB, systemd-boot, and kexec, which needs none.

With kexec the running kernel loads the next one: the hardware is not reset, and firmware does not run. Source:
kexec(8), systemctl(1) kexec.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from ajuste.machine.files import sync_to_disk
from ajuste.model.boot import BootState, name_of_word
from ajuste.model.error import RequestError, RunError
from ajuste_boots.files import (
    MARK,
    read_content,
    remove_durably,
    require_room,
    why_not_written_by_grub,
    write_durably,
)

PANIC_SECONDS: Final = 10
"""After so long a kernel that panicked reboots, into the old one."""

_TIMEOUT_S: Final = 120

RunTool = Callable[[Sequence[str]], str]
"""Runs a program of the machine and returns its output. Raises RunError where it fails."""

_DIRECTORIES: Final = ("boot/grub", "boot/grub2")
_BEGIN: Final = "### entries of an experiment of Ajuste: ajuste restore removes them"
_END: Final = "### end of the entries of Ajuste"
_LINUX: Final = re.compile(r"^\s*linux(?:16|efi)?\s+(\S+)\s*(.*)$")

# A word that GRUB's language reads as itself.
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.,:/+@%=^!-]+", re.ASCII)

_PLACES: Final = ("boot", "efi", "boot/efi")
_MOST_ENTRIES: Final = 64
_VARIABLES: Final = "sys/firmware/efi/efivars"
_LOADER: Final = "4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"


@dataclass(frozen=True)
class BootEntry:
    """The entry number ``index`` of an experiment: ``kernel`` is the release that ``state`` boots. ``words`` are the
    command line of this machine before the experiment.
    """

    index: int
    kernel: str
    state: BootState
    experiment: str
    words: tuple[str, ...] = ()

    @property
    def mark(self) -> str:
        """Return the word that identifies a boot of it."""
        return f"{MARK}={self.experiment}.{self.index}"

    def command_line(self, words: Sequence[str], *, watchdog: bool) -> tuple[str, ...]:
        """Return ``words`` of an entry of this machine for this one: a kernel that panics reboots."""
        plain = [word for word in words if not word.startswith((f"{MARK}=", "panic=", "BOOT_IMAGE="))]
        guard = (f"panic={PANIC_SECONDS}", *(("systemd.watchdog_sec=60s",) if watchdog else ()))
        return (*self.state.applied_to(plain), *guard, self.mark)


class BootLoader(ABC):
    """A boot loader of the machine whose files are below ``root``, and whose programs ``run`` runs."""

    name: ClassVar[str]
    reboot: ClassVar[tuple[str, ...]] = ("systemctl", "reboot")
    """The command that boots what was armed."""

    def __init__(self, root: Path, run: RunTool) -> None:
        self.root = root
        self.run = run

    @abstractmethod
    def why_not(self) -> str:
        """Return why this machine cannot boot once by it, empty if it can."""

    @property
    @abstractmethod
    def files(self) -> tuple[Path, ...]:
        """Return all files that it changes. They are as before at the end, or gone again."""

    @abstractmethod
    def check(self, entries: Sequence[BootEntry]) -> None:
        """Check, without any change, that it has what ``entries`` need. Raises RequestError."""

    @abstractmethod
    def prepare(self, entries: Sequence[BootEntry]) -> None:
        """Write the entries, beside those of the machine. May be done twice. Raises OSError, RunError."""

    @abstractmethod
    def arm(self, entry: BootEntry) -> None:
        """Make ``entry`` the next boot, and only that one. Raises OSError, RunError."""

    @abstractmethod
    def restore(self, originals: dict[str, bytes | None]) -> tuple[str, ...]:
        """Remove everything that was written, and the one boot; ``originals`` are ``files`` as they were. Return what
        somebody else changed meanwhile, which stays. May be done twice. Raises OSError, RunError.
        """

    def kernel_file(self, release: str) -> Path:
        return self.root / "boot" / f"vmlinuz-{release}"

    @property
    def has_watchdog(self) -> bool:
        """Return whether the machine has a watchdog that reboots it when its kernel hangs."""
        return (self.root / "dev/watchdog0").exists()


def installed_kernels(root: Path = Path("/")) -> tuple[str, ...]:
    """Return the releases of the kernels in /boot that have modules, newest first."""
    releases = [file.name.removeprefix("vmlinuz-") for file in (root / "boot").glob("vmlinuz-*")]
    return tuple(
        sorted(
            (release for release in releases if (root / "lib/modules" / release).is_dir()), key=_by_number, reverse=True
        )
    )


def installed_kernel(named: str, root: Path = Path("/")) -> str:
    """Return the release that ``named`` means: itself, or the newest that begins with it. Raises RequestError."""
    known = installed_kernels(root)
    if named in known:
        return named
    begins = [release for release in known if release.startswith((f"{named}.", f"{named}-"))]
    if begins:
        return begins[0]
    raise RequestError(
        f'kernel "{named}" is not installed; expected {", ".join(known) or "a kernel in /boot"}',
        hint="install its package, such as linux-image-amd64, or choose an installed one",
    )


def _by_number(release: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", release) if part]


def run_tool(words: Sequence[str]) -> str:
    """Run a program of this machine and return its output. Raises RunError where it fails."""
    program = shutil.which(words[0], path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin:/usr/bin:/bin")
    if program is None:
        raise RunError(f"program {words[0]} not found")
    try:
        done = subprocess.run([program, *words[1:]], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise RunError(f"{words[0]} did not end within {_TIMEOUT_S} s") from error
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise RunError(f"{' '.join(words)} failed: {lines[-1] if lines else f'exit code {done.returncode}'}")
    return done.stdout


def find_program(*names: str) -> str | None:
    """Return the first of these programs that this machine has."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin:/usr/bin:/bin"
    return next((name for name in names if shutil.which(name, path=path)), None)


class Kexec(BootLoader):
    """The kernel's own way to boot another one, once."""

    name: ClassVar[str] = "kexec"
    reboot: ClassVar[tuple[str, ...]] = ("systemctl", "kexec")

    @property
    def files(self) -> tuple[Path, ...]:
        return ()

    def why_not(self) -> str:
        if find_program("kexec") is None:
            return "kexec: program kexec not found (package kexec-tools)"
        disabled = self.root / "proc/sys/kernel/kexec_load_disabled"
        if not disabled.exists():
            return "kexec: not supported by the running kernel"
        return "kexec: disabled until the next boot" if disabled.read_text().strip() == "1" else ""

    def check(self, entries: Sequence[BootEntry]) -> None:
        for entry in entries:
            if not self.kernel_file(entry.kernel).is_file():
                raise RequestError(f"{self.kernel_file(entry.kernel)} not found", hint="choose an installed kernel")

    def prepare(self, entries: Sequence[BootEntry]) -> None: ...

    def arm(self, entry: BootEntry) -> None:
        line = " ".join(entry.command_line(entry.words, watchdog=self.has_watchdog))
        initrd = self.root / "boot" / f"initrd.img-{entry.kernel}"
        loaded = (f"--initrd={initrd}",) if initrd.is_file() else ()
        self.run(("kexec", "--load", str(self.kernel_file(entry.kernel)), *loaded, f"--command-line={line}"))

    def restore(self, originals: dict[str, bytes | None]) -> tuple[str, ...]:
        if find_program("kexec") is not None and (self.root / "sys/kernel/kexec_loaded").exists():
            self.run(("kexec", "--unload"))
        return ()


# GRUB: an entry in custom.cfg for each state, and ``next_entry`` of its environment block, which it takes but once.
#
# As grub-reboot(8) does it: what ``grub-mkconfig`` makes reads ``next_entry``, clears it on the disk, and boots that
# entry. If its kernel does not come up, the next boot is the default again. Source: GRUB 2.06,
# util/grub.d/00_header.in and 41_custom.in, util/grub-reboot.in.


@dataclass(frozen=True)
class _MenuEntry:
    # An entry of the menu: `before` and `after` its line `linux`, which boots `kernel` with `words`.
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
        return self._required_directory / "grubenv"

    @property
    def _custom(self) -> Path:
        return self._required_directory / "custom.cfg"

    @property
    def _required_directory(self) -> Path:
        if (directory := self._directory) is None:
            raise RunError("GRUB's configuration is not there any more")
        return directory

    @property
    def _editor(self) -> str:
        return find_program("grub-editenv", "grub2-editenv") or "grub-editenv"

    @property
    def files(self) -> tuple[Path, ...]:
        return (self._environment, self._custom)

    def why_not(self) -> str:
        directory = self._directory
        if directory is None:
            return "GRUB: no /boot/grub/grub.cfg"
        if find_program("grub-editenv", "grub2-editenv") is None:
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
        section = "\n".join((_BEGIN, *(line for entry in entries for line in self._lines(entry)), _END))
        others = _without_entries((read_content(self._custom) or b"").decode(errors="surrogateescape"))
        text = f"{others}{section}\n"
        write_durably(self._custom, text.encode(errors="surrogateescape"), 0o644)

    def arm(self, entry: BootEntry) -> None:
        self.run((self._editor, str(self._environment), "set", f"next_entry={_id(entry)}"))
        sync_to_disk(self._environment)

    def restore(self, originals: dict[str, bytes | None]) -> tuple[str, ...]:
        return (*self._restore_environment(originals), *self._restore_custom(originals))

    def _restore_environment(self, originals: dict[str, bytes | None]) -> tuple[str, ...]:
        before, now = originals.get(str(self._environment)), read_content(self._environment)
        if before is None or now == before:
            return ()
        if now is None or _variables(now) == _variables(before):
            write_durably(self._environment, before, 0o644)
            return ()
        self.run((self._editor, str(self._environment), "unset", "next_entry"))
        sync_to_disk(self._environment)
        return (f"{self._environment} was changed by another program meanwhile; only next_entry was taken out",)

    def _restore_custom(self, originals: dict[str, bytes | None]) -> tuple[str, ...]:
        before, now = originals.get(str(self._custom)), read_content(self._custom)
        if now == before or now is None:
            return ()
        left = _without_entries(now.decode(errors="surrogateescape")).encode(errors="surrogateescape")
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
        match = next((item for item in self._entries() if item.release == entry.kernel), None)
        if match is None:
            known = ", ".join(dict.fromkeys(item.release for item in self._entries()))
            raise RequestError(
                f"GRUB has no entry for the kernel {entry.kernel}; it has {known or 'none'}",
                hint="run update-grub, or choose another kernel",
            )
        odd = [word for word in match.words if not _PLAIN.fullmatch(word)]
        if odd:
            raise RequestError(
                f"GRUB's entry for {entry.kernel} has {odd[0]!r} on its command line, which cannot be copied",
                hint="remove it from GRUB_CMDLINE_LINUX in /etc/default/grub and run update-grub",
            )
        return match

    def _entries(self) -> list[_MenuEntry]:
        text = (self._required_directory / "grub.cfg").read_text(errors="replace")
        return [entry for entry in _menu(text) if not {"single", "recovery"} & set(map(name_of_word, entry.words))]


def _id(entry: BootEntry) -> str:
    return f"ajuste-{entry.index}"


def _menu(text: str) -> Iterator[_MenuEntry]:
    body: list[str] | None = None
    for line in text.splitlines():
        if line.lstrip().startswith("menuentry "):
            body = []
        elif body is not None and line.strip() == "}":
            yield from _menu_entries(body)
            body = None
        elif body is not None:
            body.append(line)


def _menu_entries(body: Sequence[str]) -> Iterator[_MenuEntry]:
    for place, line in enumerate(body):
        if match := _LINUX.match(line):
            # An entry says on the screen what it does; with a quote of its own that is no use here.
            before = tuple(body_line for body_line in body[:place] if not body_line.lstrip().startswith("echo"))
            after = tuple(body_line for body_line in body[place + 1 :] if not body_line.lstrip().startswith("echo"))
            yield _MenuEntry(match[1], tuple(match[2].split()), before, after)
            return


def _without_entries(text: str) -> str:
    before, begin, rest = text.partition(_BEGIN)
    if not begin:
        return text
    _, _, after = rest.partition(f"{_END}\n")
    return before + after


def _variables(block: bytes) -> dict[str, str]:
    lines = (line.partition("=") for line in block.decode(errors="replace").splitlines() if not line.startswith("#"))
    values = {name: value for name, equals, value in lines if equals}
    return {name: value for name, value in values.items() if name not in ("next_entry", "boot_once")}


# systemd-boot: an entry in loader/entries for each state, and its one-shot entry, a variable of the firmware.
#
# Source: bootctl(1), set-oneshot; The Boot Loader Specification, type 1 entries.


class SystemdBoot(BootLoader):
    """systemd-boot with entries of type 1, one file each."""

    name: ClassVar[str] = "systemd-boot"

    @property
    def _directory(self) -> Path | None:
        places = (self.root / place / "loader/entries" for place in _PLACES)
        return next((place for place in places if place.is_dir()), None)

    @property
    def files(self) -> tuple[Path, ...]:
        directory = self._directory
        return () if directory is None else tuple(directory / f"ajuste-{index}.conf" for index in range(_MOST_ENTRIES))

    def why_not(self) -> str:
        if not (self.root / _VARIABLES / f"LoaderInfo-{_LOADER}").exists():
            return "systemd-boot: this machine was not booted by it"
        if self._directory is None:
            return "systemd-boot: no directory loader/entries"
        return "" if find_program("bootctl") else "systemd-boot: program bootctl not found"

    def check(self, entries: Sequence[BootEntry]) -> None:
        for entry in entries:
            self._like(entry)
        if len(entries) > _MOST_ENTRIES:
            raise RequestError(f"found {len(entries)} states to boot; expected at most {_MOST_ENTRIES}")
        if (directory := self._directory) is not None:
            require_room(directory, "systemd-boot's entries", self.root)

    def prepare(self, entries: Sequence[BootEntry]) -> None:
        for entry in entries:
            write_durably(self._file(entry), self._text(entry).encode(), 0o644)

    def arm(self, entry: BootEntry) -> None:
        self.run(("bootctl", "set-oneshot", self._file(entry).name))

    def restore(self, originals: dict[str, bytes | None]) -> tuple[str, ...]:
        self.run(("bootctl", "set-oneshot", ""))
        for file in self.files:
            remove_durably(file)
        return ()

    def _file(self, entry: BootEntry) -> Path:
        if (directory := self._directory) is None:
            raise RunError("systemd-boot's directory loader/entries is not there any more")
        return directory / f"ajuste-{entry.index}.conf"

    def _text(self, entry: BootEntry) -> str:
        like = self._like(entry)
        options = " ".join(value for key, value in like if key == "options").split()
        inherited = [(key, value) for key, value in like if key not in ("title", "options", "sort-key", "machine-id")]
        words = " ".join(entry.command_line(options, watchdog=self.has_watchdog))
        lines = (("title", f"Ajuste, for an experiment: {entry.index}"), *inherited, ("options", words))
        return "".join(f"{key} {value}\n" for key, value in lines)

    def _like(self, entry: BootEntry) -> list[tuple[str, str]]:
        directory = self._directory
        for file in sorted(directory.glob("*.conf")) if directory else ():
            if file.name.startswith("ajuste-"):
                continue
            text = (line.strip().partition(" ") for line in file.read_text(errors="replace").splitlines())
            lines = [(key, value.strip()) for key, _, value in text if key and not key.startswith("#")]
            if entry.kernel in _releases(dict(lines)):
                return lines
        raise RequestError(
            f"systemd-boot has no entry for the kernel {entry.kernel}",
            hint="run kernel-install, or choose another kernel",
        )


def _releases(entry: Mapping[str, str]) -> Collection[str]:
    # The version that an entry names, or else what the path of its kernel names: a directory, or vmlinuz-VERSION.
    if "version" in entry:
        return (entry["version"],)
    parts = [part.removesuffix(".efi") for part in Path(entry.get("linux", "")).parts]
    return {*parts, *(part.partition("-")[2] for part in parts)}
