"""The display while a kernel is built."""

from __future__ import annotations

import io

from ajuste.report.console import Console
from ajuste.report.progress import BuildProgress


class Clock:
    """A clock that a test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def printed(progress: BuildProgress) -> str:
    out = io.StringIO()
    Console(file=out, width=100).print(progress.renderable())
    return out.getvalue().strip()


def test_what_is_compiled_and_how_long_the_rest_takes() -> None:
    clock = Clock()
    progress = BuildProgress(console=Console(file=io.StringIO()), clock=clock)
    progress.say("configuring")
    assert printed(progress) == "configuring"
    progress.compiling(1000)
    clock.now = 60.0
    progress.compiled(250)
    assert printed(progress) == "Compiling: 250 objects of about 1,000 · about 3 min left"


def test_no_number_is_promised_where_none_is_known() -> None:
    clock = Clock()
    progress = BuildProgress(console=Console(file=io.StringIO()), clock=clock)
    progress.compiling(None)
    clock.now = 9.0
    progress.compiled(1)
    assert printed(progress) == "Compiling: 1 object · 9 s"


def test_more_objects_than_were_expected_are_no_time_below_nothing() -> None:
    progress = BuildProgress(console=Console(file=io.StringIO()), clock=Clock())
    progress.compiling(10)
    progress.compiled(12)
    assert printed(progress) == "Compiling: 12 objects · 0 s"


def test_what_is_said_has_no_control_characters() -> None:
    progress = BuildProgress(console=Console(file=io.StringIO()))
    progress.say("laying out \x1b[31m/home/x")
    assert "\x1b" not in printed(progress)
