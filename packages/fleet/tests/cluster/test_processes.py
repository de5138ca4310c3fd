"""Workers and schedulers as programs: they end when their work does, or when a signal comes."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress

import pytest

from ajuste_fleet.cluster.processes import run_until_interrupted


async def refuse_to_end() -> None:
    while True:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)


@pytest.mark.timeout(60)
def test_a_task_that_outlives_its_cancellation_does_not_keep_the_program() -> None:
    stubborn = []

    async def work() -> None:
        stubborn.append(asyncio.ensure_future(refuse_to_end()))
        await asyncio.sleep(0)

    run_until_interrupted(work())
    assert not stubborn[0].done()


@pytest.mark.timeout(60)
def test_a_signal_ends_the_work_as_an_interruption() -> None:
    async def work() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(3600)

    with pytest.raises(KeyboardInterrupt):
        run_until_interrupted(work())
