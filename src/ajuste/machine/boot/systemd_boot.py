"""systemd-boot: an entry in loader/entries for each state, and its one-shot entry, a variable of the firmware.

Source: bootctl(1), set-oneshot; The Boot Loader Specification, type 1 entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Final

from ajuste.machine.boot.loader import BootEntry, BootLoader, program_of
from ajuste.machine.boot.mounts import remove_durably, require_room, write_durably
from ajuste.model.error import RequestError, RunError

_PLACES: Final = ("boot", "efi", "boot/efi")
_MOST_ENTRIES: Final = 64
_VARIABLES: Final = "sys/firmware/efi/efivars"
_LOADER: Final = "4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"


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
        return "" if program_of("bootctl") else "systemd-boot: program bootctl not found"

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
        kept = [(key, value) for key, value in like if key not in ("title", "options", "sort-key", "machine-id")]
        words = " ".join(entry.command_line(options, watchdog=self.has_watchdog))
        lines = (("title", f"Ajuste, for an experiment: {entry.index}"), *kept, ("options", words))
        return "".join(f"{key} {value}\n" for key, value in lines)

    def _like(self, entry: BootEntry) -> list[tuple[str, str]]:
        """The lines of the entry of this machine that boots the same kernel. Raises RequestError."""
        directory = self._directory
        for file in sorted(directory.glob("*.conf")) if directory else ():
            if file.name.startswith("ajuste-"):
                continue
            text = (line.strip().partition(" ") for line in file.read_text(errors="replace").splitlines())
            lines = [(key, value.strip()) for key, _, value in text if key and not key.startswith("#")]
            if ("version", entry.kernel) in lines or any(k == "linux" and entry.kernel in v for k, v in lines):
                return lines
        raise RequestError(
            f"systemd-boot has no entry for the kernel {entry.kernel}",
            hint="run kernel-install, or choose another kernel",
        )
