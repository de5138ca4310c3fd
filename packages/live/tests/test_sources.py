"""Metrics where they are: a real endpoint on the loopback, logs that are followed, files of the kernel."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psutil
import pytest

from ajuste.model.error import RequestError
from ajuste.model.live import LiveDesign, LiveMetric
from ajuste.model.metric import Metric
from ajuste_live.reading import Figures, NothingShownError, Reading, Source, level, look_at
from ajuste_live.request import LiveRequest, live_design
from ajuste_live.sources import open_metric
from ajuste_live.sources import opened as opened_all
from mutation import bounded

PAGE = """\
# TYPE took histogram
took_bucket{{le="0.1"}} {few}
took_bucket{{le="0.2"}} {all}
took_bucket{{le="+Inf"}} {all}
took_sum {sum}
took_count {all}
# TYPE requests counter
requests_total{{code="200"}} {all}
requests_total{{code="500"}} 7
# TYPE heat gauge
heat{{core="0"}} 40
heat{{core="1"}} {all}
# TYPE old summary
old{{quantile="0.99"}} 0.5
old_sum 3
old_count 2
"""


class Service:
    """An endpoint with what it shows; it can be down."""

    def __init__(self) -> None:
        self.body = ""
        self.requests: list[str] = []
        self.past: list[object] = []
        self.show(all=10, few=10, sum=1)
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                service.requests.append(self.path)
                body = service.body
                if self.path.startswith("/api/v1/query?query=up"):
                    body = json.dumps({"data": {"resultType": "scalar", "result": [1, "4.5"]}})
                elif self.path.startswith("/api/v1/query_range"):
                    body = json.dumps({"data": {"resultType": "matrix", "result": service.past}})
                self.send_response(200 if body else 500)
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def show(self, **figures: float) -> None:
        self.body = PAGE.format(**figures)


@pytest.fixture
def service() -> Iterator[Service]:
    played = Service()
    yield played
    played.server.shutdown()
    played.server.server_close()


def opened(kind: str, where: str) -> Source:
    return open_metric(
        LiveMetric(metric=Metric(name="m", title="m", unit="", direction="lower"), kind=kind, where=where)
    )


def between(source: Source, change: object) -> float | None:
    first = Reading(0.0, source.read())
    assert callable(change)
    change()
    return source.fold([first, Reading(2.0, source.read())])


@pytest.mark.parametrize(
    ("series", "figure"),
    [
        ("took", 3.0 / 20),
        ("took@p75", 0.15),
        ("requests", 10.0),
        ('requests_total{code="200"}', 10.0),
        ('heat{core="1"}', 20.0),
        ("old@p99", 0.5),
    ],
)
def test_series_of_prometheus_become_figures_of_the_time_between(service: Service, series: str, figure: float) -> None:
    source = opened("prometheus", f"{service.url}/metrics#{series}")
    assert between(source, lambda: service.show(all=30, few=20, sum=4)) == pytest.approx(figure)


@pytest.mark.parametrize(
    ("series", "message"),
    [
        ("nothing", "series nothing not found"),
        ("heat", "heat stands for 2 series"),
        ('heat{core="9"}', "no series of these labels"),
        ("heat@p99", "has no quantiles"),
        ("old@p50", "shows 0 series for the quantile 0.5"),
        ("a b", "is not a series"),
    ],
)
def test_what_is_not_there_is_refused_before_anything_begins(service: Service, series: str, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        opened("prometheus", f"{service.url}/metrics#{series}")


def test_an_endpoint_that_is_down_is_refused_and_later_noticed(service: Service) -> None:
    source = opened("prometheus", f"{service.url}/metrics#took")
    service.body = ""
    with pytest.raises(NothingShownError, match="500"):
        source.read()
    with pytest.raises(RequestError, match="does not answer"):
        opened("prometheus", "http://127.0.0.1:1/metrics#took")
    with pytest.raises(RequestError, match="not a URL"):
        opened("prometheus", "file:///etc/passwd#took")


WHOLE = b"# TYPE heat gauge\nheat 0.0400012345\n"
HEAD = b"HTTP/1.1 200 OK\r\n"


class Answers:
    """An endpoint that answers with these bytes, and closes."""

    drips = False

    def __init__(self) -> None:
        self.response = HEAD + b"Content-Length: %d\r\n\r\n" % len(WHOLE) + WHOLE
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                connection.recv(4096)
                connection.sendall(self.response)
                while self.drips:
                    connection.sendall(b"X: y\r\n")
                    time.sleep(0.01)

    def close(self) -> None:
        self._listening.close()


@pytest.fixture
def answers() -> Iterator[Answers]:
    played = Answers()
    yield played
    played.close()


BROKEN = {
    "shorter than announced": HEAD + b"Content-Length: 100\r\n\r\n" + WHOLE[:25],
    "a chunk that breaks off": HEAD + b"Transfer-Encoding: chunked\r\n\r\n50\r\n" + WHOLE[:25],
    "no last chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\n19\r\n" + WHOLE[:25] + b"\r\n",
    "no end of the last line": b"HTTP/1.0 200 OK\r\n\r\n" + WHOLE[:25],
    "another protocol": b"SSH-2.0-OpenSSH_9.2\r\n",
    "no text": bytes(range(256)),
    "nothing": b"",
    "a malformed length": HEAD + b"Content-Length: some\r\n\r\n" + WHOLE,
    "packed": HEAD + b"Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\n\x1f\x8b\x08\x00\n",
    "elsewhere": b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
}


@pytest.mark.parametrize("broken", BROKEN)
def test_an_answer_that_breaks_off_or_is_none_shows_nothing(answers: Answers, broken: str) -> None:
    source = opened("prometheus", f"{answers.url}#heat")
    assert source.read() == (0.0400012345,)
    answers.response = BROKEN[broken]
    with pytest.raises(NothingShownError):
        source.read()
    query = f"{answers.url}#heat"
    with pytest.raises(RequestError):
        opened("promql", query)


def test_every_failure_of_a_source_is_nothing_shown() -> None:
    def fail() -> Figures:
        raise LookupError("planted")

    with pytest.raises(NothingShownError, match="planted"):
        look_at(Source("here", fail, level))


def test_a_query_to_prometheus_itself(service: Service) -> None:
    assert opened("promql", f"{service.url}#up").read() == (4.5,)


def test_logs_are_followed_also_when_they_are_rotated(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("took 9 s\n")
    numbers, pointers = opened("regex", f"{log}#took ([0-9.]+) s"), opened("json", f"{log}#/request/s")

    def write() -> None:
        with log.open("a") as file:
            file.write('took 1 s\n{"request": {"s": 5}}\n')
        log.rename(tmp_path / "x.log.1")
        log.write_text("took 3 s\ntook 4")

    assert between(numbers, write) == 2
    assert pointers.read() == (5.0,)


def test_a_command_that_fails_is_quoted() -> None:
    with pytest.raises(RequestError, match=r"exited with code 127; last output: .*cannot load libx"):
        opened("command", "sh -c 'echo first >&2; echo cannot load libx >&2; exit 127'")


def test_a_rotated_log_is_read_to_its_end(tmp_path: Path) -> None:
    """Also what its service still writes to the old file, until it opens the new one."""
    log = tmp_path / "x.log"
    log.touch()
    source = opened("json", f"{log}#/s")
    with log.open("a") as service:
        log.rename(tmp_path / "x.log.1")
        log.touch()
        assert source.read() == ()
        service.write('{"s": 1}\n')
        service.flush()
        assert source.read() == (1.0,)
        service.write('{"s": 2}\n')
    log.write_text('{"s": 3}\n')
    assert sorted(source.read()) == [2.0, 3.0]
    log.write_text('{"s": 3}\n{"s": 4}\n')
    assert source.read() == (4.0,)


@pytest.mark.parametrize("whole", [False, True])
def test_the_rest_of_a_line_whose_beginning_was_skipped_is_no_line(tmp_path: Path, *, whole: bool) -> None:
    log = tmp_path / "x.log"
    log.touch()
    source = opened("regex", f"{log}#([0-9]+) ms")
    end = b" " * ((8 << 20) - len(b"34 ms\n") - len(b"\n7 ms\n")) + b"\n7 ms\n"
    log.write_bytes(b"12" + (b"\n" if whole else b"") + b"34 ms\n" + end)
    assert source.read() == ((34.0, 7.0) if whole else (7.0,))


def test_a_line_that_is_longer_than_a_reading_is_skipped_to_its_end(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.touch()
    source = opened("regex", f"{log}#([0-9]+) ms")
    for _ in range(2):
        with log.open("ab") as file:
            file.write(b"x" * (9 << 20))
        assert source.read() == ()
    with log.open("ab") as file:
        file.write(b"34 ms\n7 ms\n")
    assert source.read() == (7.0,)


@pytest.mark.parametrize(
    ("text", "kind", "where", "warning"),
    [
        ("", "regex", "took ([0-9.]+) s", "no line at the end of {} matches yet"),
        ("took long\n", "regex", "took ([0-9.]+) s", "no line at the end of {} matches yet"),
        ("took long\ntook 2 s\n", "regex", "took ([0-9.]+) s", ""),
        (f"took 2 s\n{'x' * 70_000}\n", "regex", "took ([0-9.]+) s", "no line at the end of {} matches yet"),
        ('{"s": 1}\n', "json", "/t", "has a number at /t yet"),
        ('{"s": 1}\n', "json", "/s", ""),
    ],
)
def test_a_log_without_a_line_that_counts_is_warned_of(
    tmp_path: Path, text: str, kind: str, where: str, warning: str
) -> None:
    log = tmp_path / "x.log"
    log.write_text(text)
    source = opened(kind, f"{log}#{where}")
    assert warning.format(log) in source.warning
    assert bool(source.warning) == bool(warning)
    assert source.read() == ()
    (metric,) = live_design(LiveRequest(slice="9s", metric=(f"took,s,lower={kind}:{log}#{where}",))).metrics
    messages: list[str] = []
    with opened_all(LiveDesign(metrics=(metric,), slice_s=9, for_s=99), say=messages.append):
        assert [message.startswith("metric took: ") for message in messages] == [True] * bool(warning)


@pytest.mark.timeout(30)
@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir], ids=["fifo", "directory"])
def test_only_a_regular_file_is_followed(make: Callable[[Path], None], tmp_path: Path) -> None:
    place = tmp_path / "x.log"
    make(place)
    with pytest.raises(RequestError, match="not a regular file"):
        opened("regex", f"{place}#(.)")


@pytest.mark.timeout(30)
def test_a_pattern_that_backtracks_without_end_shows_nothing(tmp_path: Path) -> None:
    """The writer of the log must not keep Ajuste from its guards."""
    log = tmp_path / "x.log"
    log.touch()
    source = opened("regex", f"{log}#(a+)+(1)$")
    log.write_text("a" * 60 + "b\n")
    with pytest.raises(NothingShownError, match="the machine is busy, or the pattern may backtrack"):
        source.read()
    log.write_text("aa1\n")
    assert source.read() == ()


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    ("endless", "started"), [("yes 1", ["yes", "1"]), ("sh -c 'sleep 321 & wait'", ["sleep", "321"])]
)
def test_a_command_that_does_not_end_is_ended_with_all_that_it_has_started(
    endless: str, started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ajuste_live.sources.command.READ_SECONDS", 0.3)
    with bounded(), pytest.raises(RequestError, match="took longer than"):
        opened("command", endless)
    deadline = time.monotonic() + 20  # a killed process may have to wait for a CPU first
    while started in (left := [process.info["cmdline"] for process in psutil.process_iter(["cmdline"])]):
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)
    assert started not in left


@pytest.mark.timeout(30)
def test_an_endpoint_whose_headers_never_end_is_left(answers: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ajuste_live.sources.PAST_SECONDS", 0.5)
    answers.response = HEAD
    answers.drips = True
    with pytest.raises(RequestError, match="shows nothing within"):
        opened("prometheus", f"{answers.url}#heat")


def test_commands_and_files_of_the_kernel() -> None:
    assert opened("command", "echo a 1 b 2.5").read() == (2.5,)
    assert opened("proc", "vmstat.pgfault").read()[0] > 0
    assert opened("proc", "meminfo.MemTotal").read() == (os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),)
    assert opened("process", f"{os.getpid()}#rss").read()[0] > 1e6
    with pytest.raises(RequestError, match="shell"):
        opened("command", "echo 1 2 | wc -w")
    for kind, where in (("command", "false"), ("proc", "vmstat.nothing"), ("process", "no such#cpu"), ("tea", "x")):
        with pytest.raises(RequestError):
            opened(kind, where)


def test_prometheus_tells_the_slices_of_the_last_day(service: Service) -> None:
    source = opened("promql", f"{service.url}#up")
    assert source.past is not None
    service.past = [{"metric": {}, "values": [[1, "2.5"], [61, "3.5"]]}]
    assert source.past(60.0, 45.0) == [2.5, 3.5]
    words = parse_qs(urlsplit(service.requests[-1]).query)
    assert (words["query"], words["step"]) == (["avg_over_time((up)[45s:1s])"], ["60"])
    assert float(words["end"][0]) - float(words["start"][0]) == pytest.approx(86_400)
    wrong: tuple[list[object], ...] = ([], [{}], [{"values": [[1, "x"]]}])
    for service.past in wrong:
        with pytest.raises(NothingShownError):
            source.past(60.0, 45.0)


def test_what_is_not_there_yet_is_waited_for_as_long_as_is_patient(tmp_path: Path) -> None:
    place = tmp_path / "number"
    metric = Metric(name="m", title="m", unit="", direction="lower")
    design = LiveDesign(metrics=(LiveMetric(metric=metric, kind="command", where=f"cat {place}"),), slice_s=2, for_s=60)
    messages: list[str] = []

    def come(line: str) -> None:
        messages.append(line)
        place.write_text("7")

    with pytest.raises(RequestError), opened_all(design, 0, come):
        pass
    assert messages == []
    with opened_all(design, 60, come) as sources:
        assert sources["m"].read() == (7.0,)
    assert len(messages) == 1
    assert messages[0].startswith("waiting: ")


@pytest.mark.parametrize(
    ("unit", "good", "bad"),
    [("", "-1e149", "-1e308"), ("", "1e149", "1e151"), ("s", "0", "-0.1"), ("ms", "3", "-3"), ("1/s", "-3", "2e150")],
)
def test_a_figure_that_cannot_be_is_nothing_shown(tmp_path: Path, unit: str, good: str, bad: str) -> None:
    (place := tmp_path / "number").write_text(good)
    metric = Metric(name="m", title="m", unit=unit, direction="lower")
    source = open_metric(LiveMetric(metric=metric, kind="command", where=f"cat {place}"))
    assert look_at(source) == (float(good),)
    place.write_text(bad)
    with pytest.raises(NothingShownError, match="expected"):
        look_at(source)


@pytest.mark.parametrize("unit", ["bytes", "MB", "s"])
def test_a_counter_of_bytes_is_not_in_bytes(service: Service, unit: str) -> None:
    where = f"{service.url}/metrics#requests"
    metric = LiveMetric(
        metric=Metric(name="sent", title="sent", unit=unit, direction="higher"), kind="prometheus", where=where
    )
    with pytest.raises(RequestError, match=f"expected {unit}/s") as caught:
        open_metric(metric)
    assert f"sent,{unit}/s" in (caught.value.hint or "")
    open_metric(metric.model_copy(update={"metric": metric.metric.model_copy(update={"unit": f"{unit}/s"})}))


def test_a_difference_of_times_can_be_negative() -> None:
    metric = Metric(name="offset", title="offset", unit="s", direction="none", scale="difference")
    assert look_at(open_metric(LiveMetric(metric=metric, kind="command", where="echo -0.5"))) == (-0.5,)


def test_a_mean_that_is_too_large_is_no_figure(service: Service) -> None:
    source = opened("prometheus", f"{service.url}/metrics#took")
    assert source.fold([Reading(0.0, (0.0, 0.0)), Reading(1.0, (1e149, 1e-149))]) is None
    assert source.fold([Reading(0.0, (0.0, 0.0)), Reading(1.0, (6.0, 2.0))]) == 3.0


def test_a_counter_of_a_command_is_a_rate(tmp_path: Path) -> None:
    request = LiveRequest(slice="5s", metric=("commits,1/s,higher,counter=command:echo 5",))
    (metric,) = live_design(request).metrics
    assert (metric.metric.unit, metric.metric.direction) == ("1/s", "higher")
    assert open_metric(metric).fold([Reading(0, (5.0,)), Reading(2, (9.0,))]) == 2.0
    (log := tmp_path / "log").touch()
    with pytest.raises(RequestError, match="counter does not apply to regex:"):
        open_metric(metric.model_copy(update={"kind": "regex", "where": f"{log}#(.)"}))
