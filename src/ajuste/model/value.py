"""Values of tunables as the kernel shows them."""

from __future__ import annotations


def same_value(one: str, other: str) -> bool:
    """Whether two texts are one value to the kernel: blanks and the way that numbers are written do not matter."""
    return _normalised(one) == _normalised(other)


def _normalised(text: str) -> list[str | int]:
    words: list[str | int] = []
    for word in text.split():
        try:
            words.append(int(word, 0) if word.lower().startswith("0x") else int(word))
        except ValueError:
            # A mask of CPUs is shown without leading zeros.
            words.append({"Y": 1, "N": 0}.get(word, word.lstrip("0,")))
    return words
