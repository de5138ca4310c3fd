"""A web server on this machine's loopback that can misbehave."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import IPv4Address
from pathlib import Path
from urllib.parse import unquote

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass
class Server:
    """Gives out the files below ``root``. ``requests`` are the paths of all requests with their Range, if any.

    By path: ``redirects``, ``statuses``, and ``breaks`` are the bytes after which it closes the connection, one for
    each request. With ``ranges`` it gives parts of files.
    """

    root: Path
    ranges: bool = True
    requests: list[tuple[str, str]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    redirects: dict[str, str] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)
    breaks: dict[str, list[int]] = field(default_factory=dict)
    scheme: str = "http"
    http: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        assert self.http
        return f"{self.scheme}://127.0.0.1:{self.http.server_port}"

    def paths(self) -> list[str]:
        return [path for path, _ in self.requests]

    def stop(self) -> None:
        if self.http:
            self.http.shutdown()
            self.http.server_close()


@contextmanager
def serving(root: Path, tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    """A server for the files below ``root``; with ``tls`` over HTTPS."""
    server = Server(root, scheme="https" if tls else "http")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            with suppress(ConnectionError):
                _answer(self, server)

        def log_message(self, *_: object) -> None:
            pass

    server.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls:
        server.http.socket = tls.wrap_socket(server.http.socket, server_side=True)
    threading.Thread(target=server.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield server
    finally:
        server.stop()


def self_signed(directory: Path) -> ssl.SSLContext:
    """Return what HTTPS on the loopback needs, with a certificate that nobody knows; it is put into
    ``directory / "certificate"``.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (directory / "certificate").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (directory / "key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "certificate", directory / "key")
    return context


def _answer(request: BaseHTTPRequestHandler, server: Server) -> None:
    path, wanted = unquote(request.path), request.headers.get("Range", "")
    server.requests.append((path, wanted))
    server.headers.append(dict(request.headers))
    if path in server.redirects:
        request.send_response(302)
        request.send_header("Location", server.redirects[path])
        request.end_headers()
        return
    file = server.root / path.lstrip("/")
    status = server.statuses.get(path, 200 if file.is_file() else 404)
    if status != 200:
        request.send_error(status)
        return
    content = file.read_bytes()
    start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and server.ranges else 0
    if start >= len(content) > 0:
        request.send_error(416)
        return
    request.send_response(206 if start else 200)
    request.send_header("Content-Length", str(len(content) - start))
    request.end_headers()
    breaks = server.breaks.get(path, [])
    end = start + breaks.pop(0) if breaks else len(content)
    request.wfile.write(content[start:end])
    if end < len(content):
        request.close_connection = True
