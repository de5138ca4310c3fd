"""Peers that attack: what they say is never carried out, and each gets one line that names it."""

from __future__ import annotations

import asyncio
import pickle
import socket
import ssl
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from ajuste.executor.cluster.answer import Answer, from_here
from ajuste.executor.cluster.channel import AUTHORITY, SCHEDULER_NAME, SIDES, Channel, channel_to, context_of, make_keys
from ajuste.executor.cluster.connection import Cluster, Connection
from ajuste.executor.cluster.serving import Duties
from ajuste.executor.cluster.wire import LARGEST_BODY, LARGEST_HEADER, Broken, Header, What, connected, receive
from ajuste.machine.home import Home, home
from ajuste.model.error import RequestError
from clusters import Lab, hello, lab, said_as, wait_for


class Payload:
    """Whoever unpickles it makes a file."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.mark,)


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    return tmp_path / "code-was-run"


@pytest.fixture
def payload(mark: Path) -> bytes:
    return pickle.dumps(Payload(mark))


@pytest.fixture
def place() -> Iterator[Lab]:
    with lab() as opened:
        yield opened


def answer_of(peer: socket.socket) -> bytes:
    """All that it says until it ends."""
    said = b""
    with peer:
        while piece := peer.recv(1 << 16):
            said += piece
    return said


def test_a_pickle_at_the_schedulers_port_is_not_run(place: Lab, payload: bytes, mark: Path) -> None:
    request = hello("coordinator") + said_as(Header(kind="request"), payload)
    for attack in (payload, said_as(Header(kind="hello"), payload), request):
        with place.stranger(attack) as stranger:
            stranger.shutdown(socket.SHUT_WR)
            answer_of(stranger)
    place.await_said("does not use Ajuste's protocol")
    place.await_said("its hello (is it another version of Ajuste?) is malformed")
    assert not mark.exists()
    with place.connection as connection:
        connection.open()  # The scheduler goes on.


class Pickling:
    """A worker that behaves until it is given work, and then answers with a pickle."""

    def __init__(self, payload: bytes, lab: Lab) -> None:
        self.payload, self.lab = payload, lab
        self.stranger = lab.stranger(hello("worker"))
        lab.await_said(" connected")

    def answer(self) -> None:
        """The next request."""
        file = self.stranger.makefile("rb")
        while True:
            _, head, body = struct.unpack("!4sII", file.read(12))
            header = Header.model_validate_json(file.read(head))
            file.read(body)
            if header.kind == "request":
                self.stranger.sendall(said_as(Header(kind="answer", number=header.number), self.payload))
                return


def test_a_pickle_that_a_worker_answers_is_not_run_and_the_worker_is_named(
    place: Lab, payload: bytes, mark: Path
) -> None:
    attacker = Pickling(payload, place)
    with place.connection as connection:
        connection.open()
        wait_for(connection.workers)
        (worker,) = connection.workers()
        answering = threading.Thread(target=attacker.answer)
        answering.start()
        assert connection.ask("survey", b"{}", workers=[worker.address]) == {}
        answering.join(30)
        assert "its answer is malformed" in connection.banned[worker.address]
        assert connection.workers() == [], "it is asked nothing any more"
    assert not mark.exists()


def test_a_pickle_that_a_coordinator_sends_is_not_run_and_the_worker_goes_on(
    place: Lab, payload: bytes, mark: Path, tmp_path: Path
) -> None:
    duties = Duties(Home(tmp_path / "data", tmp_path / "cache", tmp_path / "state"), bench=True)
    place.worker(duties)
    whats: tuple[What, ...] = ("", "survey", "receive", "open", "carry-out", "close", "bench-survey", "bench-carry-out")
    with place.connection as connection:
        connection.open()
        wait_for(connection.workers)
        (worker,) = connection.workers()
        for what in (*whats, "bench-close"):
            (answer,) = connection.ask(what, payload, workers=[worker.address]).values()  # type: ignore[arg-type]
            assert "malformed" in str(answer.refusal or answer.error), what
    assert not mark.exists()


@pytest.mark.parametrize("path", ["../../../../etc/passwd", "/etc/passwd"])
def test_a_file_can_be_put_nowhere_else(tmp_path: Path, path: str) -> None:
    duties = Duties(Home(tmp_path / "data", tmp_path / "cache", tmp_path / "state"))
    answer = duties.do("receive", struct.pack("!64sQQ", path.encode(), 0, 1) + b"x")
    assert answer.refusal == "a piece of a file is malformed: its SHA-256"
    assert not list(tmp_path.iterdir())


def test_what_is_not_offered_as_a_bench_measures_nothing_by_its_clock(tmp_path: Path) -> None:
    duties = Duties(Home(tmp_path / "data", tmp_path / "cache", tmp_path / "state"))
    assert duties.do("bench-carry-out", b'{"parcel": "{}"}').refusal == "it was not started with --bench"


def test_what_nobody_expected_is_an_answer_and_nobody_waits_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def surprise(*_: object) -> None:
        raise ValueError("5 is no figure of a trial")

    monkeypatch.setattr("ajuste.executor.cluster.workplace.Workplace.carry_out", surprise)
    duties = Duties(Home(tmp_path / "data", tmp_path / "cache", tmp_path / "state"))
    answer = duties.do("carry-out", b'{"parcel": "{}"}')
    assert answer.error == "the worker cannot go on: ValueError: 5 is no figure of a trial"
    assert not answer.wrong


# What peers say


def heard(said: bytes, *, ended: bool = True) -> Any:
    """What comes of bytes."""

    async def hear() -> Any:
        reader = asyncio.StreamReader()
        reader.feed_data(said)
        if ended:
            reader.feed_eof()
        return await receive(reader, silence_s=0.05)

    return asyncio.run(hear())


FRAME = said_as(Header(kind="beat"), b"body")


def test_every_cut_of_a_message_is_told_from_a_whole_one() -> None:
    assert heard(b"") is None
    assert heard(FRAME) == (Header(kind="beat"), b"body")
    for length in range(1, len(FRAME)):
        with pytest.raises(Broken, match="ended within a message"):
            heard(FRAME[:length])


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "not use Ajuste's protocol"),
        (struct.pack("!4sII", b"AJC1", LARGEST_HEADER + 1, 0), "bytes; at most"),
        (struct.pack("!4sII", b"AJC1", 2, LARGEST_BODY + 1) + b"{}", "bytes; at most"),
        (struct.pack("!4sII", b"AJC1", 4, 0) + b"[[[[", "header of its message is malformed"),
        (struct.pack("!4sII", b"AJC1", 2, 0) + b"\xff\xfe", "header of its message is malformed"),
        (struct.pack("!4sII", b"AJC1", 15, 0) + b'{"kind":"run!"}', "header of its message is malformed"),
        (struct.pack("!4sII", b"AJC1", 4000, 0) + b'{"number":' + b"9" * 3990, "header of its message is malformed"),
        (struct.pack("!4sII", b"AJC1", 4000, 0) + b"[" * 4000, "header of its message is malformed"),
    ],
)
def test_garbage_is_one_line(said: bytes, reason: str) -> None:
    with pytest.raises(Broken, match=reason) as raised:
        heard(said)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 500


def test_silence_ends_a_connection_and_so_does_a_message_that_stops() -> None:
    with pytest.raises(Broken, match=r"sent nothing for 0.05 s"):
        heard(b"", ended=False)
    with pytest.raises(Broken, match="stopped within a message"):
        heard(FRAME[:-1], ended=False)


def test_a_process_of_ones_own_may_take_its_time() -> None:
    async def hear(*, trusted: bool) -> Any:
        ours, theirs = socket.socketpair()
        peer, other = await connected(ours, trusted=trusted), await connected(theirs)
        asyncio.get_running_loop().call_later(0.3, lambda: other.send(Header(kind="hello")))
        try:
            return await peer.receive(silence_s=0.05)
        finally:
            peer.cut()
            other.cut()

    assert asyncio.run(hear(trusted=True)) == (Header(kind="hello"), b"")
    with pytest.raises(Broken, match="sent nothing"):
        asyncio.run(hear(trusted=False))


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (hello("coordinator") + said_as(Header(kind="beat")) * 1000, "too many messages"),
        (hello("worker") + said_as(Header(kind="answer", number=1)), "answered a request that was not sent"),
        (hello("worker") + said_as(Header(kind="request", worker="x")), "unexpected message request from a worker"),
        (hello("coordinator") + hello("coordinator"), "unexpected message hello from a coordinator"),
        (hello("coordinator") + struct.pack("!4sII", b"AJC1", 2, LARGEST_BODY), "bytes; at most"),
        (said_as(Header(kind="beat")), "it began with beat, not hello"),
    ],
)
def test_who_breaks_the_rules_is_cut_off_and_told_why(place: Lab, said: bytes, reason: str) -> None:
    stranger = place.stranger(said)
    assert reason.encode() in answer_of(stranger)
    place.await_said(reason)


def test_a_coordinator_that_asks_too_much_at_once_is_cut_off(place: Lab) -> None:
    worker = place.stranger(hello("worker"))
    line = place.await_said(" connected")
    address = line.split()[1]
    stranger = place.stranger(hello("coordinator"))
    with suppress(OSError):
        for _ in range(100):
            stranger.sendall(said_as(Header(kind="request", worker=address, what="survey")) * 1000)
    place.await_said("requests at once")
    worker.close()


def test_what_a_worker_says_of_itself_cannot_draw_on_the_terminal() -> None:
    said = from_here(error="\x1b[2Jgone").model_dump_json()
    assert Answer.model_validate_json(said).error == "\\x1b[2Jgone"
    with pytest.raises(ValueError, match="where"):
        Answer.model_validate_json('{"where": "\\u001b[2J"}')


# Keys


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("keys")
    make_keys(directory)
    return directory


@pytest.fixture(scope="module")
def secure(keys: Path) -> Iterator[Lab]:
    with lab(keys) as opened:
        yield opened


def handed(keys: Path, directory: Path, side: str, file: str) -> Path:
    """Keys of one side whose file is another's."""
    directory.mkdir(exist_ok=True)
    (directory / AUTHORITY).write_bytes((keys / AUTHORITY).read_bytes())
    path = directory / f"{side}.pem"
    path.write_bytes((keys / f"{file}.pem").read_bytes())
    path.chmod(0o600)
    return directory


