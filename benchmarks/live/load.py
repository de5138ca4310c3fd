"""The clients of a redis: their rate drifts over a "day" of some seconds, with bursts; they show what they see.

``python -m benchmarks.live.load REDIS-PORT PORT DAY-SECONDS`` shows on PORT, in Prometheus' text format, how long
requests took and how many there were. A client asks for a large value on a connection of its own, some times in a row.
"""

from __future__ import annotations

import math
import random
import socket
import sys
import threading
import time
from typing import Final

from prometheus_client import Counter, Histogram, start_http_server

VALUE_BYTES: Final = 400_000
CLIENTS: Final = 2
REQUESTS_OF_A_CONNECTION: Final = 5
_PAUSE_S: Final = 0.03
"""Between two requests of a client, on average over the day."""
_SWING: Final = 0.6
_BURST_SHARE: Final = 0.02
_BUCKETS: Final = tuple(0.0001 * 1.5**step for step in range(24))


def main(words: list[str]) -> None:
    redis, port, day_s = int(words[0]), int(words[1]), float(words[2])
    took = Histogram("demo_latency_seconds", "How long a request took.", buckets=_BUCKETS)
    requests = Counter("demo_requests", "Requests that were answered.")
    failures = Counter("demo_failures", "Requests that were not.")
    _fill(redis)
    start_http_server(port, addr="127.0.0.1")
    for number in range(CLIENTS):
        threading.Thread(target=_ask, args=(number, redis, day_s, took, requests, failures), daemon=True).start()
    threading.Event().wait()


def _fill(redis: int) -> None:
    """The value that everybody asks for."""
    value = b"x" * VALUE_BYTES
    with socket.create_connection(("127.0.0.1", redis)) as connection:
        connection.sendall(b"*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$%d\r\n%s\r\n" % (len(value), value))
        if connection.recv(99) != b"+OK\r\n":
            raise RuntimeError("redis did not take the value")


def _ask(number: int, redis: int, day_s: float, took: Histogram, requests: Counter, failures: Counter) -> None:
    chance = random.Random(number)
    while True:
        try:
            with socket.create_connection(("127.0.0.1", redis), timeout=5) as connection:
                for _ in range(REQUESTS_OF_A_CONNECTION):
                    time.sleep(_pause_s(chance, day_s))
                    began = time.perf_counter()
                    _get(connection)
                    took.observe(time.perf_counter() - began)
                    requests.inc()
        except OSError:
            failures.inc()


def _pause_s(chance: random.Random, day_s: float) -> float:
    """Short at noon, long at midnight, and from time to time none."""
    if chance.random() < _BURST_SHARE:
        return 0.0
    rate = 1 + _SWING * math.sin(2 * math.pi * time.monotonic() / day_s)
    return chance.expovariate(rate / _PAUSE_S)


def _get(connection: socket.socket) -> None:
    connection.sendall(b"*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n")
    wanted = VALUE_BYTES + len(b"$%d\r\n\r\n" % VALUE_BYTES)
    while wanted > 0:
        chunk = connection.recv(65536)
        if not chunk:
            raise OSError("redis closed the connection")
        wanted -= len(chunk)


if __name__ == "__main__":
    main(sys.argv[1:])
