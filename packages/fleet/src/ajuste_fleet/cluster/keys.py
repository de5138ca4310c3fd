"""The one key that all machines of a cluster have, and connections with it.

As with an SSH key, anyone who holds it is trusted: Dask runs what a holder sends.
"""

from __future__ import annotations

import os
import socket
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ajuste.machine.files import create_file, is_trusted, make_directory
from ajuste.model.cluster import KEY, Cluster
from ajuste.model.error import RequestError

if TYPE_CHECKING:
    from distributed.security import Security

DAYS: Final = 3650
CONNECT_SECONDS: Final = 10.0

_ROLES: Final = ("client", "scheduler", "worker")


def security(cluster: Cluster) -> Security:
    """Return what Dask needs to connect and to listen.

    Raises:
        RequestError: The key is missing, damaged, expired, or can be read by others.
    """
    from cryptography import x509
    from distributed.security import Security

    if cluster.key is None:
        return Security()
    if not cluster.key.is_file():
        raise RequestError(
            f"cluster key {cluster.key} not found",
            hint="make it with `ajuste cluster keys` and copy it to each machine, or name its directory with "
            "--cluster-keys (`ajuste help several-machines`)",
        )
    status = cluster.key.stat()
    if not is_trusted(status.st_uid) or status.st_mode & 0o077:
        raise RequestError(
            f"the key {cluster.key} can be read or changed by others",
            hint=f"restrict it: chmod 600 {cluster.key}; if others have seen it, make a new one",
        )
    files = {f"tls_{role}_{part}": str(cluster.key) for role in _ROLES for part in ("cert", "key")}
    made = Security(
        require_encryption=True, tls_ca_file=str(cluster.key), tls_min_version=ssl.TLSVersion.TLSv1_3, **files
    )
    try:
        made.get_connection_args("client")
    except (OSError, ssl.SSLError) as error:
        raise RequestError(
            f"the key {cluster.key} is damaged: {error.strerror or error}",
            hint="copy it again, or make a new one: ajuste cluster keys DIRECTORY",
        ) from error
    end = x509.load_pem_x509_certificate(cluster.key.read_bytes()).not_valid_after_utc
    if end < datetime.now(UTC):
        raise RequestError(
            f"the key {cluster.key} expired on {end:%Y-%m-%d}",
            hint="make a new one with `ajuste cluster keys DIRECTORY` and copy it to each machine",
        )
    return made


def require_reachable(cluster: Cluster) -> Security:
    """Return ``security`` once something answers there with the same key, because Dask itself retries silently.

    Raises:
        RequestError: Nothing answers, or it has another key.
    """
    secured = security(cluster)
    context = secured.get_connection_args("client").get("ssl_context")
    try:
        with socket.create_connection((cluster.host, cluster.port), CONNECT_SECONDS) as plain:
            if context is not None:
                context.wrap_socket(plain).close()
    except OSError as error:
        raise unreachable(cluster, _reason(error)) from None
    return secured


def unreachable(cluster: Cluster, reason: str) -> RequestError:
    """Return the error for a scheduler that cannot be reached for that reason."""
    return RequestError(
        f"cannot reach the scheduler {cluster.address}: {reason}",
        hint="start one with `ajuste cluster scheduler --listen ADDRESS`",
    )


def make_key(directory: Path) -> Path:
    """Write a new cluster's key into ``directory`` and return its path.

    Raises:
        RequestError: There is one already, or the directory cannot be written to.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name, now = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Ajuste cluster")]), datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path = directory / KEY
    try:
        make_directory(directory)
        with create_file(path) as file:
            file.write(secret + certificate.public_bytes(pem))
    except FileExistsError:
        raise RequestError(
            f"{path} exists already",
            hint="choose another directory; a new key would lock out machines that have this one",
        ) from None
    except OSError as error:
        raise RequestError(
            f"cannot write a key to {directory}: {error.strerror}", hint="choose a directory that you can write to"
        ) from error
    return path


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"it has another key than this one: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"no TLS with this key: {(error.reason or str(error)).lower().replace('_', ' ')}"
    if isinstance(error, TimeoutError):
        return f"no answer within {CONNECT_SECONDS:g} s"
    return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error) or type(error).__name__
