"""The guard of the lab page: it serves this machine only, needs a token, refuses other sites, and limits requests.

The page changes things, so it is guarded as Jupyter guards its own: a token in the first address, then a cookie that no
other site's pages can use. Source: OWASP Cross-Site Request Forgery Prevention Cheat Sheet; Fetch Metadata (W3C).
"""

from __future__ import annotations

import asyncio
import errno
import hmac
import json
import logging
import secrets
import socket
import struct
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass, field
from html import escape
from http.cookies import CookieError, SimpleCookie
from typing import Any, Final, Literal, NoReturn
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ajuste.machine.files import is_trusted
from ajuste.model.error import RequestError
from ajuste.model.wording import sentence_start

_LOG: Final = logging.getLogger(__name__)

Role = Literal["writer", "viewer"]
Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

LARGEST_BODY: Final = 512 * 1024
IMPORT: Final = "/import"
"""The address that takes bundles."""
LARGEST_BUNDLE: Final = 64 << 20
"""Maximum size of a bundle in bytes, about 100,000 trials. ``ajuste import`` takes larger ones."""
LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
VIEWED: Final = frozenset(
    (
        *("/", "/static/{name}", "/compare", "/compare.json", "/machine", "/tunables", "/tunables/{name:path}"),
        *("/runs/{run}", "/runs/{run}/events", "/runs/{run}/report.html", "/runs/{run}/results.json"),
        *("/runs/{run}/study.toml", "/runs/{run}/explore", "/runs/{run}/explore.json", "/runs/{run}/analysed.json"),
        *("/runs/{run}/column", "/jobs/{job}", "/jobs/{job}/state"),
        *("/api/openapi.json", "/api/tunables", "/api/studies", "/api/runs", "/api/verdicts", "/api/differences"),
        *("/api/campaigns", "/api/campaign_ledger"),
    )
)
"""The routes that a viewer may GET. They read the store: they start no process, use no network and never wait."""
MOST_VIEWED: Final = {"asked": 20, "followed": 120}
"""Maximum number of viewers' requests at once, and of runs that they follow: the rest is reserved for the owner."""
_SAFE: Final = ("GET", "HEAD")
# Plots make an empty style element, whose rules they then add: the digest of nothing.
_EMPTY_STYLE: Final = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
# Styles of single elements may be inline (plots set them), style sheets and scripts may not.
_POLICY: Final = (
    "default-src 'self'; script-src 'self'; img-src 'self' data: blob:; "
    f"style-src 'self'; style-src-elem 'self' {_EMPTY_STYLE}; style-src-attr 'unsafe-inline'; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_HEADERS: Final = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)

_FOR_THE_OWNER: Final = (403, "this address is for looking only", "open the address that ajuste serve printed")
HOST: Final = "127.0.0.1"

MOST_CONNECTIONS: Final = 200
"""Maximum number of connections of the owner, and of all others together."""

HEADER_SECONDS: Final = 10.0
"""Time limit in seconds for the headers of a request."""

# Connections that the event loop accepts before it answers the next request: each takes a descriptor.
_AT_ONCE: Final = 32

# Connections that wait in the kernel meanwhile.
_WAITING: Final = 1024

_SOCK_DIAG: Final = 4
_BY_FAMILY: Final = 20


@dataclass
class Allowance:
    """A token bucket: ``rate`` requests a second, a ``burst`` at once; ``clock`` is monotonic, in seconds."""

    rate: float
    burst: float
    clock: Callable[[], float] = time.monotonic
    _left: float = field(init=False)
    _at: float = field(init=False)

    def __post_init__(self) -> None:
        self._left, self._at = self.burst, self.clock()

    def take(self) -> bool:
        now = self.clock()
        self._left = min(self.burst, self._left + (now - self._at) * self.rate)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class _TooLarge(Exception):
    pass


class OwnerOnly:
    """Refuses viewers every address outside ``VIEWED``. ``Access`` is around it."""

    def __init__(self, app: Application) -> None:
        self._within = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["role"] != "writer":
            await _refuse(scope, send, *_FOR_THE_OWNER)
            return
        await self._within(scope, receive, send)


class Access:
    """Lets through what may pass, to the application within, whose ``scope`` then has the ``role``.

    ``token`` is for who may change things; ``viewer_token`` for who may only look. ``once`` is a token that opens the
    page once and only for the owner's own programs: all users can read a browser's command line. ``port`` names the
    cookie, since cookies are shared by the ports of a host, and is part of the hosts that a browser may name (against
    DNS rebinding).
    """

    def __init__(
        self,
        within: Application,
        *,
        token: str,
        port: int,
        hosts: Iterable[str] = LOOPBACK,
        once: str = "",
    ) -> None:
        self._within = within
        self._once = once
        self._tokens: dict[Role, str] = {"writer": token, "viewer": viewer_token(token)}
        self._cookie = f"ajuste-lab-{port}"
        self._hosts = frozenset(name for host in hosts for name in (f"{host}:{port}", *((host,) if port == 80 else ())))
        self._reading: dict[Role, Allowance] = {role: Allowance(200, 1000) for role in self._tokens}
        self._changing = Allowance(5, 30)
        self._viewing = Counter[str]()
        self._guessing = Allowance(1, 20)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._within(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if headers.get("host", "") not in self._hosts:
            await _refuse(
                scope, send, 421, "this address is not the lab page's", "open the address that ajuste serve printed"
            )
            return
        presented = self._token(scope, headers)
        role = self._role(presented)
        if role is None and self._is_exchanged(scope):
            await self._welcome(scope, send, self._tokens["writer"])
            return
        if role is None:
            await self._unknown(scope, send, presented)
            return
        if not (self._reading[role] if scope["method"] in _SAFE or role == "viewer" else self._changing).take():
            await _refuse(scope, send, 429, "too many requests", "wait a few seconds, then try again")
            return
        if "token" in dict(_query(scope)) and scope["method"] in _SAFE and not scope["path"].startswith("/api/"):
            await self._welcome(scope, send, self._tokens[role])
            return
        if problem := self._problem(scope, headers, role):
            await _refuse(scope, send, *problem)
            return
        scope["role"] = role
        kind = "followed" if scope["path"].endswith("/events") else "asked"
        if role == "viewer" and self._viewing[kind] >= MOST_VIEWED[kind]:
            await _refuse(scope, send, 429, "too many viewers", "wait a few seconds, then try again")
            return
        self._viewing[kind] += role == "viewer"
        try:
            await self._pass(scope, receive, send)
        finally:
            self._viewing[kind] -= role == "viewer"

    def _token(self, scope: Scope, headers: dict[str, str]) -> str:
        if token := dict(_query(scope)).get("token"):
            return token
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind.lower() in ("bearer", "token"):
            return token.strip()
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(self._cookie)
        except CookieError:
            return ""
        return cookie.value if cookie else ""

    def _role(self, presented: str) -> Role | None:
        matched: Role | None = None
        for role, token in self._tokens.items():
            if hmac.compare_digest(presented.encode(), token.encode()):
                matched = role
        return matched

    def _is_exchanged(self, scope: Scope) -> bool:
        if not self._once or scope["method"] != "GET" or scope["path"] != "/":
            return False
        is_right = hmac.compare_digest(dict(_query(scope)).get("token", "").encode(), self._once.encode())
        if not is_right or not _is_owners(scope["server"], scope["client"]):
            return False
        self._once = ""
        return True

    async def _unknown(self, scope: Scope, send: Send, presented: str) -> None:
        if presented and not self._guessing.take():
            await _refuse(scope, send, 429, "too many wrong tokens", "wait a minute")
            return
        message = "the token is wrong" if presented else "a token is required"
        await _refuse(scope, send, 403, message, "open the address that ajuste serve printed")

    async def _welcome(self, scope: Scope, send: Send, token: str) -> None:
        # The cookie replaces the token in the address, which the browser's history would keep.
        rest = urlencode([(name, value) for name, value in _query(scope) if name != "token"])
        place = "/" + scope["path"].lstrip("/\\") + (f"?{rest}" if rest else "")
        # Percent-encoded: a line break in a header would begin another one.
        location = quote(place, safe="/?&=%+:,;@~!$'()*-._[]").encode("ascii")
        cookie = f"{self._cookie}={token}; Path=/; HttpOnly; SameSite=Strict"
        headers = [
            *_HEADERS,
            (b"location", location),
            (b"set-cookie", cookie.encode()),
            (b"cache-control", b"no-store"),
            (b"content-length", b"0"),
        ]
        await send({"type": "http.response.start", "status": 303, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    def _problem(self, scope: Scope, headers: dict[str, str], role: Role) -> tuple[int, str, str] | None:
        site, origin = headers.get("sec-fetch-site", ""), headers.get("origin", "")
        has_origin = origin and not (origin == "null" and site == "same-origin")  # a page without referrer says null
        is_same_host = not has_origin or urlsplit(origin).netloc == headers["host"]
        if scope["method"] in _SAFE:
            if site == "cross-site" and headers.get("sec-fetch-mode") != "navigate":
                return 403, "another site asked for this page", "open the page itself"
            return None
        if site not in ("", "same-origin", "none") or not is_same_host:
            return 403, "another site asked to change something", "use the lab page's own buttons"
        if not (site or origin or "authorization" in headers):
            return 403, "nothing says where this request comes from", "send the token in the header Authorization"
        if role == "viewer":
            return _FOR_THE_OWNER
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > _largest(scope):
            return _too_large(scope)
        return None

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        received, started, too_large = 0, False, False

        async def counted() -> Message:
            nonlocal received, too_large
            message = await receive()
            received += len(message.get("body", b""))
            if received > _largest(scope):
                too_large = True
                raise _TooLarge
            return message

        async def guarded(message: Message) -> None:
            nonlocal started
            if too_large and not started:  # The application answers the exception with an error page of its own.
                return
            if message["type"] == "http.response.start":
                started = True
                present = {name.lower() for name, _ in message["headers"]}
                more = [header for header in _HEADERS if header[0] not in present]
                if b"cache-control" not in present:
                    more.append((b"cache-control", b"no-store"))
                message = {**message, "headers": [*message["headers"], *more]}
            await send(message)

        try:
            await self._within(scope, counted, guarded)
        except _TooLarge:
            if not started:
                await _refuse(scope, send, *_too_large(scope))


def new_token() -> str:
    """Return a new random token."""
    return secrets.token_urlsafe(24)


def viewer_token(token: str) -> str:
    """Return the viewers' token; ``token`` cannot be computed from it."""
    return hmac.new(token.encode(), b"ajuste lab viewer", "sha256").hexdigest()[:32]


def wants_json(scope: Scope) -> bool:
    """Return whether the client is a program, which reads errors as JSON."""
    return scope["path"].startswith("/api/") or (b"accept", b"application/json") in scope["headers"]


def _largest(scope: Scope) -> int:
    return LARGEST_BUNDLE if scope["path"] == IMPORT else LARGEST_BODY


def _too_large(scope: Scope) -> tuple[int, str, str]:
    if scope["path"] == IMPORT:
        most = f"expected at most {LARGEST_BUNDLE >> 20} MiB"
        return 413, f"the bundle is too large for the lab page; {most}", "import it in a terminal: ajuste import FILE"
    return 413, f"the request is too large; expected at most {LARGEST_BODY // 1024} KiB", "send less"


async def _refuse(scope: Scope, send: Send, status: int, message: str, hint: str) -> None:
    if wants_json(scope):
        kind, body = b"application/json", json.dumps({"error": message, "hint": hint})
    else:
        kind = b"text/html; charset=utf-8"
        body = (
            '<!doctype html><html lang="en"><meta charset="utf-8"><title>Ajuste</title>'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<main><h1>{escape(sentence_start(message))}</h1>"
            f"<p>{escape(sentence_start(hint))}.</p></main></html>"
        )
    content = body.encode()
    headers = [*_HEADERS, (b"content-type", kind), (b"content-length", str(len(content)).encode())]
    await send(
        {"type": "http.response.start", "status": status, "headers": [*headers, (b"cache-control", b"no-store")]}
    )
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else content})


def _query(scope: Scope) -> list[tuple[str, str]]:
    return parse_qsl(scope.get("query_string", b"").decode("latin-1")[:8192], keep_blank_values=True)


# Serving an application on this machine only, until somebody interrupts it.


class _Connection(H11Protocol):
    # An idle connection is closed after `HEADER_SECONDS`, or at once if new ones need its place.
    #
    # All clients are on this machine and have one address, so no limit for each is possible: the oldest idle one is
    # closed first, and the owner's places are reserved.
    _deadline: asyncio.TimerHandle | None = None
    since = 0.0
    is_owners = False

    @property
    def is_waiting(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.since, self.is_owners = (
            self.loop.time(),
            _is_owners(transport.get_extra_info("sockname"), transport.get_extra_info("peername")),
        )
        self._expect_request()
        connections = (c for c in self.connections if isinstance(c, _Connection))
        alike = [connection for connection in connections if connection.is_owners == self.is_owners]
        surplus = len(alike) - MOST_CONNECTIONS
        if surplus > 0:
            waiting = [connection for connection in alike if connection.is_waiting]
            for connection in sorted(waiting, key=lambda c: c.since)[:surplus]:
                if connection is not self:
                    connection.transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_deadline()
        super().connection_lost(exc)

    def _expect_request(self) -> None:
        if not self.is_waiting:
            self._forget_deadline()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(HEADER_SECONDS, self.transport.abort)

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def _is_owners(local: tuple[str, int] | None, peer: tuple[str, int] | None) -> bool:
    # The kernel knows the user of the client's socket (sock_diag(7)): a client on this machine has no say in it.
    if not local or not peer:
        return False
    from_client = (*peer, *local)
    try:
        addresses = b"".join(socket.inet_aton(str(host)).ljust(16, b"\0") for host in from_client[::2])
    except OSError:
        return False
    ports = struct.pack("!HH", *from_client[1::2])
    which = struct.pack("=BBxxI", socket.AF_INET, socket.IPPROTO_TCP, 0xFFFFFFFF)
    ask = which + ports + addresses + bytes(4) + b"\xff" * 8
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
            kernel.settimeout(1)
            kernel.send(struct.pack("=IHHII", 16 + len(ask), _BY_FAMILY, 1, 0, 0) + ask)
            kind, uid, inode = struct.unpack_from("=4xH74xII", kernel.recv(4096))
    except (OSError, struct.error):
        return False
    # A socket that its process has left has no inode, and the UID 0.
    return kind == _BY_FAMILY and inode != 0 and is_trusted(uid)


class _Server(uvicorn.Server):
    # Says when it listens. An interruption ends it at once: pages that watch a run would never let go.
    def __init__(self, config: uvicorn.Config, listening: Callable[[], None]) -> None:
        super().__init__(config)
        self._listening = listening

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        # Clients' mistakes and a lack of descriptors belong into the log, not onto the terminal.
        asyncio.get_running_loop().set_exception_handler(lambda _, context: _LOG.warning("%s", context["message"]))
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(_WAITING)
        if self.started:
            self._listening()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # requests that end with it are no errors
        await super().shutdown(sockets)


def lab_server(application: Application, listening: Callable[[], None]) -> uvicorn.Server:
    """Return a server for ``application`` that calls ``listening`` once requests are answered."""
    config = uvicorn.Config(
        application,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_graceful_shutdown=1,
        backlog=_AT_ONCE,
        http=_Connection,
        h11_max_incomplete_event_size=64 * 1024,
        ws="none",
    )
    return _Server(config, listening)


def serve_until_interrupted(
    application: Application, listener: socket.socket, *, listening: Callable[[], None]
) -> NoReturn:
    """Serve until KeyboardInterrupt; ``listening`` is called once requests are answered."""
    with listener:
        lab_server(application, listening).run(sockets=[listener])
    raise KeyboardInterrupt


def listener_at(*ports: int) -> socket.socket:
    """Listen at the first of ``ports`` that is free, where 0 stands for any. Raises RequestError if none is."""
    *others, last = ports
    for port in others:
        try:
            return _listener(port)
        except OSError:
            continue
    try:
        return _listener(last)
    except OSError as error:
        why = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used: {error.strerror}"
        raise RequestError(f"--port {last}: the port {why}", hint="choose another with --port") from error


def _listener(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    return listener
