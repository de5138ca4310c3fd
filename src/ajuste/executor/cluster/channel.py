"""The way to a scheduler: its address, the keys that are shown to it, and the first words."""

from __future__ import annotations

import asyncio
import os
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Literal

from ajuste.executor.cluster.wire import HELLO_SECONDS, Broken, Header, Introduction, Peer, Role
from ajuste.machine.files import give_to_caller, is_trusted, make_directory
from ajuste.model.error import RequestError
from ajuste.model.wording import visible_line

# Keys of a cluster: who has one of a role, signed by the cluster's own authority, may play that role, and no other.
#
# The name in a certificate is the role, not the host: a worker's key cannot pass for a scheduler's or a coordinator's.


Side = Literal["scheduler", "coordinator", "worker"]
SIDES: Final[tuple[Side, ...]] = ("scheduler", "coordinator", "worker")
AUTHORITY: Final = "authority.pem"
"""The certificate of the authority. Its key is thrown away as soon as all are signed: nobody can make more."""
DAYS: Final = 3650
_SUFFIX: Final = ".ajuste"


def make_keys(directory: Path) -> tuple[Path, ...]:
    """An authority, and a key with its certificate for every side. Raises RequestError for a directory in use."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    def name(words: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, words)])

    def certificate(whose: str, own: ec.EllipticCurvePrivateKey, *, authority: bool) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(name(whose))
            .issuer_name(name("Ajuste cluster"))
            .public_key(own.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=DAYS))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=0 if authority else None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(own.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
            .add_extension(
                x509.KeyUsage(
                    digital_signature=not authority,
                    key_cert_sign=authority,
                    crl_sign=authority,
                    content_commitment=False,
                    key_encipherment=False,
                    data_encipherment=False,
                    key_agreement=False,
                    encipher_only=False,
                    decipher_only=False,
                ),
                critical=True,
            )
        )
        if not authority:
            usage = ExtendedKeyUsageOID.SERVER_AUTH if whose == "scheduler" else ExtendedKeyUsageOID.CLIENT_AUTH
            builder = builder.add_extension(
                x509.SubjectAlternativeName([x509.DNSName(whose + _SUFFIX)]), critical=False
            )
            builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        return builder.sign(key, hashes.SHA256())

    key = ec.generate_private_key(ec.SECP256R1())
    pem = serialization.Encoding.PEM
    contents = {AUTHORITY: certificate("Ajuste cluster", key, authority=True).public_bytes(pem)}
    for side in SIDES:
        own = ec.generate_private_key(ec.SECP256R1())
        secret = own.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        contents[f"{side}.pem"] = secret + certificate(side, own, authority=False).public_bytes(pem)
    return _written(directory, contents)


def _written(directory: Path, contents: Mapping[str, bytes]) -> tuple[Path, ...]:
    paths = tuple(directory / name for name in contents)
    try:
        make_directory(directory)
        if there := [path for path in paths if path.exists()]:
            raise RequestError(
                f"{there[0]} exists already",
                hint="choose another directory; new keys would lock out machines that have these",
            )
        for path, content in zip(paths, contents.values(), strict=True):
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
                file.write(content)
            give_to_caller(path)
    except OSError as error:
        raise RequestError(
            f"cannot write keys to {directory}: {error.strerror}", hint="choose a directory that you can write to"
        ) from error
    return paths


def context_of(directory: Path, side: Side) -> ssl.SSLContext:
    """For connections of that side, by which only the others of the same keys get in. Raises RequestError."""
    authority, own = directory / AUTHORITY, directory / f"{side}.pem"
    for path in (authority, own):
        if not path.is_file():
            raise RequestError(
                f"cluster key {path} not found",
                hint="make keys with `ajuste cluster keys DIRECTORY`, or name their directory with --cluster-keys "
                "(`ajuste help several-machines`)",
            )
    status = own.stat()
    if not is_trusted(status.st_uid) or status.st_mode & 0o077:
        raise RequestError(
            f"the key {own} can be read or changed by others",
            hint=f"restrict it: chmod 600 {own}; if others have seen it, make new keys",
        )
    purpose = ssl.PROTOCOL_TLS_SERVER if side == "scheduler" else ssl.PROTOCOL_TLS_CLIENT
    context = ssl.SSLContext(purpose)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        context.load_verify_locations(cafile=authority)
        context.load_cert_chain(own)
    except (OSError, ssl.SSLError) as error:
        raise RequestError(
            f"the keys in {directory} are damaged: {error.strerror or error}",
            hint="copy them again, or make new keys: ajuste cluster keys DIRECTORY",
        ) from error
    _require_valid_now(context, directory)
    context.verify_mode = ssl.CERT_REQUIRED
    context.check_hostname = side != "scheduler"
    return context


def _require_valid_now(context: ssl.SSLContext, directory: Path) -> None:
    """Raises RequestError for keys that have expired, and where this machine's clock is before they were made."""
    for one in context.get_ca_certs():
        begin, end = (datetime.fromtimestamp(ssl.cert_time_to_seconds(str(one[name])), UTC) for name in _VALID)
        if not begin <= datetime.now(UTC) <= end:
            raise RequestError(
                f"the keys in {directory} are valid from {begin:%Y-%m-%d} to {end:%Y-%m-%d}; "
                f"this machine's clock says {datetime.now(UTC):%Y-%m-%d}",
                hint="set the clock, or make new keys: ajuste cluster keys DIRECTORY",
            )


