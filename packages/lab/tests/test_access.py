"""Access to the lab page. Truth: what a browser of another site, or another person, can send."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from html import unescape
from pathlib import Path
from socket import create_connection, socket
from threading import Thread
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import pytest
from starlette.testclient import TestClient
from tests.debian_archive import archive_of_this_machine

from ajuste.machine.home import Home
from ajuste.machine.inventory.inventory import Inventory, take_inventory
from ajuste.model.error import RequestError
from ajuste.model.plugins import load_each
from ajuste.store.store import Store
from ajuste_lab.access import (
    LARGEST_BODY,
    LARGEST_BUNDLE,
    MOST_CONNECTIONS,
    VIEWED,
    lab_server,
    listener_at,
    viewer_token,
)
from ajuste_lab.application import application, lab_routes
from ajuste_lab.jobs import Jobs
from ajuste_lab.rendering import added_pages
from ajuste_lab.service import LabService
from ajuste_share.bundle import write_bundle
from ajuste_share.sharing import to_bundle
from guests import in_guests
from headless import until
from namespace import needs_root
from shell import SMALL
from small_stores import DECIDED, GOING_ON, run_of, small_store

TOKEN = "t" * 32
HOSTILE = '<script>document.title = "owned"</script><img src=x onerror=alert(1)>'
OWN = {"origin": "http://127.0.0.1:8642", "sec-fetch-site": "same-origin"}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    small_store(tmp_path / "data" / "store.sqlite")
    return Home(tmp_path / "data", tmp_path / "cache", tmp_path / "state")


@pytest.fixture
def stranger(home: Home) -> Iterator[TestClient]:
    """A client without a token."""
    service = LabService(home)
    with TestClient(application(service, token=TOKEN, port=8642), base_url="http://127.0.0.1:8642") as client:
        yield client


@pytest.fixture
def person(stranger: TestClient) -> TestClient:
    """A client that has opened the address."""
    assert stranger.get(f"/?token={TOKEN}").status_code == 200
    return stranger


def tags(home: Home) -> list[str]:
    with Store(home.store_url) as store:
        return [run.tags for run in store.runs() if run.id == DECIDED]


def test_the_token_is_required_and_then_kept_in_a_cookie_that_other_sites_cannot_use(stranger: TestClient) -> None:
    assert stranger.get("/").status_code == 403
    assert stranger.get("/?token=wrong").status_code == 403
    answer = stranger.get(f"/?token={TOKEN}&find=small", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/?find=small")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert stranger.get("/").status_code == 200


@pytest.mark.parametrize("host", ["evil.example:8642", "127.0.0.1:9999", "127.0.0.1.evil.example:8642", ""])
def test_a_name_that_another_site_lets_point_here_is_refused(person: TestClient, host: str) -> None:
    assert person.get("/", headers={"host": host}).status_code == 421


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "http://127.0.0.1:8000", "sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site"},
        {"origin": "null"},
        {},
    ],
)
def test_no_other_site_changes_anything(person: TestClient, home: Home, headers: dict[str, str]) -> None:
    assert person.post(f"/runs/{DECIDED}/keep", data={"tags": "mine"}, headers=headers).status_code == 403
    assert tags(home) == [""]


def test_the_page_itself_changes_what_it_is_told(person: TestClient, home: Home) -> None:
    form = {"tags": "mine, second", "pinned": "yes", "note": "see the mail"}
    assert person.post(f"/runs/{DECIDED}/keep", data=form, headers=OWN).status_code == 200
    assert tags(home) == ["mine pinned second"]
    assert "see the mail" in person.get(f"/runs/{DECIDED}").text


def test_who_may_only_look_sees_all_and_changes_nothing(stranger: TestClient, home: Home) -> None:
    page = stranger.get(f"/?token={viewer_token(TOKEN)}")
    assert page.status_code == 200
    assert TOKEN not in page.text
    assert "Delete chosen" not in page.text
    assert stranger.post(f"/runs/{DECIDED}/keep", data={"tags": "mine"}, headers=OWN).status_code == 403
    assert tags(home) == [""]


def test_a_request_that_is_too_large_is_refused(person: TestClient) -> None:
    data = {"text": "x" * (LARGEST_BODY + 1)}
    assert person.post("/new/plan", data=data, headers=OWN).status_code == 413

    def parts() -> Iterator[bytes]:  # without its length
        for _ in range(LARGEST_BODY // 65_536 + 2):
            yield b"x" * 65_536

    assert person.post("/new/plan", content=parts(), headers=OWN).status_code == 413


BUNDLE = {**OWN, "content-type": "application/octet-stream", "accept": "application/json"}


@pytest.fixture
def bundle(home: Home, tmp_path: Path) -> bytes:
    """A run of the store, which is then no longer there."""
    with Store(home.store_url) as store:
        runs = to_bundle([DECIDED], store)
        write_bundle(tmp_path / "one.ajuste", runs, len(runs))
        store.delete([runs[0].run])
    return (tmp_path / "one.ajuste").read_bytes()


def test_a_bundle_is_imported_once(person: TestClient, home: Home, bundle: bytes) -> None:
    assert tags(home) == []
    for new in (True, False):
        (run,) = person.post("/import?name=one.ajuste", content=bundle, headers=BUNDLE).json()["runs"]
        assert (run["id"], run["new"], run["said_anew"]) == (DECIDED, new, False)
    assert tags(home) == [""]
    assert person.get(f"/runs/{DECIDED}").status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "http://evil.example"}, 403),
        ({"content-type": "application/x-www-form-urlencoded"}, 400),
        ({"content-length": str(LARGEST_BUNDLE + 1)}, 413),
    ],
)
def test_a_bundle_from_elsewhere_or_too_large_or_of_another_kind_is_refused(
    person: TestClient, home: Home, bundle: bytes, headers: dict[str, str], status: int
) -> None:
    answer = person.post("/import", content=bundle, headers={**BUNDLE, **headers})
    assert answer.status_code == status
    assert answer.json()["error"]
    assert tags(home) == []


def test_who_may_only_look_imports_nothing(stranger: TestClient, home: Home, bundle: bytes) -> None:
    page = stranger.get(f"/?token={viewer_token(TOKEN)}")
    assert "Import" not in page.text
    assert stranger.post("/import", content=bundle, headers=BUNDLE).status_code == 403
    assert tags(home) == []


@pytest.mark.parametrize("change", [lambda b: b"x" * 99, lambda b: b[:-20], lambda b: b""])
def test_what_is_no_whole_bundle_is_refused_by_its_own_name(
    person: TestClient, home: Home, bundle: bytes, change: Callable[[bytes], bytes]
) -> None:
    answer = person.post("/import?name=of%20mine.ajuste", content=change(bundle), headers=BUNDLE)
    assert answer.status_code == 400
    assert answer.json()["error"] == "of mine.ajuste is not a bundle of Ajuste"
    assert tags(home) == []


def test_a_flood_is_refused(person: TestClient) -> None:
    answers = {person.post("/runs", data={}, headers=OWN).status_code for _ in range(60)}
    assert answers == {400, 429}


def test_what_is_deleted_is_asked_about_first(person: TestClient, home: Home) -> None:
    first = person.post("/runs", data={"run": DECIDED, "action": "delete"}, headers=OWN)
    assert "cannot be undone" in first.text
    assert tags(home) == [""]
    person.post("/runs", data={"run": DECIDED, "action": "delete", "sure": "yes"}, headers=OWN)
    assert tags(home) == []


def test_a_study_of_this_machine_is_not_run(person: TestClient, home: Home) -> None:
    text = SMALL.replace('kernel = "debian:5.10"\ninstruction_ns = 8', 'kind = "host"')
    for place in ("/new/plan", "/new/run"):
        answer = person.post(place, data={"text": text}, headers=OWN)
        assert answer.status_code == 400
        assert "only with --allow-host" in answer.text
    assert not [*(home.state / "lab").glob("*/job.json")]


@pytest.mark.parametrize("text", ["", "schema = ", 'name = "../../x"', "a." * 40 + "b = 1", "[" * 5000])
def test_a_study_that_is_wrong_is_told_with_its_text_kept(person: TestClient, text: str) -> None:
    answer = person.post("/new/plan", data={"text": text}, headers=OWN)
    assert answer.status_code == 400
    assert 'role="alert"' in answer.text


@pytest.mark.parametrize(
    "place", ["/runs/..%2f..%2fetc", "/runs/x", "/jobs/..%2fx", "/static/..%2faccess.py", "/tunables/x%00", "/nothing"]
)
def test_what_is_not_there_is_not_found(person: TestClient, place: str) -> None:
    assert person.get(place).status_code in (400, 404)


def test_hostile_text_is_text(person: TestClient, home: Home, tmp_path: Path) -> None:
    text = SMALL.replace('name = "small"\n', f"name = \"small\"\ntitle = '{HOSTILE}'\n")
    with Store(home.store_url) as store:
        run = run_of(text, store, tmp_path)
        store.tag(run, [HOSTILE.split()[0].replace("#", "")])
    for place in ("/", f"/runs/{run.id}", f"/?find={HOSTILE}", f"/runs/{run.id}/explore", f"/compare?run={run.id}"):
        answer = person.get(place)
        assert answer.status_code == 200, place
        assert "<script>document" not in answer.text
        assert "<img" not in answer.text
        policy = answer.headers["content-security-policy"]
        assert "script-src 'self';" in policy
        assert "frame-ancestors 'none'" in policy


def test_what_the_page_may_not_measure_again_cannot_be_pressed(person: TestClient, home: Home, tmp_path: Path) -> None:
    of_host = SMALL.replace('kernel = "debian:5.10"\ninstruction_ns = 8', 'kind = "host"')
    for text, refused in ((SMALL, False), (of_host, True)):
        with Store(home.store_url) as store:
            run = run_of(text, store, tmp_path)
        button = re.search(r'<button[^>]*value="(?:again|resume)"[^>]*>', person.get(f"/runs/{run.id}").text)
        assert button is not None
        assert ("disabled" in button[0]) == refused


def test_a_check_of_quietness_that_ends_while_its_page_is_made_is_waited_for(
    person: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = threading.Event()
    monkeypatch.setattr(Jobs, "output_of", lambda *_, **__: "{}" if ended.wait(30) else "")

    def inventory() -> Inventory:
        ended.set()
        for thread in threading.enumerate():
            if thread.name == "lab quietness":
                thread.join()
        return take_inventory()

    monkeypatch.setattr("ajuste_lab.pages.machine.take_inventory", inventory)
    assert "data-reload" in person.post("/machine/check", data={"length": "quick"}, headers=OWN).text


def test_the_api_refuses_other_methods_in_json(person: TestClient) -> None:
    refused = person.get("/api/run")
    assert (refused.status_code, set(refused.json())) == (405, {"error", "hint"})


def test_a_run_of_several_kernels_is_found_by_each(person: TestClient, home: Home) -> None:
    about: dict[str, Any] = {"seed": 1, "ajuste": "0", "named": "n", "resolved": "{}", "environment": {}}
    with Store(home.store_url) as store:
        run = store.new_run(study="both", fingerprint="f", kernel="debian:6.1, debian:6.12", **about)
    for kernel, expected in (("debian:6.1", True), ("debian:6.12", True), ("debian:6", False)):
        assert (run.id in person.get("/", params={"kernel": kernel}).text) == expected


def test_a_run_that_nobody_measures_can_be_ended_for_good(person: TestClient, home: Home) -> None:
    person.post(f"/runs/{GOING_ON}/act", data={"action": "stop"}, headers=OWN)
    with Store(home.store_url) as store:
        assert store.find_run(GOING_ON).stopped == "interrupted"


@in_guests
def test_a_study_whose_lines_end_as_browsers_send_them_is_planned_twice(person: TestClient) -> None:
    text = SMALL
    for _ in range(2):
        answer = person.post("/new/plan", data={"text": text.replace("\n", "\r\n")}, headers=OWN)
        assert answer.status_code == 200, answer.text
        text = unescape(answer.text.partition('maxlength="200000">')[2].partition("</textarea>")[0])
        assert text == SMALL


@in_guests
def test_a_form_becomes_the_study_that_the_command_line_would_write(person: TestClient) -> None:
    form = {
        "setting_0": "nice",
        "levels_0": "0, 10",
        "workload": "matrix size=60 repetitions=1",
        "background": "spin",
        "kernel": "debian:5.10",
        "blocks": "3..9",
        "title": "A <b> title",
    }
    answer = person.post("/new/plan", data=form, headers=OWN)
    assert answer.status_code == 200, answer.text
    assert "Nothing was done yet" in answer.text
    assert "name = &#34;a-b-title&#34;" in answer.text
    assert "levels = [&#34;0&#34;, &#34;10&#34;]" in answer.text


@in_guests
def test_a_kernel_that_no_list_has_is_refused_at_its_field_with_those_there_are(
    person: TestClient, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ajuste_guest.kernel.fetch import available_kernels

    monkeypatch.setenv("AJUSTE_HOME", str(tmp_path))
    with archive_of_this_machine(tmp_path, monkeypatch) as archive:
        archive.add_kernel("bullseye", "5.10.0-2-cloud-amd64", "5.10.9-1")
        archive.add_kernel("bullseye-security", "5.10.0-11-cloud-amd64", "5.10.100-1")
        archive.publish()
        available_kernels(home, lambda _: None)
    form = {"workload": "true", "kernel": "debian:5.10.50"}
    answer = person.post("/new/plan", data=form, headers=OWN)
    assert answer.status_code == 400
    (message,) = re.findall(r'id="kernel-problem">([^<]*)<', unescape(answer.text))
    assert "debian:5.10.50 not found" in message
    assert "debian:5.10.100, debian:5.10.9" in message
    assert person.post("/new/plan", data={**form, "kernel": "debian:5.10.9"}, headers=OWN).status_code == 200


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("levels_0", "0, 99", "nice = 99 is out of range; expected between -20 and 19"),
        ("levels_0", "", "Give levels"),
        ("levels_0", "0;10", "commas between levels"),
        ("levels_0", "99", "nice = 99 is out of range"),
        ("setting_0", "vm.swapiness", "not found"),
        ("levels_1", "10", "out of range"),
        ("workload", "matrix siz=60", "did you mean size?"),
        ("background", "matrix 'x", "quot"),
        ("metrics", "elapsd", "did you mean elapsed?"),
        ("kernel", "windows", "is not a kernel"),
        ("min_effect", "much", "a share such as 1%"),
        ("blocks", "9..3", "a range such as"),
        ("max_time", "soon", "a duration such as"),
        ("max_time", "5 minuts", "a duration such as"),
        ("seed", "x", "is not a whole number"),
    ],
)
def test_what_is_wrong_with_a_form_is_said_at_its_field(
    person: TestClient, field: str, value: str, problem: str
) -> None:
    form = {"setting_0": "nice", "levels_0": "0, 10", "workload": "matrix", "kernel": "debian:5.10", "seed": "1"}
    if field == "levels_1":  # settings with an option of their own come last in the study
        form |= {"setting_1": "vm.swappiness", "levels_1": "10, 999"}
        value = "10, 999"
    answer = person.post("/new/plan", data={**form, field: value}, headers=OWN)
    assert answer.status_code == 400
    text = unescape(answer.text)
    marked = re.findall(r'<(?:input|select) id="(\w+)"[^>]* aria-invalid="true" aria-describedby="(\w+-problem)"', text)
    assert marked == [(field, f"{field}-problem")]
    (message,) = re.findall(rf'id="{field}-problem">([^<]*)<', text)
    assert problem in message
    assert "study.toml" not in message
    assert "--help" not in text
    assert f'value="{value}"' in text


OWNERS: Final = frozenset(
    (
        *("/runs", "/runs/{run}/keep", "/runs/{run}/act", "/import", "/jobs/{job}/cancel"),
        *("/new", "/new/plan", "/new/run", "/machine/check", "/kernels", "/kernels/list", "/tunables/{name:path}/here"),
        *(f"/api/{name}" for name in ("plan", "run", "watch", "stop", "why", "export", "campaign_propose", "budget")),
    )
)
"""Routes that start, stop or change something, ask a process or the network, or let a thread wait."""
PLACES: Final = {"{run}": "none", "{job}": "none", "{name:path}": "vm.swappiness", "{name}": "style.css"}


@pytest.mark.parametrize("token", ["", "wrong", viewer_token(TOKEN), TOKEN])
def test_every_route_is_for_the_owner_or_also_for_viewers(
    home: Home, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[object] = []

    def start(*words: object, **_: object) -> None:
        started.append(words)
        raise RequestError("nothing is started here")

    monkeypatch.setattr(Jobs, "output_of", start)
    monkeypatch.setattr(Jobs, "start", start)
    service = LabService(home)
    routes = {route.path: route for route in lab_routes(service)}
    pages = {route.path for module in added_pages() for route in module.ROUTES}
    operations = {f"/api/{each.name}" for _, module in load_each("operations") for each in module.OPERATIONS}
    assert set(routes) == OWNERS | VIEWED | pages | operations
    headers = {"authorization": f"Bearer {token}"} if token else {}
    with TestClient(application(service, token=TOKEN, port=8642), base_url="http://127.0.0.1:8642") as client:
        for path, route in routes.items():
            place = path
            for name, value in PLACES.items():
                place = place.replace(name, value)
            for method in route.methods or ():
                views = token == viewer_token(TOKEN) and path in VIEWED and method != "POST"
                allowed = token == TOKEN or views
                answer = client.request(method, place, headers=headers)
                refused = answer.status_code in (403, 429)  # 429: too many wrong tokens
                assert refused == (not allowed), (method, path, answer.status_code)
    if token != TOKEN:
        assert not started
        assert not (home.state / "lab").exists()


@pytest.fixture
def place(home: Home) -> Iterator[tuple[str, int]]:
    """The address at which a server of the lab page listens."""
    listener = listener_at(0)
    place = listener.getsockname()
    guarded = application(LabService(home), token=TOKEN, port=place[1])
    server = lab_server(guarded, lambda: None)
    thread = Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    yield place
    server.should_exit = True
    thread.join(20)
    listener.close()


def test_connections_without_a_request_neither_stay_nor_keep_the_owner_out(
    place: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ajuste_lab.access.HEADER_SECONDS", 0.5)
    with ExitStack() as stack:
        held = [stack.enter_context(create_connection(place)) for _ in range(MOST_CONNECTIONS + 10)]
        held[-1].sendall(b"GET / HTTP/1.1\r\nHost: ")
        headers = {"Authorization": f"Bearer {TOKEN}"}
        assert httpx.get(f"http://127.0.0.1:{place[1]}/", headers=headers, timeout=20).status_code == 200
        for connection in held:
            connection.settimeout(20)
            with suppress(ConnectionResetError):
                assert connection.recv(100) == b""


OTHERS = """
import os, socket, sys
os.setgroups([])
os.setgid(54321)
os.setuid(54321)
held = [socket.socket() for _ in range(int(sys.argv[2]))]
for one in held:
    one.connect(("127.0.0.1", int(sys.argv[1])))
