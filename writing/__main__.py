"""``python -m writing`` writes the generated pages and shortens the list of files that are not clean yet.

``python -m writing picture`` draws the picture of a terminal: it carries out a command.
"""

from __future__ import annotations

import sys

from writing.generated import ROOT, pages
from writing.prose import shrink
from writing.terminal import draw


def main(words: list[str]) -> int:
    """Write what the words ask for, and say which files changed."""
    if words == ["picture"]:
        print(draw().relative_to(ROOT))
        return 0
    if words:
        print("usage: python -m writing [picture]", file=sys.stderr)
        return 2
    for path, text in pages().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(path.relative_to(ROOT))
    shrink()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