def opened(channel: Channel) -> None:
    with Connection(Cluster(channel), home(), lambda _: None) as connection:
        connection.open()


def test_who_has_the_key_gets_in(secure: Lab, keys: Path) -> None:
    opened(secure.channel)


def test_the_key_of_a_worker_gives_no_orders(secure: Lab, keys: Path, tmp_path: Path) -> None:
    stolen = handed(keys, tmp_path / "stolen", "coordinator", "worker")
    with pytest.raises(
        RequestError, match="its certificate is for a worker, but it introduced itself as a coordinator"
    ):
        opened(Channel(secure.channel.address, "127.0.0.1", secure.port, stolen))


def test_the_key_of_another_cluster_opens_nothing(secure: Lab, tmp_path: Path) -> None:
    make_keys(tmp_path / "other")
    with pytest.raises(RequestError, match="not belong to this cluster's scheduler"):
        opened(Channel(secure.channel.address, "127.0.0.1", secure.port, tmp_path / "other"))


def test_the_key_of_a_scheduler_gives_no_orders(secure: Lab, keys: Path, tmp_path: Path) -> None:
    stolen = handed(keys, tmp_path / "stolen", "coordinator", "scheduler")
    with pytest.raises(RequestError, match="cannot reach the scheduler"):
        opened(Channel(secure.channel.address, "127.0.0.1", secure.port, stolen))


