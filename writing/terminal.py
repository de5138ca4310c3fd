"""The picture of a terminal in the README: what a real command prints there, as SVG."""

from __future__ import annotations

import io
import os
import pty
import re
import select
import subprocess
import sys
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

PICTURE: Final = Path(__file__).resolve().parent.parent / "docs" / "images" / "terminal.svg"
COMMAND: Final = "ajuste compare --kernel debian:5.10 --nice 0,10 --background spin -- matrix size=100 repetitions=2"
WIDTH: Final = 90
LINES: Final = 7
"""Number of printed lines that the picture shows."""


def draw() -> Path:
    """Carry out COMMAND, and draw the first LINES of what it prints."""
    text = Text.from_ansi(_printed())
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    console.print(Text(f"$ {COMMAND}", style="bold"))
    for line in text.split("\n")[:LINES]:
        console.print(line)
    svg = console.export_svg(title="ajuste", theme=MONOKAI, unique_id="terminal")
    # The fonts that rich would fetch from a server: a viewer's own are as good.
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL).replace("Fira Code", "DejaVu Sans Mono")
    PICTURE.write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n", encoding="utf-8")
    return PICTURE


def _printed() -> str:
    """Return what COMMAND prints on a terminal of WIDTH columns, without what it shows while it runs."""
    ours, theirs = pty.openpty()
    environment = {
        **os.environ,
        "COLUMNS": str(WIDTH),
        "TERM": "xterm-256color",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    program, command, *others = COMMAND.split()
    arguments = [program, command, "--quiet", *others]
    with subprocess.Popen(arguments, stdout=theirs, stderr=subprocess.DEVNULL, env=environment) as process:
        os.close(theirs)
        printed = b""
        while select.select([ours], [], [])[0]:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            printed += piece
    os.close(ours)
    if process.returncode:
        raise SystemExit(f"{COMMAND}: exit code {process.returncode}")
    return printed.decode().replace("\r\n", "\n").strip("\n")
