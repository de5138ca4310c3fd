from __future__ import annotations

from collections.abc import Callable

import pytest

from ajuste.model.error import RequestError
from ajuste.study.command_line.request import block_range, mebibytes, seconds, share


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (share, "1%", 0.01),
        (share, "0.5 %", 0.005),
        (share, "0.02", 0.02),
        (share, "500%", 5),
        (seconds, "5m", 300),
        (seconds, "90s", 90),
        (seconds, "90", 90),
        (seconds, "1.5h", 5400),
        (seconds, "2d", 172_800),
        (seconds, "250ms", 0.25),
        (mebibytes, "512", 512),
        (mebibytes, "2GiB", 2048),
        (block_range, "20", (20, 20)),
        (block_range, "5..100", (5, 100)),
    ],
)
def test_amounts_are_read_as_people_write_them(read: Callable[[str, str], object], text: str, value: object) -> None:
    assert read("--option", text) == pytest.approx(value)


@pytest.mark.parametrize(
    ("read", "text", "expected"),
    [
        (share, "one", "a share such as 1% or 0.01"),
        (share, "-1%", "a share"),
        (share, "5", "a percentage"),
        (share, "1.0", "a percentage"),
        (seconds, "5 years", "a duration such as 90s, 5m or 1h"),
        (seconds, "0", "a duration"),
        (mebibytes, "1 kg", "a size such as 512MiB or 2GiB"),
        (block_range, "0", "a number of blocks such as 20"),
        (block_range, "9..3", "a range such as 5..100"),
        (block_range, "3..", "a range"),
    ],
)
def test_anything_else_is_refused_with_the_option(read: Callable[[str, str], object], text: str, expected: str) -> None:
    with pytest.raises(RequestError, match=expected) as caught:
        read("--option", text)
    assert str(caught.value).startswith(f"--option {text}: ")


def test_a_bare_number_is_not_taken_as_hundreds_of_percent() -> None:
    with pytest.raises(RequestError) as caught:
        share("--min-effect", "5")
    assert caught.value.hint == "write 5%"