def test_who_has_no_key_does_not_get_in(secure: Lab, keys: Path) -> None:
    context = ssl.create_default_context(cafile=keys / AUTHORITY)
    heard = b""
    with suppress(OSError), socket.create_connection(("127.0.0.1", secure.port)) as plain:
        stranger = context.wrap_socket(plain, server_hostname=SCHEDULER_NAME)
        stranger.sendall(hello("coordinator"))
        while piece := stranger.recv(1000):
            heard += piece
    assert heard == b""


@pytest.mark.parametrize("side", ["worker", "coordinator"])
def test_the_key_of_a_peer_does_not_pass_for_a_scheduler(keys: Path, tmp_path: Path, side: str) -> None:
    stolen = handed(keys, tmp_path / "stolen", "scheduler", side)
    with (
        lab(stolen) as impostor,
        pytest.raises(RequestError, match="certificate does not belong to this cluster's scheduler"),
    ):
        opened(Channel(impostor.channel.address, "127.0.0.1", impostor.port, keys))


def test_keys_are_private_and_never_written_over(keys: Path) -> None:
    assert {path.name for path in keys.iterdir()} == {AUTHORITY, *(f"{side}.pem" for side in SIDES)}
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in keys.iterdir())
    with pytest.raises(RequestError, match="exists already"):
        make_keys(keys)


