"""Text of a run on a page: the answer, its pictures, the command, and the figures folded below."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.gallery.pages import IMAGES

_COUNTS: Final = re.compile(r"[\d,]+ configurations? · ")  # the line after the answers
_AJUSTE: Final = Path(sys.executable).parent / "ajuste"


def of_run(
    run: str, command: str, name: str, metrics: Sequence[str], pictures: Sequence[str], home: Path | None = None
) -> str:
    """A run of the store below ``home`` as Markdown, with the block ``command``. The files of its ``pictures`` begin
    with ``name``.
    """
    with tempfile.TemporaryDirectory() as folder:
        markdown, drawings = Path(folder) / "found.md", Path(folder) / "pictures"
        wanted = [word for metric in metrics for word in ("--metric", metric)]
        drawn = ["--pictures", str(drawings)] if pictures else []
        ajuste("report", run, "--markdown", str(markdown), *wanted, *drawn, home=home)
        links = []
        for picture in pictures:
            drawing = drawings / f"{picture}.svg"
            if not drawing.is_file():
                there = ", ".join(sorted(path.stem for path in drawings.iterdir()))
                raise SystemExit(f"{name} has no picture {picture}; there are {there}")
            image = f"{name}-{picture}.svg"
            (IMAGES / image).write_bytes(drawing.read_bytes())
            links.append(f"![{picture.replace('-', ' ')}](images/{image})")
        _question, *parts = markdown.read_text(encoding="utf-8").split("\n\n")  # The page asks it above.
        end = next(number for number, part in enumerate(parts) if _COUNTS.match(part))
        return "\n\n".join([*parts[:end], *links, command, _folded("\n\n".join(parts[end:]))])


def _folded(figures: str) -> str:
    """Fold all but the answer, for those who want the figures."""
    return f'<details markdown="1"><summary>Figures, verdicts and method</summary>\n\n{figures.strip()}\n\n</details>\n'


def ajuste(*words: str, home: Path | None = None) -> str:
    """Return what `ajuste` prints, with the store below ``home``."""
    environment = None if home is None else {**os.environ, "AJUSTE_HOME": str(home)}
    done = subprocess.run([_AJUSTE, *words], stdout=subprocess.PIPE, text=True, check=False, env=environment)
    if done.returncode != 0:
        raise SystemExit(f"ajuste {' '.join(words)}: exit code {done.returncode}")
    return done.stdout
