"""Capabilities: who may ask Ajuste for what. Every entrance asks this table before anything is done."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, Literal, get_args

from ajuste.model.error import RequestError

Asker = Literal["owner", "sudo", "study file", "project file", "page", "viewer", "agent", "worker", "bundle"]
Kind = Literal[
    "host",
    "tunable",
    "risk",
    "place",
    "parameter",
    "path",
    "file system",
    "device",
    "command",
    "root command",
    "boot",
    "adoption",
    "guest command",
    "guest root",
    "kernel package",
    "built kernel",
    "kernel file",
    "kernel build",
    "kernel source",
]
Rule = Literal["yes", "no", "named", "--accept-risk", "--allow-host", "--reboots", "--build"]

ASKERS: Final[Mapping[Asker, str]] = MappingProxyType(
    {
        "owner": "You, at the command line or in Python",
        "sudo": "You by `sudo`: commands are yours, not root's",
        "study file": "A study file that you run, also a stranger's",
        "project file": "`ajuste.toml` of a revision that `gate` and `history` measure",
        "page": "The lab page, opened with its own address",
        "viewer": "The lab page, opened with the address for looking",
        "agent": "Programs that use `ajuste mcp` or `/api` of the lab page",
        "worker": "The coordinator of your cluster, at a worker",
        "bundle": "A run that you imported: `why`, `verify`, `export`",
    }
)
KINDS: Final[Mapping[Kind, str]] = MappingProxyType(
    {
        "host": "A trial on this machine",
        "tunable": "A tunable of the catalogue on this machine",
        "risk": "A value that can hang this machine",
        "place": "A file or device to write that is not in the catalogue",
        "parameter": 'A workload parameter with `chosen_by = "anyone"` in the catalogue',
        "path": "A file or directory of this machine; a workload parameter that names one",
        "file system": "A file system or disk made for a trial on this machine",
        "device": "A disk of this machine to overwrite; arguments of mkfs or mount that may name one",
        "command": "A command on this machine",
        "root command": "A command on this machine as root or another user",
        "boot": "What this machine boots",
        "adoption": "A proved setting that stays after `ajuste live`",
        "guest command": "A command in a guest",
        "guest root": "A command in a guest as its root",
        "kernel package": "A kernel package: `debian:6.12`",
        "built kernel": "A kernel that was built here: `mine:NAME`",
        "kernel file": "A kernel by its file: `path:VMLINUZ`",
        "kernel build": "A distribution's kernel to build with other options: `build:debian:6.1+NUMA=n`",
        "kernel source": "A source tree, patch, text or BPF scheduler to build: its commands run on this machine",
    }
)

_GUESTS: Final[Mapping[Kind, Rule]] = {
    "parameter": "yes",
    "guest command": "yes",
    "guest root": "yes",
    "kernel package": "yes",
}
_OF_A_STUDY: Final[Mapping[Kind, Rule]] = {
    **_GUESTS,
    "host": "yes",
    "tunable": "yes",
    "risk": "--accept-risk",
    "path": "yes",
    "file system": "yes",
    "device": "--accept-risk",
    "command": "yes",
    "root command": "yes",
    "boot": "--reboots",
    "built kernel": "yes",
    "kernel file": "yes",
    "kernel build": "yes",
}
_RULES: Final[Mapping[Asker, Mapping[Kind, Rule]]] = {
    "owner": {**_OF_A_STUDY, "adoption": "yes", "kernel source": "yes"},
    "sudo": {**_OF_A_STUDY, "adoption": "yes", "kernel source": "yes"},
    "study file": {**_OF_A_STUDY, "kernel source": "--build"},
    "project file": {
        "host": "yes",
        "parameter": "yes",
        "path": "yes",
        "command": "yes",
        "guest command": "yes",
        "kernel package": "yes",
        "built kernel": "yes",
        "kernel file": "yes",
    },
    "page": {
        **_GUESTS,
        "host": "--allow-host",
        "tunable": "--allow-host",
        "path": "yes",
        "file system": "--allow-host",
        "command": "--allow-host",
        "root command": "--allow-host",
        "built kernel": "yes",
        "kernel file": "yes",
        "kernel build": "yes",
    },
    "viewer": {},
    "agent": {
        "host": "--allow-host",
        "tunable": "named",
        "parameter": "yes",
        "guest command": "yes",
        "guest root": "yes",
        "kernel package": "yes",
        "built kernel": "yes",
    },
    "worker": {
        **_GUESTS,
        "host": "yes",
        "tunable": "yes",
        "risk": "--accept-risk",
        "path": "yes",
        "file system": "yes",
        "device": "--accept-risk",
        "command": "yes",
        "root command": "yes",
    },
    "bundle": _GUESTS,
}

_CALLED: Final[Mapping[Asker, str]] = {
    "owner": "you",
    "sudo": "you",
    "study file": "a study file",
    "project file": "a project file",
    "page": "the lab page",
    "viewer": "a viewer",
    "agent": "an agent",
    "worker": "a coordinator",
    "bundle": "an imported run",
}

_REFUSED: Final[Mapping[Rule, str]] = {
    "yes": "",
    "no": "may not name",
    "named": "may name only as its owner allowed",
    "--accept-risk": "may name only with --accept-risk",
    "--allow-host": "may name only with --allow-host",
    "--reboots": "may name only with --reboots",
    "--build": "may name only with --build",
}

_HINTS: Final[Mapping[Kind, str]] = {
    "path": "use a guest, or a parameter that names no path",
    "command": "use a workload of the catalogue, or a guest",
    "root command": "use a guest",
    "file system": "use a guest",
    "device": "use a guest",
    "boot": "use a guest with other kernel arguments",
    "adoption": "run it without --adopt; the owner of this machine adopts",
    "host": 'use a guest: target.kind = "vm" with a kernel such as debian:6.12',
    "tunable": 'use a guest: target.kind = "vm" with a kernel such as debian:6.12',
    "risk": "use a guest, where there is no risk",
    "kernel file": "use a kernel package such as debian:6.12",
    "kernel build": "use a kernel package such as debian:6.12, or one that the owner built: mine:NAME",
    "kernel source": "use a kernel package such as debian:6.12, or one that the owner built: mine:NAME",
}

# Environment variable of a child process: for whom it works, and after a colon the tunables that were granted.
VARIABLE: Final = "AJUSTE_ASKED_BY"


def rule(asker: Asker, kind: Kind) -> Rule:
    """Return whether ``asker`` may ask for ``kind``; what is not in the table is refused."""
    return _RULES[asker].get(kind, "no")


@dataclass(frozen=True)
class Asked:
    """The asker, and what the owner granted: the tunables ``named``, and ``options`` of the command line."""

    asker: Asker
    named: frozenset[str] = frozenset()
    options: frozenset[Rule] = frozenset()

    @property
    def planning(self) -> Asked:
        """Return the rights with the command line's options, for those who can add them: a plan shows their use."""
        whole = frozenset(get_args(Rule)) if self.asker in ("owner", "sudo", "study file", "worker") else self.options
        return replace(self, options=whole)

    def may(self, kind: Kind, value: str = "") -> bool:
        """Return whether this asker may ask for ``value``."""
        verdict = rule(self.asker, kind)
        return (
            verdict == "yes"
            or (verdict == "named" and value in self.named)
            or verdict in self.options - {"no", "named"}
        )

    def require(self, kind: Kind, value: str, where: str = "") -> None:
        """Raise RequestError unless this asker may ask for ``value`` in the field ``where``."""
        if self.may(kind, value):
            return
        message, hint = _REFUSED[rule(self.asker, kind)], _HINTS.get(kind, "see `ajuste help capabilities`")
        if rule(self.asker, kind) == "--build":
            hint = "it runs on this machine: read the file, then add --build to ajuste run"
        if rule(self.asker, kind) == "named" and self.named:
            hint = f"allowed here: {', '.join(sorted(self.named)[:10])}"
        place = f"{where}: " if where else ""
        words = re.split(r"[:;]| with `", KINDS[kind])[0]
        raise RequestError(
            f"{place}{value[:80]!r} is {words[:1].lower() + words[1:]}, which {_CALLED[self.asker]} {message}",
            hint=hint,
        )


def granted(asker: Asker, named: Iterable[str]) -> Asked:
    """Return an asker who may measure on this machine where the owner ``named`` tunables of it, and not otherwise."""
    names = frozenset(named)
    return Asked(asker, names, frozenset({"--allow-host"}) if names else frozenset())


# Rights that a process passes to a child that it starts for somebody else.


def child_environment(rights: Asked) -> dict[str, str]:
    """Return the environment variable that says it to a child process."""
    return {VARIABLE: f"{rights.asker}:{','.join(sorted(rights.named))}"}


def asked_here(*, accept_risk: bool = False, environment: Mapping[str, str] = os.environ) -> Asked:
    """Return for whom this process works. Raises RequestError for nobody that is known."""
    options: frozenset[Rule] = frozenset({"--accept-risk"}) if accept_risk else frozenset()
    text = environment.get(VARIABLE)
    if text is None:
        return Asked("sudo" if "SUDO_UID" in environment else "owner", options=options)
    name, _, named = text.partition(":")
    for asker in get_args(Asker):
        if asker == name:
            return granted(asker, filter(None, named.split(",")))
    raise RequestError(f"{VARIABLE} = {text[:80]!r}: expected one of {', '.join(get_args(Asker))}", hint="unset it")
