"""Bisection over the options in which two kernels differ."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ajuste.design.bisection import Changes, Outcome, minimal_changes
from ajuste.kernel.candidate import upstream_of
from ajuste.kernel.difference.difference import KernelDifference
from ajuste.model.error import RequestError

_PACKAGED: Final = re.compile(r"linux-source-\S+ (\S+)")
_AT_REVISION: Final = re.compile(r"(/.+) at (\S+)")
_LONGEST: Final = 4
_NOT_SET: Final = frozenset({"n", "absent"})

Test = Callable[[Changes], Outcome]


@dataclass(frozen=True)
class OptionChanges:
    """What can be set to make the good kernel the bad one: a ``NAME=VALUE`` for each; all else follows by Kconfig."""

    settings: dict[str, str]

    @property
    def names(self) -> Changes:
        return tuple(self.settings)

    def some(self, names: Changes) -> tuple[str, ...]:
        """As ``ajuste kernel build --set`` takes them."""
        return tuple(f"{name}={self.settings[name]}" for name in names)


def option_changes(difference: KernelDifference) -> OptionChanges:
    """The changes that are no consequence of others. Raises RequestError where there are none, or where no source
    tells which they are.
    """
    if not difference.a.source or not difference.b.source:
        lacking = difference.a.lacking or difference.b.lacking
        raise RequestError(
            f"cannot find the options that decide: {lacking}",
            hint="name the kernel's source, such as --source debian:6.1",
        )
    if difference.a.source != difference.b.source:
        raise RequestError(
            f"the kernels have different sources ({difference.a.source}, {difference.b.source}); "
            "bisecting options requires one source",
            hint="bisect versions instead, such as --good debian:5.10 --bad debian:6.1",
        )
    chosen = [change for change in difference.effective if change.reason in ("asked", "default")]
    settings = {change.name: "n" if change.b in _NOT_SET else change.b for change in chosen}
    if not settings:
        raise RequestError(
            f"{difference.a.name} and {difference.b.name} have the same value for every option that can be set",
            hint="give two kernels with different options",
        )
    return OptionChanges(settings)


def bisect_options(changes: OptionChanges, test: Test) -> Changes:
    """The smallest set of options that makes the difference. All together are tested first: where they do not make it,
    it is not in the options, and RequestError is raised.
    """
    names = changes.names
    if len(names) > 1 and (outcome := test(names)) != "there":
        raise RequestError(
            f"all {len(names)} options together do not reproduce the difference ({outcome}), so no option explains it",
            hint="compare the sources, patches and compilers of the kernels",
        )
    return minimal_changes(names, test)


def source_of(title: str) -> str:
    """What ``--source`` takes for the sources that a kernel's record calls ``title``."""
    if match := _PACKAGED.fullmatch(title):
        return f"debian:{upstream_of(match[1])}"
    if match := _AT_REVISION.fullmatch(title):
        return f"git:{Path(match[1]).parent if match[1].endswith('/.git') else match[1]}@{match[2]}"
    return title


def label_of(names: Changes) -> str:
    """How a set of options is called in a line."""
    more = len(names) - _LONGEST
    return ", ".join(names[:_LONGEST]) + (f" and {more} more" if more > 0 else "")


def kernel_name(*parts: str) -> str:
    """The name of a kernel that is built as a candidate, always the same for the same."""
    return f"bisect-{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:12]}"
