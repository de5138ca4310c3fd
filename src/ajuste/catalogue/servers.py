"""Settings of running servers of this machine as tunables: ``redis.hz[6379]``, ``postgresql.work_mem[/run/x.sock]``.

There are as many as servers, so they are made from the name. The catalogue says which settings there are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, NamedTuple

from ajuste.model.error import RequestError, did_you_mean, nearest_names
from ajuste.model.tunable import SERVER_KINDS, Risk, Tunable, Where

if TYPE_CHECKING:
    from ajuste.model.workload import ServiceKind

_PORT: Final = re.compile(r"[1-9][0-9]{0,4}")

# A path of at most 107 bytes (unix(7)), without what has another meaning in a name.
_SOCKET: Final = re.compile(r"(/[A-Za-z0-9_.@:-]{1,100}){1,20}")

_LONGEST_SOCKET: Final = 107

# Numbers with or without a unit, and words: no text has another meaning to a server.
_LEVEL: Final = r"[A-Za-z0-9+.-][A-Za-z0-9_+.-]{0,63}"

ANY_TEXT: Final = "a number, with or without a unit, or a word"
"""The levels of a server's setting, in words: only the server knows more."""

# memtoull of Redis' util.c.
_SIZE: Final = re.compile(r"([0-9]{1,15})(b|k|kb|m|mb|g|gb)", re.IGNORECASE)

_BYTES: Final = {"b": 1, "k": 10**3, "kb": 1 << 10, "m": 10**6, "mb": 1 << 20, "g": 10**9, "gb": 1 << 30}


class _Listens(NamedTuple):
    # Where a server listens: by default, and at a port.
    port: str
    at_port: str


_LISTENS: Final = {
    "redis": _Listens("6379", "127.0.0.1:{}"),
    "postgresql": _Listens("5432", "/var/run/postgresql/.s.PGSQL.{}"),
}


def is_server_name(name: str) -> bool:
    """Return whether ``name`` can only be that of a server's setting."""
    return name.partition(".")[0] in SERVER_KINDS


def server_setting(services: Mapping[str, ServiceKind], name: str, address: str | None) -> Tunable:
    """Return the setting ``KIND.NAME`` of the server at ``address``: a port or a socket, or the usual port if none is
    given. Raises RequestError.
    """
    prefix, _, setting = name.partition(".")
    kind = next(kind for kind in SERVER_KINDS if kind == prefix)
    server = services[kind]
    if not any(fnmatchcase(setting, pattern) for pattern in server.running) or not re.fullmatch(server.names, setting):
        plain = [pattern for pattern in server.running if "*" not in pattern]
        raise RequestError(
            f"{setting!r} is not a setting that Ajuste changes while {server.title} runs",
            hint=did_you_mean(nearest_names(setting, plain))
            or "use `ajuste compare --service COMMAND`, which starts the server again for each level, with any setting",
        )
    where = _address(kind, address or _LISTENS[kind].port)
    note = server.risks.get(setting, "")
    causes = next((causes for pattern, causes in server.acts_on.items() if fnmatchcase(setting, pattern)), ())
    risk: Risk = "data" if note else "none"
    return Tunable(
        name=f"{name}[{_short(kind, where)}]",
        title=f"{setting} of {server.title}",
        subsystem=kind,
        what=f"A setting of a running {server.title}; its own manual explains it.",
        type="text",
        also=_LEVEL,
        default="as the server is configured",
        acts_on=causes,
        tries=server.tries.get(setting, ()),
        risk=risk,
        risk_note=note,
        where=(Where(kind=kind, attribute=setting, device=where),),
    )


def server_level(tunable: Tunable, value: str) -> str:
    """Return ``value`` as the server shows it. Raises RequestError for what is no word or number."""
    if not re.fullmatch(tunable.also, value):
        raise RequestError(
            f"{tunable.name} = {value!r}: expected {ANY_TEXT}",
            hint="write it as the server shows it, such as 64MB or on",
        )
    size = _SIZE.fullmatch(value) if tunable.subsystem == "redis" else None
    return str(int(size[1]) * _BYTES[size[2].lower()]) if size else value


def _address(kind: str, text: str) -> str:
    if _PORT.fullmatch(text) and int(text) < 1 << 16:
        return _LISTENS[kind].at_port.format(text)
    if _SOCKET.fullmatch(text) and ".." not in text.split("/") and len(text) <= _LONGEST_SOCKET:
        return text
    raise RequestError(
        f"found {text!r}; expected a port or a socket of a server of this machine",
        hint=f"write {kind}:{_LISTENS[kind].port}, or {kind}:/PATH/OF/SOCKET",
    )


def _short(kind: str, address: str) -> str:
    # One name for one place.
    before, _, after = _LISTENS[kind].at_port.partition("{}")
    port = address.removeprefix(before).removesuffix(after)
    return port if address.startswith(before) and _PORT.fullmatch(port) else address
