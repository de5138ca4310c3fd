from __future__ import annotations

import pytest

from ajuste.outputs.base import ParseError
from ajuste_programs.compute import parse_glxgears


def test_the_rate_is_all_frames_by_all_time() -> None:
    lines = "300 frames in 5.0 seconds = 60.000 FPS\n1000 frames in 10.0 seconds = 100.000 FPS\n"
    assert parse_glxgears(lines)["glxgears.rate"] == pytest.approx(1300 / 15)


def test_what_mesa_says_beside_it_does_not_matter() -> None:
    output = "Running synchronized to the vertical refresh.\n2508 frames in 5.0 seconds = 501.541 FPS\nGL_VENDOR = x\n"
    assert parse_glxgears(output)["glxgears.rate"] == pytest.approx(501.541)


@pytest.mark.parametrize(
    "output",
    [
        "",
        "Error: couldn't open display\n",
        "frames in 5.0 seconds = 501.541 FPS",
        "0 frames in 5.0 seconds = 0.000 FPS",
        "2508 frames in 5.0 seconds = nan FPS",
        "-1 frames in 5.0 seconds = 501.541 FPS",
        "9" * 400 + " frames in 5.0 seconds = 501.541 FPS",
    ],
)
def test_what_is_no_such_output_is_refused(output: str) -> None:
    with pytest.raises(ParseError):
        parse_glxgears(output)
