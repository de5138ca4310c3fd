from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import pytest

from ajuste.model.error import RequestError
from ajuste.study.command_line.request import block_range, mebibytes, seconds, share

READERS: Mapping[str, Callable[[str], object]] = {
    "--min-effect": partial(share, "--min-effect"),
    "--budget": partial(seconds, "--budget"),
    "--memory": mebibytes,
    "--blocks": block_range,
}


@pytest.mark.parametrize(
    ("option", "text", "value"),
    [
        ("--min-effect", "1%", 0.01),
        ("--min-effect", "0.5 %", 0.005),
        ("--min-effect", "0.02", 0.02),
        ("--budget", "5m", 300),
        ("--budget", "90s", 90),
        ("--budget", "90", 90),
        ("--budget", "1.5h", 5400),
        ("--budget", "250ms", 0.25),
        ("--memory", "512", 512),
        ("--memory", "2GiB", 2048),
        ("--blocks", "20", (20, 20)),
        ("--blocks", "5..100", (5, 100)),
    ],
)
def test_amounts_are_read_as_people_write_them(option: str, text: str, value: object) -> None:
    assert READERS[option](text) == pytest.approx(value)


@pytest.mark.parametrize(
    ("option", "text", "expected"),
    [
        ("--min-effect", "one", "a share such as 1% or 0.01"),
        ("--min-effect", "-1%", "a share"),
        ("--budget", "5 years", "a duration such as 90s, 5m or 1h"),
        ("--budget", "0", "a duration"),
        ("--memory", "1 kg", "a size such as 512MiB or 2GiB"),
        ("--blocks", "0", "a number of blocks such as 20"),
        ("--blocks", "9..3", "a range such as 5..100"),
        ("--blocks", "3..", "a range"),
    ],
)
def test_anything_else_is_refused_with_the_option(option: str, text: str, expected: str) -> None:
    with pytest.raises(RequestError, match=expected) as caught:
        READERS[option](text)
    assert str(caught.value).startswith(f"{option} {text}: ")
