"""The lab page served by the command itself, and a real browser that opens it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ajuste.machine.home import Home
from headless import chromium
from own_home import own_home
from small_stores import small_store


@pytest.fixture(scope="module")
def lab_home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    directory = own_home(tmp_path_factory.mktemp("lab") / "home")
    small_store(directory / "data" / "store.sqlite")
    return Home(directory / "data", directory / "cache", directory / "state")


@pytest.fixture(scope="module")
def served(lab_home: Home) -> Iterator[str]:
    """The address that ``ajuste serve`` prints, with its token; Ctrl-C ends it."""
    command = [str(Path(sys.executable).with_name("ajuste")), "serve", "--no-browser", "--json"]
    environment = {**os.environ, "AJUSTE_HOME": str(lab_home.data.parent)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stderr is not None
        yield json.loads(server.stdout.readline())["address"]
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=60) == 130
        assert server.stdout.read() == b""
        assert server.stderr.read() == b"Stopped.\n"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture
def opened(browser: Any, served: str) -> Iterator[Callable[..., Any]]:
    """Opens a page; at the end the console must be empty, and no other machine asked."""
    complaints: list[str] = []
    contexts = []
    origin = served.partition("/?")[0]

    def open_page(path: str, width: int = 1400, theme: str = "light") -> Any:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))  # type: ignore[func-returns-value]
        page.on("request", lambda r: None if r.url.startswith((origin, "data:", "blob:")) else complaints.append(r.url))
        page.goto(served)
        page.goto(origin + path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert [text for text in complaints if "a status of 40" not in text] == []
