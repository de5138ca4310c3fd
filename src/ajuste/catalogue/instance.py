"""One of several: ``NAME[INSTANCE]``, read and written."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ajuste.catalogue.place import sysctl_name
from ajuste.model.error import RequestError
from ajuste.model.tunable import Part, Tunable

_NAME = re.compile(r"([^\[\]]+)(?:\[([^\[\]]*)\])?")


def split_name(text: str) -> tuple[str, str | None]:
    """The name and what stands in brackets behind it (``None``: nothing). Raises RequestError for other brackets."""
    match = _NAME.fullmatch(text.strip())
    if not match:
        raise RequestError(f"{text!r} is not the name of a tunable; expected NAME or NAME[INSTANCE]")
    return match[1].strip(), match[2] if match[2] is None else match[2].strip()


def instance(parts: Mapping[str, Part], tunable: Tunable, text: str) -> Tunable:
    """The instance ``text`` of a tunable that there is several times.

    Raises RequestError with an example for what can be no such thing.
    """
    if not tunable.parts:
        raise RequestError(f"{tunable.name} has no instances; remove [{text}]")
    words = [text] if len(tunable.parts) == 1 else text.split("/")
    read = [parts[name].read(word) for name, word in zip(tunable.parts, words, strict=False)]
    names = [name for name in read if name is not None]
    if len(words) != len(tunable.parts) or len(names) != len(words):
        raise RequestError(f"{text!r} is not a {kind(parts, tunable)}; expected {one_of_several(parts, tunable)}")
    return tunable.instance(dict(zip(tunable.parts, names, strict=True)))


def example(parts: Mapping[str, Part], tunable: Tunable) -> Tunable:
    """The tunable, or the instance that stands as an example for the many."""
    return tunable.instance({name: parts[name].example for name in tunable.parts}) if tunable.parts else tunable


def kind(parts: Mapping[str, Part], tunable: Tunable) -> str:
    """What there is one of it for: ``CPU``, ``idle state of a CPU``."""
    return " of a ".join(parts[name].title for name in reversed(tunable.parts))


def one_of_several(parts: Mapping[str, Part], tunable: Tunable) -> str:
    """How an instance is written, in words."""
    return f"a name such as {example(parts, tunable).name}"


def missing(parts: Mapping[str, Part], tunable: Tunable, there: tuple[str, ...] = ()) -> RequestError:
    """The error for a tunable that there is several times where one must be named. ``there`` are those of the
    machine."""
    said = f"{tunable.name} requires an instance, one for each {kind(parts, tunable)}: {tunable.name}[…]"
    if there:
        return RequestError(f"{said}; this machine has {', '.join(there)}", hint=f"write {tunable.name}[{there[0]}]")
    return RequestError(said, hint=f"name one, such as {example(parts, tunable).name}")


# The names that a tunable goes by: its own, the one that sysctl(8) has for it, and its path.


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
