"""The program that searches lines for patterns (see ``outputs.pattern``). It knows nothing of Ajuste.

Each line of its standard input is a request as JSON; a line of its standard output has the last match of each pattern
and what follows it, or null; to find ``each``, all of its matches; to find ``any``, the lines that have one. A search
that takes more than the request's ``seconds`` of processor time ends the program (SIGPROF), and so does the end of its
input.
"""

from __future__ import annotations

import json
import re
import resource
import signal
import sys
from typing import Any


def main() -> None:
    """Answer one request after another."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for line in sys.stdin.buffer:
        request = json.loads(line)
        signal.setitimer(signal.ITIMER_PROF, request["seconds"])
        reply = answer(request)
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


def answer(request: dict[str, Any]) -> list[Any]:
    """Return what the patterns of ``request`` match in its streams."""
    lines = {
        name: [line[: request["longest"]] for line in text.split("\n")] for name, text in request["streams"].items()
    }
    find = {"last": last, "each": each, "any": lines_with}[request.get("find", "last")]
    return [find(re.compile(pattern), lines.get(stream, [])) for pattern, stream in request["patterns"]]


def last(pattern: re.Pattern[str], lines: list[str]) -> tuple[str, str] | None:
    """Return the first group of the last line in which it is not empty, and the text that follows it."""
    for line in reversed(lines):
        match = pattern.search(line)
        if match is not None and match[1]:
            return match[1], line[match.end(1) :]
    return None


def each(pattern: re.Pattern[str], lines: list[str]) -> list[str]:
    """Return the first group of each line in which it is not empty."""
    return [match[1] for line in lines if (match := pattern.search(line)) and match[1]]


def lines_with(pattern: re.Pattern[str], lines: list[str]) -> list[str]:
    """Return each line that matches."""
    return list(filter(pattern.search, lines))


if __name__ == "__main__":
    main()
