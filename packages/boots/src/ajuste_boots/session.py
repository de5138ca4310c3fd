"""An experiment across reboots: what is on disk of it, and each step from its begin to a machine as it was.

The state is on the disk before each step, and each step can be done again: whatever happens in between, a power cut
included, what comes next follows from the state, the boot loader's files and the kernel that came up.
"""

from __future__ import annotations

import base64
import os
import secrets
import stat
import struct
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import Final, Literal

from pydantic import Field

from ajuste.machine.files import make_directory
from ajuste.machine.home import BOOT_STATE, as_root
from ajuste.machine.units import DIRECTORY
from ajuste.model.base import ClosedModel
from ajuste.model.boot import BootState
from ajuste.model.error import RequestError, RunError
from ajuste_boots.files import (
    CAME_UP,
    MARK,
    RESUMED,
    delete_units,
    install_units,
    read_content,
    remove_durably,
    require_lasting,
    require_room,
    write_durably,
)
from ajuste_boots.loader import (
    BootEntry,
    BootLoader,
    Grub,
    Kexec,
    RunTool,
    SystemdBoot,
    installed_kernel,
    run_tool,
)
from ajuste_boots.model import KeptBoot, KeptBoots

MOST_ATTEMPTS: Final = 3
"""A kernel that does not come up so often in a row is given up."""

MOST_CUT_EARLY: Final = 10
"""... and one that came up before so often: a power cut before it leaves its mark looks the same."""

RESUMED_BY_SYSTEMD: Final = "AJUSTE_RESUMED_BY_SYSTEMD"
"""The variable by which a command knows that no person waits for it."""

_LAST: Final = "last.json"

Step = Callable[[str], None]
"""A callback that takes the description of each step before it is done."""

_VARIABLE: Final = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
_OPTIONAL_PE32_PLUS: Final = 0x20B
_SECURITY: Final = 4  # the directory of certificates

LOADERS: Final = (Grub, SystemdBoot, Kexec)
"""The boot loaders in the order in which they are tried."""

LOADER_NAMES: Final = tuple(loader.name for loader in LOADERS)


class RebootWanted(Exception):
    """The request to boot something else before the experiment continues. All state is on the disk."""


class BootPlan(ClosedModel):
    """An experiment across reboots as it is kept on the disk.

    ``command`` is what goes on with it, in ``directory`` with ``environment``. ``kernel``, the ``words`` of the command
    line and ``marks`` are of this machine when it began; ``kernels`` are the releases that the ``states`` boot.
    ``originals`` has the boot loader's files as they were, in base64. ``asked_in`` is the boot in which the last of
    ``boots`` was asked for, and ``armed`` whether the boot loader knows of it.
    """

    version: Literal[1] = 1
    experiment: str = Field(default_factory=lambda: secrets.token_hex(4))
    loader: str
    command: tuple[str, ...]
    environment: dict[str, str]
    directory: str
    kernel: str
    words: tuple[str, ...] = ()
    marks: dict[str, str]
    states: tuple[BootState, ...]
    kernels: tuple[str, ...]
    each: int
    warm_up: int
    originals: dict[str, str | None] = {}
    run: str = ""
    boots: tuple[KeptBoot, ...] = ()
    asked_in: str = ""
    armed: bool = False
    phase: Literal["measuring", "ending"] = "measuring"

    @property
    def entries(self) -> tuple[BootEntry, ...]:
        """Return the boot entries of its states."""
        pairs = enumerate(zip(self.states, self.kernels, strict=True))
        return tuple(BootEntry(i, kernel, state, self.experiment, self.words) for i, (state, kernel) in pairs)


def plan_entries(states: Sequence[BootState], machine: RebootableMachine) -> tuple[BootEntry, ...]:
    """Return the entries of a plan to be. Raises RequestError for a kernel that is not installed."""
    kernels = [installed_kernel(state.kernel, machine.root) if state.kernel else machine.release for state in states]
    return tuple(
        BootEntry(i, kernel, state, "0", machine.command_line)
        for i, (state, kernel) in enumerate(zip(states, kernels, strict=True))
    )


