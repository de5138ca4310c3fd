"""Headless Chromium, for tests that look at pages."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def chromium() -> Iterator[Any]:
    """While it is open no other event loop can run in this process."""
    from playwright.sync_api import sync_playwright

    arguments = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
    ]
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=arguments)
        yield started
        started.close()


def until(happens: Callable[[], bool], seconds: float = 30) -> None:
    """The page's policy forbids what Playwright waits with for a condition."""
    end = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < end
        time.sleep(0.1)
