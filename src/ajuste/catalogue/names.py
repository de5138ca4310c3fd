"""The names that a tunable goes by: its own, the one that sysctl(8) has for it, and its path."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ajuste.catalogue.sysctl import sysctl_name
from ajuste.model.part import Part
from ajuste.model.tunable import Tunable

_PLACEHOLDER = re.compile(r"\\\{([a-z]+)\\\}")


def find(tunables: Mapping[str, Tunable], parts: Mapping[str, Part], name: str) -> tuple[Tunable, str | None] | None:
    """The tunable that ``name`` means, by any of its names, and the instance where the name is the path of one."""
    if name in tunables:
        return tunables[name], None
    dotted = name.replace("/", ".").strip(".").removeprefix("proc.sys.")
    for tunable in tunables.values():
        if name in tunable.aliases:
            return tunable, None
        for where in tunable.where:
            # The path of a file of flags is the name of none of them.
            if _is_at(where.path, name, dotted) and where.path and not where.flag and not where.placeholders:
                return tunable, None
    return _by_path(tunables, parts, name) if name.startswith("/") else None


def _is_at(path: str, name: str, dotted: str) -> bool:
    """Whether ``name`` is the path, or ``dotted`` (``net.ipv4.tcp_sack``) what sysctl(8) has for it."""
    return path == name or sysctl_name(path) == dotted


def _by_path(tunables: Mapping[str, Tunable], parts: Mapping[str, Part], path: str) -> tuple[Tunable, str] | None:
    for tunable in tunables.values():
        for where in tunable.where:
            found = named_parts(where.path, parts, path) if where.placeholders and where.path else None
            if found:
                return tunable, "/".join(found[part] for part in tunable.parts)
    return None


def named_parts(template: str, parts: Mapping[str, Part], path: str) -> dict[str, str] | None:
    """The parts that ``path`` has where ``template`` has placeholders; ``None`` if it is no path of that form."""
    match = re.fullmatch(_PLACEHOLDER.sub(r"(?P<\1>[^/]+)", re.escape(template)), path)
    if not match:
        return None
    read = {name: parts[name].read(text) for name, text in match.groupdict().items()}
    return {name: text for name, text in read.items() if text is not None} if None not in read.values() else None