class BootSession:
    """The experiment that is kept in ``directory``, on ``machine``."""

    def __init__(
        self, directory: Path, plan: BootPlan, machine: RebootableMachine, step: Step = lambda _: None
    ) -> None:
        self.directory = directory
        self.plan = plan
        self.machine = machine
        self._step = step

    @classmethod
    def load(cls, directory: Path, machine: RebootableMachine, step: Step = lambda _: None) -> BootSession | None:
        """Load the unfinished experiment; ``None`` if there is none. Raises RunError where it cannot be read."""
        content = read_content(directory / BOOT_STATE)
        if content is None:
            return None
        try:
            return cls(directory, BootPlan.model_validate_json(content), machine, step)
        except ValueError as error:
            raise RunError(
                f"{directory / BOOT_STATE} cannot be read: it is of another Ajuste, or damaged",
                hint="check /boot/grub/custom.cfg for entries of Ajuste, then remove this file",
            ) from error

    @classmethod
    def begin(
        cls, directory: Path, plan: BootPlan, machine: RebootableMachine, step: Step = lambda _: None
    ) -> BootSession:
        """Begin an experiment, whose needs were checked, on the disk. Raises OSError, RunError."""
        make_directory(directory)
        files = machine.loader(plan.loader).files
        contents = {str(file): read_content(file) for file in files}
        originals = {name: None if text is None else base64.b64encode(text).decode() for name, text in contents.items()}
        plan = plan.model_copy(update={"originals": originals, "words": machine.command_line})
        session = cls(directory, plan, machine, step)
        for file in (CAME_UP, _LAST):
            remove_durably(directory / file)
        session._save("begun")
        return session

    @property
    def loader(self) -> BootLoader:
        return self.machine.loader(self.plan.loader)

    @property
    def current(self) -> KeptBoot | None:
        """Return the boot of the experiment that this machine is in."""
        last = self.plan.boots[-1] if self.plan.boots else None
        is_here = last is not None and last.outcome == "up" and last.boot_id == self.machine.boot_id
        return last if is_here else None

    @property
    def run(self) -> str:
        """Return the id of its run; empty before there is one."""
        return self.plan.run

    @property
    def kept_boots(self) -> KeptBoots:
        """Return the boots as a run records them."""
        plan = self.plan
        return KeptBoots(each=plan.each, warm_up=plan.warm_up, loader=plan.loader, boots=plan.boots)

    def take_up(self) -> None:
        """Begin or continue in this boot: record what became of the last one, and write what may be missing. Raises
        OSError, RunError.
        """
        self._settle()
        self._step("entries")
        self.loader.prepare(self.plan.entries)
        self._step("units")
        command = (self.plan.command[0], "reboots", "resume")
        if install_units(self.machine.root, self.directory, command, self.plan.environment):
            self.machine.run(("systemctl", "daemon-reload"))

    def keep_run(self, run: str) -> None:
        """Record which run it is."""
        if self.plan.run != run:
            self._save("run", run=run)

    def begin_trials(self, places: Sequence[tuple[int, int, int]]) -> None:
        """Record that trials (block, position, attempt) begin in this boot. Raises OSError."""
        last = self.plan.boots[-1]
        known = tuple(dict.fromkeys((*last.trials, *places)))
        if known != last.trials:
            self._save("trials", boots=(*self.plan.boots[:-1], last.model_copy(update={"trials": known})))

    def ask(self, round_: int, state: BootState) -> None:
        """Make ``state`` the next boot, and only that one. ``machine.run(loader.reboot)`` then boots it. Raises
        OSError, RunError for one that does not come up again and again.
        """
        entry = next(candidate for candidate in self.plan.entries if candidate.state == state)
        self._require_hope(state)
        last = self.plan.boots[-1] if self.plan.boots else None
        if last is None or last.outcome != "asked" or (last.round, last.state) != (round_, state.name):
            new = KeptBoot(number=len(self.plan.boots), state=state.name, round=round_, asked=_now())
            boots = [*self.plan.boots[:-1]] if last is not None and last.outcome == "asked" else [*self.plan.boots]
            self._save("asked", boots=(*boots, new.model_copy(update={"number": len(boots)})))
        remove_durably(self.directory / CAME_UP)
        self._save("asked in", asked_in=self.machine.boot_id, armed=False)
        self._step("arm")
        self.loader.arm(entry)
        self._save("armed", armed=True)

    def end(self) -> tuple[str, ...]:
        """Restore everything except the running kernel; return what others changed meanwhile, which stays. May be done
        twice. Raises OSError, RunError.
        """
        self._save("ending", phase="ending")
        self._step("restore")
        notes = self.loader.restore(self._originals)
        if not notes:
            self._require_as_before()
        self._step("last")
        write_durably(self.directory / _LAST, self.kept_boots.model_dump_json().encode())
        self._step("forget")
        remove_durably(self.directory / BOOT_STATE)
        self._step("remove units")
        remove_units(self.machine)
        remove_durably(self.directory / CAME_UP)
        return notes

    def reboot(self) -> None:
        """Boot the requested entry. Raises RunError."""
        self._step("reboot")
        self.machine.run(self.loader.reboot)

    @property
    def _originals(self) -> dict[str, bytes | None]:
        return {name: None if text is None else base64.b64decode(text) for name, text in self.plan.originals.items()}

    def _require_as_before(self) -> None:
        for name, before in self._originals.items():
            if read_content(Path(name)) != before:
                raise RunError(
                    f"{name} is not as it was before the experiment",
                    hint=f"compare it with the copy in {self.directory / BOOT_STATE}, then run `ajuste restore` again",
                )

    def _require_hope(self, state: BootState) -> None:
        wanted = next(entry.kernel for entry in self.plan.entries if entry.state == state)
        if other := next(
            (b.kernel for b in self.plan.boots if b.state == state.name and b.kernel not in ("", wanted)), ""
        ):
            raise RunError(
                f"{state.name} boots Linux {other}; expected {wanted}",
                hint="check the boot loader's entry of that kernel, or leave that level out with --without",
            )
        outcomes = [boot.outcome for boot in self.plan.boots if boot.state == state.name and boot.outcome != "asked"]
        down = len(list(takewhile(lambda outcome: outcome == "down", reversed(outcomes))))
        if down >= (MOST_ATTEMPTS if down == len(outcomes) else MOST_CUT_EARLY):
            raise RunError(
                f"{state.name} did not come up in {down} boots; this machine booted its own kernel again each time",
                hint="look at it on a console, or leave that level out with --without",
            )

    def _settle(self) -> None:
        last = self.plan.boots[-1] if self.plan.boots else None
        if last is None:
            return
        boot_id, up = self.machine.boot_id, {}
        if last.outcome == "asked" and boot_id != self.plan.asked_in:
            entry = next(candidate for candidate in self.plan.entries if candidate.state.name == last.state)
            if self.machine.mark == entry.mark and self.machine.release != entry.kernel:
                up = {"outcome": "down", "kernel": self.machine.release}
            elif self.machine.mark == entry.mark:
                up = {"kernel": self.machine.release, "command_line": " ".join(self.machine.command_line)}
                up |= {"outcome": "up", "boot_id": boot_id, "came_up": _now()}
            elif entry.mark.encode() in (read_content(self.directory / CAME_UP) or b""):
                up = {"outcome": "cut"}
            elif self.plan.armed:
                up = {"outcome": "down"}
        elif last.outcome == "up" and last.boot_id != boot_id:
            up = {"outcome": "cut"}
        if up:
            self._save("settled", boots=(*self.plan.boots[:-1], last.model_copy(update=up)))

    def _save(self, step: str, **changes: object) -> None:
        self._step(step)
        self.plan = self.plan.model_copy(update=changes)
        write_durably(self.directory / BOOT_STATE, self.plan.model_dump_json(indent=1).encode())