_VALID: Final = ("notBefore", "notAfter")
SCHEDULER_NAME: Final = "scheduler" + _SUFFIX
"""What a scheduler's certificate must say, wherever it runs."""


def role_in(certificate: Mapping[str, Any] | None) -> Role | None:
    """The role that a certificate, which was verified, gives; None if it gives none."""
    names = {name for kind, name in (certificate or {}).get("subjectAltName", ()) if kind == "DNS"}
    roles: tuple[Role, ...] = ("coordinator", "worker")
    return next((role for role in roles if role + _SUFFIX in names), None)


CONNECT_SECONDS: Final = 10.0
"""So long a scheduler may take to answer."""

_ADDRESS: Final = re.compile(r"(tcp|tls)://(\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]+):(\d{1,5})")
_BUFFER_BYTES: Final = 1 << 20


@dataclass(frozen=True)
class Channel:
    """``address`` as tls://HOST:PORT, whose ``keys`` are in a directory; or tcp://HOST:PORT, in the clear."""

    address: str
    host: str
    port: int
    keys: Path | None

    def context(self, side: Side) -> ssl.SSLContext | None:
        """Raises RequestError for keys that are not there, or not private."""
        return None if self.keys is None else context_of(self.keys, side)


def channel_to(option: str, address: str, keys: Path, *, insecure: bool, root: bool) -> Channel:
    """Raises RequestError for what is no address, and for plain TCP without ``insecure``, or by ``root``."""
    found = _ADDRESS.fullmatch(address)
    if not found or not 0 < int(found[3]) < 65536:
        raise RequestError(
            f"{option} {visible_line(address)!r}: expected the address of a scheduler, such as tls://host:8786"
        )
    host = found[2].strip("[]")
    if found[1] == "tls":
        return Channel(address, host, int(found[3]), keys)
    if root:
        raise RequestError(
            f"{option} {address}: root does not use plain TCP, where anyone on the way can run commands as root",
            hint=f"use tls://{found[2]}:{found[3]} with keys made by `ajuste cluster keys` "
            "(`ajuste help several-machines`)",
        )
    if not insecure:
        raise RequestError(
            f"{option} {address}: anyone who reaches a plain TCP port can run commands on every worker",
            hint=f"use tls://{found[2]}:{found[3]} with keys made by `ajuste cluster keys`, or add --insecure",
        )
    return Channel(address, host, int(found[3]), None)


async def open_channel(channel: Channel, introduction: Introduction) -> Peer:
    """Connect and be welcome. Raises RequestError."""
    context = channel.context(introduction.role)
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            reader, writer = await asyncio.open_connection(
                channel.host,
                channel.port,
                ssl=context,
                server_hostname=SCHEDULER_NAME if context else None,
                limit=_BUFFER_BYTES,
            )
        peer = Peer(reader, writer)
        peer.send(Header(kind="hello"), introduction.model_dump_json().encode())
        said = await peer.receive(silence_s=HELLO_SECONDS)
    except (OSError, TimeoutError, Broken) as error:
        raise _unreachable(channel, _reason(error)) from None
    if said is None:
        raise _unreachable(channel, "it closed the connection" + (" (does it know this key?)" if context else ""))
    if said[0].kind != "welcome":
        raise _unreachable(channel, visible_line(said[1][:500].decode("ascii", "backslashreplace")))
    return peer


def _unreachable(channel: Channel, reason: str) -> RequestError:
    return RequestError(
        f"cannot reach the scheduler {channel.address}: {reason}",
        hint="start one with `ajuste cluster scheduler --listen ADDRESS`",
    )


def _reason(error: BaseException) -> str:
    """Why nothing answered, in the system's words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate does not belong to this cluster's scheduler: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"no TLS with these keys: {(error.reason or str(error)).lower().replace('_', ' ')}"
    if isinstance(error, TimeoutError) and not str(error):
        return f"no answer within {CONNECT_SECONDS:g} s"
    if isinstance(error, OSError) and error.errno and error.errno > 0:
        return os.strerror(error.errno)
    return str(error) or type(error).__name__
