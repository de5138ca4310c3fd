"""``python -m writing`` writes the generated pages and shortens the list of files that are not clean yet.

``python -m writing share`` writes man pages and completion scripts to target/share, for packages.
``python -m writing map`` prints the packages with their lines and imports.
``python -m writing picture`` draws the picture of a terminal: it carries out a command.
"""

from __future__ import annotations

import sys

from writing import command_line
from writing.generated import ROOT, pages
from writing.manual import write_share
from writing.map import workspace_map
from writing.prose import shrink
from writing.terminal import draw


def main(words: list[str]) -> int:
    """Write what the words ask for, and say which files changed."""
    if words == ["picture"]:
        print(draw().relative_to(ROOT))
        return 0
    if words == ["map"]:
        print(workspace_map())
        return 0
    if words == ["share"]:
        write_share()
        return 0
    if words:
        print("usage: python -m writing [map|picture|share]", file=sys.stderr)
        return 2
    for path, text in (pages() | command_line.pages()).items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(path.relative_to(ROOT))
    shrink()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