def remove_units(machine: RebootableMachine) -> None:
    """Remove the units that continue after a boot. May be done twice. Raises OSError."""
    if delete_units(machine.root):
        with suppress(RunError):  # They are gone after the next boot in any case.
            machine.run(("systemctl", "daemon-reload"))


def last_boots(directory: Path) -> KeptBoots | None:
    """Return the boots of the last experiment that ended."""
    content = read_content(directory / _LAST)
    return None if content is None else KeptBoots.model_validate_json(content)


def resumed(machine: RebootableMachine) -> None:
    """Record that the experiment continues in this boot, so that it is not given up."""
    (machine.root / RESUMED).touch()


def kept_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the part of an environment that a command needs after a reboot."""
    wanted = ("HOME", "PATH", "LANG", "LC_ALL", "SUDO_UID", "SUDO_GID", "SUDO_USER", "TZ")
    return {
        name: value
        for name, value in environment.items()
        if (name in wanted or name.startswith(("AJUSTE_", "XDG_"))) and value.isprintable()
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


# The machine that is rebooted: what is booted now, which boot loader can boot once, and why it cannot.
#
# Source: UEFI Specification 2.10, 3.3 (SecureBoot); PE format, "The Attribute Certificate Table".


def is_secure_boot(root: Path = Path("/")) -> bool:
    """Return whether the firmware starts only signed programs. The value follows four bytes of attributes."""
    try:
        return (root / _VARIABLE).read_bytes()[4:5] == b"\x01"
    except OSError:
        return False


def is_signed(kernel: Path) -> bool:
    """Return whether a kernel, an EFI program, has a signature; the firmware judges whose."""
    with kernel.open("rb") as file:
        head = file.read(4096)
    try:
        (at,) = struct.unpack_from("<I", head, 0x3C)
        if head[at : at + 4] != b"PE\0\0":
            return False
        (magic,) = struct.unpack_from("<H", head, at + 24)
        directories = at + 24 + (112 if magic == _OPTIONAL_PE32_PLUS else 96)
        _, size = struct.unpack_from("<II", head, directories + 8 * _SECURITY)
    except struct.error:
        return False
    return bool(size)


def require_signed(kernel: Path, release: str, root: Path = Path("/")) -> None:
    """Raise RequestError for a kernel that the firmware would refuse."""
    if is_secure_boot(root) and not is_signed(kernel):
        raise RequestError(
            f"Secure Boot is on, and the kernel {release} is not signed, so the firmware refuses it",
            hint="choose a signed kernel, or turn Secure Boot off in the firmware",
        )


@dataclass(frozen=True)
class RebootableMachine:
    """The machine whose files are below ``root``; ``run`` runs its programs. Played ones have another root."""

    root: Path = Path("/")
    run: RunTool = field(default=run_tool)

    @property
    def boot_id(self) -> str:
        """Another one after each boot (random(4))."""
        return (self.root / "proc/sys/kernel/random/boot_id").read_text().strip()

    @property
    def command_line(self) -> tuple[str, ...]:
        return tuple((self.root / "proc/cmdline").read_text().split())

    @property
    def release(self) -> str:
        """Return the release of the running kernel."""
        return (self.root / "proc/sys/kernel/osrelease").read_text().strip()

    @property
    def mark(self) -> str:
        """Return the word that identifies the running boot as one of an experiment, or empty."""
        return next((word for word in self.command_line if word.startswith(f"{MARK}=")), "")

    def loader(self, name: str) -> BootLoader:
        """Return the boot loader of that name. Raises KeyError."""
        return {kind.name: kind for kind in LOADERS}[name](self.root, self.run)

    def choose(self, name: str = "") -> BootLoader:
        """Return the boot loader of that name, or the first that can boot once. Raises RequestError."""
        reasons = []
        for kind in LOADERS:
            if name in ("", kind.name):
                loader = kind(self.root, self.run)
                if not (why := loader.why_not()):
                    return loader
                reasons.append(why)
        raise RequestError(
            f"no boot loader of this machine can boot an entry once: {'; '.join(reasons)}",
            hint="install GRUB or systemd-boot, or kexec-tools; or measure in guests with --kernel",
        )

    def require_able(self, directory: Path) -> None:
        """Check, without any change, that an experiment with its state in ``directory`` can reboot this machine and
        continue. Raises RequestError.
        """
        if os.geteuid() != 0:
            raise RequestError("rebooting this machine requires root", hint=f"run {as_root()}")
        if not (self.root / "run/systemd/system").is_dir():
            raise RequestError(
                "systemd is not running: nothing would resume the experiment after a reboot",
                hint="run it on a machine with systemd, or measure in guests with --kernel",
            )
        if (self.root / "run/systemd/container").exists():
            raise RequestError("this is a container, which cannot boot another kernel", hint="run it on its host")
        require_lasting(directory, "the state of the experiment", self.root)
        require_lasting(self.root / DIRECTORY, "the unit that resumes the experiment", self.root)

    def require_bootable(self, loader: BootLoader, entries: Sequence[BootEntry]) -> None:
        """Check, without any change, that ``loader`` can boot these. Raises RequestError."""
        loader.check(entries)
        if loader.files:
            require_room(self.root / "boot", "the boot entries of the experiment", self.root)
        for entry in entries:
            file = loader.kernel_file(entry.kernel)
            if file.is_file():
                if not stat.S_ISREG(file.stat().st_mode):
                    raise RequestError(f"{file} is not a file; expected an installed kernel and its initial ramdisk")
                require_signed(file, entry.kernel, self.root)
