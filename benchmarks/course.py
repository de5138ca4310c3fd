"""A class whose hand-ins are honest, and 20 that are not: who is accused, and what marking takes.

``python -m benchmarks.course --students 60 --honest 200``; of ``python -m benchmarks course`` are the same figures.
Hand-ins are measured in this process on the light sheet of the tests, two configurations in three blocks each. The
cheats are planted with Ajuste's own library: as files they are valid, with all digests and checksums computed anew.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from packages.course.tests.cheating import CHEATS, DOUBTS, Cheat, Classroom, classroom, hand_in
from rich.console import Console

from ajuste.catalogue.loader import catalogue
from ajuste.machine.home import Home, home
from ajuste_course.marking import Marked, Marking, mark_all
from ajuste_course.progress import MarkingDisplay
from ajuste_course.student import ways
from benchmarks.comparison import Comparison, show

STUDENTS: Final = 60
HONEST: Final = 200
PLANTED: Final = 20
SAMPLE: Final = 4
MOST_SECONDS: Final = 10.0
"""Seconds that marking a hand-in may take, with its sample."""


def measure(students: int = STUDENTS, honest: int = HONEST) -> Iterator[Comparison]:
    with TemporaryDirectory(prefix="ajuste-course-benchmark-") as directory:
        root = Path(directory)
        room = classroom(Home(root / "data", home().cache, root / "state"))
        first = students_of(room, root, honest)
        begin = time.monotonic()
        marked = _marked(room, first[:students])
        seconds = (time.monotonic() - begin) / len(marked)
        marked += _marked(room, first[students:])
        full = room.sheet.points - 1  # a person marks the text
        figures = {
            "accused": sum(each.decision == "not accepted" for each in marked),
            "with a remark": sum(each.decision == "look" for each in marked),
            "with all points": sum(each.points == full for each in marked),
        }
        yield Comparison(
            name="course-honest",
            what=f"{len(marked)} honest hand-ins, with {ways(room.sheet)} ways of values",
            unit="hand-ins",
            figures={name: [float(count)] for name, count in figures.items()},
            goal="none is accused or has a remark, and all have all points",
            reached=figures == {"accused": 0, "with a remark": 0, "with all points": len(marked)},
        )
        yield Comparison(
            name="course-marking",
            what=f"marking {min(students, len(first))} hand-ins, {SAMPLE} of 6 trials of each measured again",
            unit="s",
            figures={"a hand-in": [seconds], f"{STUDENTS} hand-ins": [seconds * STUDENTS]},
            goal=f"at most {MOST_SECONDS:g} s for a hand-in",
            reached=seconds <= MOST_SECONDS,
        )
        yield _planted(room, root, "course-cheats", list(islice(cycle(CHEATS.items()), PLANTED)), "not accepted")
        yield _planted(room, root, "course-doubts", list(DOUBTS.items()), "look")


def students_of(room: Classroom, root: Path, count: int) -> list[Path]:
    """Return the hand-ins of honest students, whose predictions differ."""
    generator = random.Random(1)
    files = []
    for number in range(1, count + 1):
        direction = generator.choice(("rises", "falls", "falls", "same"))
        size = f"{generator.randint(5, 95)}%"
        files.append(hand_in(room.honest(f"{number:07}", direction=direction, size=size), root / f"{number}.ajuste"))
    return files


def _planted(
    room: Classroom, root: Path, name: str, cheats: Sequence[tuple[str, tuple[Cheat, str]]], decision: str
) -> Comparison:
    figures: dict[str, list[float]] = {}
    for number, (kind, (cheat, words)) in enumerate(cheats):
        file = cheat(room, f"{9_000_000 + 2 * number}", f"{9_000_001 + 2 * number}", root / f"{name}-{number}.ajuste")
        (marked,) = _marked(room, [file])
        as_expected = marked.decision == decision and any(words in finding.text for finding in marked.findings)
        figures.setdefault(kind, []).append(float(as_expected))
    return Comparison(
        name=name,
        what=f"{sum(map(sum, figures.values())):g} of {len(cheats)} are {decision}, with their reason",
        unit="",
        figures=figures,
        goal=f"all are {decision}, with their reason",
        reached=all(map(all, figures.values())),
    )


def _marked(room: Classroom, files: Sequence[Path]) -> list[Marked]:
    marking = Marking(sample=SAMPLE, generator=random.Random(1))
    with MarkingDisplay(len(files), quiet=True) as display:
        return mark_all(room.sheet, files, marking, catalogue(), room.options, display, lambda _: None)


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--students", type=int, default=STUDENTS, help="hand-ins of which marking is timed")
    parser.add_argument("--honest", type=int, default=HONEST, help="honest hand-ins")
    options = parser.parse_args()
    reached = True
    for comparison in measure(options.students, options.honest):
        show(comparison, Console())
        reached = reached and comparison.reached
    return 0 if reached else 1


if __name__ == "__main__":
    raise SystemExit(main())
