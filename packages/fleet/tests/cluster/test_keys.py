"""Admission to a cluster, and what peers of it cannot do to a coordinator."""

from __future__ import annotations

import queue
import shutil
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from distributed.diagnostics.plugin import WorkerPlugin

from ajuste.model.cluster import KEY, Cluster, cluster_at
from ajuste.model.error import RequestError, RunError
from ajuste_fleet.cluster import connection
from ajuste_fleet.cluster.connection import Connection
from ajuste_fleet.cluster.keys import make_key, security
from ajuste_fleet.cluster.messages import Answer, Ask, answer
from ajuste_fleet.cluster.worker import NAME
from clusters import Lab, lab, wait_for


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("keys")
    make_key(directory)
    return directory


@pytest.fixture(scope="module")
def secure(keys: Path) -> Iterator[Lab]:
    with lab(keys) as opened:
        yield opened


class Calm:
    def answer(self, ask: Ask, job: str, body: bytes) -> Answer:
        return answer(refusal=f"asked to {ask}")


def opened(cluster: Cluster) -> None:
    with Connection(cluster, lambda _: None) as entered:
        entered.open()


def at(secure: Lab, key: Path | None) -> Cluster:
    return Cluster(secure.cluster.address, "127.0.0.1", secure.cluster.port, key)


def test_who_has_the_key_gets_in_and_workers_answer(secure: Lab) -> None:
    worker = secure.worker(Calm())
    with secure.connection as opened:
        opened.open()
        assert opened.workers() == {worker.address: 1}
        assert opened.ask("survey", "{}", workers=[worker.address])[worker.address].refusal == "asked to survey"


def test_another_key_does_not_get_in(secure: Lab, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"cannot reach the scheduler .*another key"):
        opened(at(secure, make_key(tmp_path / "other")))


def test_a_peer_without_a_key_does_not_get_in(secure: Lab, keys: Path) -> None:
    context = ssl.create_default_context(cafile=keys / KEY)
    context.check_hostname = False
    heard = b""
    with suppress(OSError), socket.create_connection(("127.0.0.1", secure.cluster.port)) as plain:
        stranger = context.wrap_socket(plain)
        stranger.sendall(b"anything")
        while piece := stranger.recv(1000):
            heard += piece
    assert heard == b""


def test_what_does_not_answer_or_speak_tls_is_named(keys: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]

        def hang_up() -> None:
            listening.accept()[0].sendall(b"HTTP/1.1 400 Bad Request" * 10)

        answering = threading.Thread(target=hang_up)
        answering.start()
        with pytest.raises(RequestError, match="no TLS with this key"):
            opened(Cluster("tls://h:1", "127.0.0.1", port, keys / KEY))
        answering.join()
    with pytest.raises(RequestError, match="Connection refused"):
        opened(Cluster("tls://h:1", "127.0.0.1", port, keys / KEY))


def test_another_version_of_dask_is_named(secure: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "version", lambda _: "1900.1.0")
    with pytest.raises(RequestError, match=r"has Dask \S+ instead of 1900.1.0"):
        opened(secure.cluster)


class Payload:
    """An object whose unpickling makes a file."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.mark,)


@pytest.mark.parametrize("harm", ["pickle", "text", "garbage"])
def test_what_a_worker_returns_is_never_unpickled(keys: Path, tmp_path: Path, harm: str) -> None:
    mark = tmp_path / "code-was-run"
    returned: Any = {"pickle": Payload(mark), "text": "{", "garbage": b"[" * 100_000}[harm]

    class Station(WorkerPlugin):
        def do(self, *_: object) -> Any:
            return returned

    with lab(keys) as place, place.connection as opened:
        place.run(place.worker(None).plugin_add(Station(), NAME))
        opened.open()
        ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        opened.submit("carry-out", "{}", [[]], ended, None)
        wait_for(lambda: not ended.empty())
        with pytest.raises(RunError, match="answer of a worker"):
            opened.taken(ended)
    assert not mark.exists()


def test_a_key_is_private_and_never_written_over(keys: Path) -> None:
    assert [path.name for path in keys.iterdir()] == [KEY]
    assert (keys / KEY).stat().st_mode & 0o777 == 0o600
    with pytest.raises(RequestError, match="exists already"):
        make_key(keys)


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (lambda path: path.chmod(0o644), "can be read or changed by others"),
        (lambda path: path.write_text("no key"), "is damaged"),
        (lambda path: path.unlink(), "not found"),
    ],
)
def test_a_key_of_no_use_is_named(keys: Path, tmp_path: Path, harm: Any, reason: str) -> None:
    path = tmp_path / KEY
    shutil.copy(keys / KEY, path)
    harm(path)
    with pytest.raises(RequestError, match=reason):
        security(Cluster("tls://h:1", "h", 1, path))


def test_a_key_that_expired_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ajuste_fleet.cluster.keys.DAYS", -0.5)
    with pytest.raises(RequestError, match="expired on"):
        security(Cluster("tls://h:1", "h", 1, make_key(tmp_path / "old")))


@pytest.mark.parametrize(
    ("address", "insecure", "root", "reason"),
    [
        ("tcp://lab1:8786", False, False, "or add --insecure"),
        ("tcp://lab1:8786", False, True, "root does not use plain TCP"),
        ("tcp://lab1:8786", True, True, "root does not use plain TCP"),
        ("udp://lab1:8786", True, False, "expected the address of a scheduler"),
        ("tls://lab1:99999", True, False, "expected the address of a scheduler"),
        ("tls://\x1b[2J:1", True, False, "expected the address of a scheduler"),
    ],
)
def test_plain_tcp_must_be_asked_for_and_is_never_roots(address: str, insecure: bool, root: bool, reason: str) -> None:
    with pytest.raises(RequestError) as raised:
        cluster_at("--cluster", address, Path("keys"), insecure=insecure, root=root)
    assert reason in f"{raised.value} {raised.value.hint}"
    assert "\x1b" not in str(raised.value)


def test_plain_tcp_that_was_asked_for_has_no_key() -> None:
    assert cluster_at("--cluster", "tcp://lab1:1", Path("keys"), insecure=True, root=False).key is None
    assert cluster_at("--cluster", "tls://lab1:1", Path("keys"), insecure=True, root=True).key == Path("keys") / KEY


def test_what_a_worker_says_of_itself_cannot_draw_on_the_terminal() -> None:
    document = answer(error="\x1b[2Jgone").model_dump_json()
    assert Answer.model_validate_json(document).error == "\\x1b[2Jgone"
    with pytest.raises(ValueError, match="where"):
        Answer.model_validate_json('{"where": "\\u001b[2J"}')
