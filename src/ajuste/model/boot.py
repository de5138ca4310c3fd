"""The states that this machine boots for an experiment, as levels of a study."""

from __future__ import annotations

import re
from collections.abc import Iterable
from types import MappingProxyType
from typing import Final

from ajuste.model.base import BaseModel
from ajuste.model.error import RequestError

BOOT_PREFIX: Final = "boot."
# Factor whose levels are kernels that are installed on this machine.
BOOT_KERNEL: Final = "boot.kernel"

# The level that changes nothing: what this machine boots by itself.
DEFAULT: Final = "default"
# The level of a word without a value, such as `nosmt`.
SET: Final = "set"
# The level that takes a word away which this machine's own command line has.
UNSET: Final = "unset"

# Words whose value is a list of CPUs: on a command line a plus sign stands for its comma.
OF_CPUS: Final = ("isolcpus", "nohz_full", "rcu_nocbs", "irqaffinity")

# Words without which this machine would not come up as itself, and those that Ajuste sets.
RESERVED: Final = frozenset(
    {"ajuste.boot", "root", "rootfstype", "rootflags", "ro", "rw", "init", "rdinit", "initrd", "BOOT_IMAGE", "resume"}
    | {"single", "emergency", "rescue", "systemd.unit", "rd.break", "panic"}
)

# Default number of blocks in a boot.
DEFAULT_PER_BOOT: Final = 3

# Key of a run's boots in its environment.
BOOTS: Final = "boots"

_VERSIONS: Final = {"v1": "systemd.unified_cgroup_hierarchy=0", "v2": "systemd.unified_cgroup_hierarchy=1"}
# Names for words that nobody remembers.
_SHORT: Final = MappingProxyType({"cgroup": _VERSIONS})

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", re.ASCII)
# Nothing that a boot loader's own language would read as anything but text.
_VALUE: Final = re.compile(r"[A-Za-z0-9_.,:/+@%^!-]{1,200}", re.ASCII)


class BootState(BaseModel):
    """The state to boot: an installed ``kernel`` by its release (empty: the one that this machine boots by itself),
    with ``words`` more on its command line and those named ``without`` taken away.
    """

    kernel: str = ""
    words: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Return the state's name for people."""
        parts = ((self.kernel,) if self.kernel else ()) + self.words + tuple(f"no {word}" for word in self.without)
        return " ".join(parts) or DEFAULT

    def applied_to(self, words: Iterable[str]) -> tuple[str, ...]:
        """Return a command line of these ``words`` with the changes of this state."""
        gone = {*self.without, *map(name_of_word, self.words)}
        return (*(word for word in words if name_of_word(word) not in gone), *self.words)


def is_boot_name(name: str) -> bool:
    """Return whether a factor of that name takes a reboot."""
    return name.startswith(BOOT_PREFIX)


def name_of_word(word: str) -> str:
    """Return the name in a word of a kernel command line, without its value."""
    return word.partition("=")[0]


def check_boot_level(name: str, level: str) -> str:
    """Return ``level`` of the factor ``name`` as it is written. Raises RequestError."""
    word = name.removeprefix(BOOT_PREFIX)
    if name == BOOT_KERNEL:
        if level != DEFAULT and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.+~_-]{0,99}", level, re.ASCII):
            raise RequestError(
                f'found "{level}"; expected the release of an installed kernel, such as 6.1.0-50-amd64, or {DEFAULT}',
                hint="list them with: ls /boot/vmlinuz-*",
            )
        return level
    if not _NAME.fullmatch(word):
        raise RequestError(f'"{word}" is not a word of the kernel\'s command line; expected a NAME such as mitigations')
    if word in RESERVED:
        raise RequestError(f"{word} cannot be varied: this machine requires it to boot")
    if word in _SHORT and level not in (DEFAULT, *_SHORT[word]):
        raise RequestError(f'found "{level}"; expected {DEFAULT}, {" or ".join(_SHORT[word])}')
    if not _VALUE.fullmatch(level):
        raise RequestError(
            f'found "{level}"; expected a value without blanks, quotes or $, or {DEFAULT}, {SET} or {UNSET}'
        )
    return level


def boot_state(levels: Iterable[tuple[str, str]]) -> BootState:
    """Return the boot state of a configuration's boot-time factors, by name and checked level."""
    state = BootState()
    for name, level in levels:
        word = name.removeprefix(BOOT_PREFIX)
        if level == DEFAULT:
            continue
        if name == BOOT_KERNEL:
            state = state.model_copy(update={"kernel": level})
        elif level == UNSET:
            state = state.model_copy(update={"without": (*state.without, word)})
        else:
            text = _SHORT[word][level] if word in _SHORT else word if level == SET else f"{word}={level}"
            state = state.model_copy(update={"words": (*state.words, text)})
    return state
