"""The suite that the profiles of a study's machine come from."""

from __future__ import annotations

import pytest

from ajuste_profiles.placement import suite_of_kernel


@pytest.mark.parametrize(
    ("kernel", "suite"),
    [
        ("debian:5.10", "bullseye"),
        ("debian:6.1/rt", "bookworm"),
        ("debian:6.12", "trixie"),
        ("path:/boot/vmlinuz", ""),
    ],
)
def test_profiles_are_of_the_distribution_that_a_kernel_is_from(kernel: str, suite: str) -> None:
    assert suite_of_kernel(kernel) == suite