def test_a_key_that_others_can_read_is_not_used(keys: Path, tmp_path: Path) -> None:
    shown = handed(keys, tmp_path / "shown", "coordinator", "coordinator")
    (shown / "coordinator.pem").chmod(0o644)
    with pytest.raises(RequestError, match="can be read or changed by others"):
        Channel("tls://h:1", "h", 1, shown).context("coordinator")


@pytest.mark.parametrize(
    ("address", "insecure", "root", "reason"),
    [
        ("tcp://lab1:8786", False, False, "or add --insecure"),
        ("tcp://lab1:8786", False, True, "root does not use plain TCP"),
        ("tcp://lab1:8786", True, True, "root does not use plain TCP"),
        ("tcp://127.0.0.1:8786", True, True, "root does not use plain TCP"),
        ("udp://lab1:8786", True, False, "expected the address of a scheduler"),
        ("tls://lab1:99999", True, False, "expected the address of a scheduler"),
        ("tls://\x1b[2J:1", True, False, "expected the address of a scheduler"),
    ],
)
def test_plain_tcp_must_be_asked_for_and_is_never_roots(address: str, insecure: bool, root: bool, reason: str) -> None:
    with pytest.raises(RequestError) as raised:
        channel_to("--cluster", address, Path("keys"), insecure=insecure, root=root)
    assert reason in f"{raised.value} {raised.value.hint}"
    assert "\x1b" not in str(raised.value)


def test_plain_tcp_that_was_asked_for_has_no_keys() -> None:
    assert channel_to("--cluster", "tcp://lab1:1", Path("keys"), insecure=True, root=False).keys is None
    assert channel_to("--cluster", "tls://lab1:1", Path("keys"), insecure=True, root=True).keys == Path("keys")


@pytest.mark.parametrize("days", [-3, 3653])
def test_keys_that_are_not_valid_now_are_refused_with_both_dates(
    days: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_keys(tmp_path / "keys")
    now = datetime.now(UTC) + timedelta(days=days)
    monkeypatch.setattr("ajuste.executor.cluster.channel.datetime", Mock(wraps=datetime, now=lambda _: now))
    with pytest.raises(RequestError, match=f"clock says {now:%Y-%m-%d}"):
        context_of(tmp_path / "keys", "worker")


NURSERY = """\
from multiprocessing import get_context
from ajuste.executor.cluster.serving import begin_nursery

if __name__ == "__main__":
    begin_nursery()
    child = get_context("forkserver").Process(target=print)
    child.start()
    child.join()
"""


def test_workers_import_nothing_of_the_present_directory(tmp_path: Path, mark: Path) -> None:
    """Root may be in a directory that everybody can write."""
    program, stranger = tmp_path / "own" / "program.py", tmp_path / "stranger"
    for directory in (program.parent, stranger):
        directory.mkdir()
    program.write_text(NURSERY)
    for name in ("random", "socket", "signal", "ajuste"):
        (stranger / f"{name}.py").write_text(f"open({str(mark)!r}, 'w')\n")
    subprocess.run([sys.executable, program], cwd=stranger, capture_output=True, timeout=60, check=False)
    assert not mark.exists()
