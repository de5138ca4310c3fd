from __future__ import annotations

from ajuste_live.conduct import is_estimated_after


def test_the_wash_out_is_estimated_again_as_more_blocks_are_seen() -> None:
    assert [blocks for blocks in range(1, 100) if is_estimated_after(blocks)] == [5, 10, 20, 40, 80]