print("held", flush=True)
sys.stdin.read()
"""


BROWSER = """\
#!/bin/sh
cat /proc/$$/cmdline /proc/$$/environ >"$0.seen"
echo "$1" >"$0.address"
exec sleep 100
"""
"""Keeps what is readable while it runs."""
ASKED_BY_ANOTHER = """
import os, socket, sys
os.setgroups([])
os.setgid(54321)
os.setuid(54321)
with socket.socket() as connection:
    connection.connect(("127.0.0.1", int(sys.argv[1])))
    connection.sendall(f"GET {sys.argv[2]} HTTP/1.1\\r\\nHost: 127.0.0.1:{sys.argv[1]}\\r\\n\\r\\n".encode())
    print(connection.recv(100).split()[1].decode())
"""


@pytest.fixture
def browsed(home: Home, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """The address that ``ajuste serve`` prints, and the one in the command line of the browser that it opens."""
    program = tmp_path / "browser"
    program.write_text(BROWSER)
    program.chmod(0o755)
    command = [str(Path(sys.executable).with_name("ajuste")), "serve"]
    environment = {**os.environ, "AJUSTE_HOME": str(home.data.parent), "BROWSER": str(program)}
    options: dict[str, Any] = {"stdout": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen(command, env=environment, **options) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().removeprefix("Lab page: ").strip()
            record = Path(f"{program}.address")
            until(lambda: record.exists() and record.read_text().endswith("\n"))
            assert urlsplit(address).query.encode() not in Path(f"{program}.seen").read_bytes()
            yield address, record.read_text().strip()
        finally:
            os.killpg(server.pid, signal.SIGKILL)


def test_the_token_in_the_browsers_command_line_works_once(browsed: tuple[str, str]) -> None:
    address, opened = browsed
    token = urlsplit(opened).query.partition("=")[2]
    for tried in (opened.replace("/?", "/machine?"), opened.replace("/?", "/api/runs?")):
        assert httpx.get(tried, follow_redirects=True).status_code == 403
    assert httpx.post(opened, headers={"origin": opened.partition("/?")[0]}).status_code == 403
    assert httpx.get(opened.partition("?")[0], headers={"authorization": f"Bearer {token}"}).status_code == 403
    with httpx.Client(follow_redirects=True) as browser:
        assert browser.get(opened).status_code == 200
        assert browser.get(opened.partition("?")[0]).status_code == 200
    assert httpx.get(opened, follow_redirects=True).status_code == 403
    assert httpx.get(address, follow_redirects=True).status_code == 200


@needs_root
def test_another_user_who_reads_the_browsers_command_line_first_does_not_get_in(browsed: tuple[str, str]) -> None:
    address, opened = browsed
    for tried, status in ((opened, "403"), (address, "303")):
        place = urlsplit(tried)
        other = [sys.executable, "-c", ASKED_BY_ANOTHER, str(place.port), f"/?{place.query}"]
        assert subprocess.run(other, capture_output=True, text=True, check=True).stdout.strip() == status
    assert httpx.get(opened, follow_redirects=True).status_code == 200


@needs_root
def test_connections_of_another_user_take_no_place_of_the_owners(place: tuple[str, int]) -> None:
    with create_connection(place) as connection:  # The oldest, and it waits.
        flood = [sys.executable, "-c", OTHERS, str(place[1]), str(2 * MOST_CONNECTIONS)]
        with subprocess.Popen(flood, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as others:
            assert others.stdout is not None
            assert others.stdout.readline() == "held\n"
            connection.settimeout(20)
            connection.sendall(
                f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{place[1]}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
            )
            assert connection.recv(15) == b"HTTP/1.1 200 OK"
            others.communicate()


FLOODED = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (600, 600))
from ajuste_lab.access import lab_server, listener_at

async def application(scope, receive, send):
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"here"})

listener = listener_at(0)
lab_server(application, lambda: print(listener.getsockname()[1], flush=True)).run(sockets=[listener])
"""


def test_a_flood_that_takes_all_descriptors_is_no_news_for_the_terminal() -> None:
    server = subprocess.Popen(
        [sys.executable, "-c", FLOODED],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    place = ("127.0.0.1", int(server.stdout.readline()))
    server.send_signal(signal.SIGSTOP)
    with ExitStack() as stack:
        held = [stack.enter_context(socket()) for _ in range(800)]
        for connection in held:
            connection.setblocking(False)
            connection.connect_ex(place)
        held[0].setblocking(True)
        held[0].sendall(b"\xff" * 100)
        server.send_signal(signal.SIGCONT)
        assert httpx.get(f"http://{place[0]}:{place[1]}/", timeout=20).text == "here"
    server.terminate()
    assert server.communicate(timeout=20)[1] == ""
