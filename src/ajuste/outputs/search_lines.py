"""The program that searches lines for patterns (see ``outputs.pattern``). It knows nothing of Ajuste.

``search_lines.py SECONDS``, with a request as JSON on its standard input; the last match of each pattern, or null, goes
to its standard output. The kernel ends it after SECONDS of processor time.
"""

from __future__ import annotations

import json
import re
import resource
import sys


def main() -> None:
    """Search the lines of standard input, within so many seconds of CPU time."""
    seconds = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    request = json.load(sys.stdin)
    lines = {
        name: [line[: request["longest"]] for line in text.split("\n")] for name, text in request["streams"].items()
    }
    found = [last(re.compile(pattern), lines.get(stream, [])) for pattern, stream in request["patterns"]]
    json.dump(found, sys.stdout)


def last(pattern: re.Pattern[str], lines: list[str]) -> str | None:
    """The first group of the last line that matches."""
    for line in reversed(lines):
        match = pattern.search(line)
        if match is not None and match[1] is not None:
            return match[1]
    return None


if __name__ == "__main__":
    main()
