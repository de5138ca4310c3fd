"""The list of runs in a terminal."""

from __future__ import annotations

import pytest

from ajuste.cli.listing import lines_of
from ajuste.store.head import Head


@pytest.fixture
def head() -> Head:
    return Head(
        id="20261126-223314-4d17ac",
        study="nice-share",
        fingerprint="",
        seed=1,
        created="2026-11-26T22:33:14+00:00",
        ajuste="",
        begun=0,
        taken_up=0,
        base="",
        deleted=False,
        stopped="decided",
        kernel="debian:5.10",
        workload="",
        answer="The share of the CPU follows the weights to within 0.37 % CPU. " + "More is said. " * 20,
        tags="pinned",
        size_bytes=5_000,
        trials=14,
        total=0,
        recorded=0,
        check=0,
    )


@pytest.mark.parametrize("width", [40, 80])
def test_a_terminal_shows_the_answer_of_a_run(head: Head, width: int) -> None:
    lines = lines_of(head, "before the upgrade", width)
    assert all(len(line) <= width for line in lines)
    assert lines[0].startswith("20261126-223314-4d17ac  nice-share")
    assert lines[1].startswith("  The share of the CPU follows")
    assert lines[-1] == "  note: before the upgrade"
    assert len(lines) == 4


def test_what_others_wrote_moves_no_cursor(head: Head) -> None:
    assert all(line.isprintable() for line in lines_of(head._replace(answer="a\x1b[2Jb"), "\x1b", 80))
