"""Ask the same questions in a guest and on this machine: what `ajuste transfer` shows as the atlas.

``python -m benchmarks atlas`` asks all of ``questions.toml`` and puts the answers into the atlas that comes with the
program; runs stay as bundles in ``target/atlas``. It takes about an hour and should have the machine to itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from ajuste.analysis.atlas import Atlas, agreement, joined, shipped_atlas
from benchmarks.comparison import Comparison
from benchmarks.place import own_home

ROOT: Final = Path(__file__).parents[2]
SHIPPED: Final = ROOT / "src" / "ajuste" / "catalogue" / "atlas.json"
BUNDLES: Final = ROOT / "target" / "atlas"
AJUSTE: Final = Path(sys.executable).with_name("ajuste")
KERNEL: Final = "debian:6.12"
SIZES: Final = frozenset({"priority", "scheduling policy", "affinity", "scheduler core", "the work itself"})
"""Kinds that ask who runs when, or how much work there is: a guest should have their signs."""


def questions() -> list[dict[str, Any]]:
    return list(tomllib.loads((Path(__file__).parent / "questions.toml").read_text(encoding="utf-8"))["question"])


def measure(names: tuple[str, ...] = ()) -> Iterator[Comparison]:
    BUNDLES.mkdir(parents=True, exist_ok=True)
    with own_home() as place:
        for question in questions():
            if not names or question["name"] in names:
                ask(question, {**os.environ, "AJUSTE_HOME": str(place.data.parent)})
        found = Atlas.model_validate_json((place.data / "atlas.json").read_text(encoding="utf-8"))
    atlas = joined(shipped_atlas(), found)
    SHIPPED.write_text(atlas.model_dump_json(indent=1) + "\n", encoding="utf-8")
    own = agreement("signs", [one for one in found.questions if one.kind in SIZES])
    share = 100 * own.same / own.decided if own.decided else 0.0
    yield Comparison(
        name="atlas",
        what=f"signs of {own.decided} effects that guest and host both decided, of {own.questions}",
        unit="%",
        figures={"same sign": [share]},
        goal="90 % or more of the same sign where it is about who runs when or how much work there is",
        reached=share >= 90,
    )


def ask(question: dict[str, Any], environment: dict[str, str]) -> None:
    """Measure one question in both; one that cannot be measured here is said and left out."""
    name, words = question["name"], question["words"]
    print(name, flush=True)

    def ajuste(*words: str) -> bool:
        done = subprocess.run([AJUSTE, *words], capture_output=True, text=True, check=False, env=environment)
        printed = (done.stderr if done.returncode else done.stdout).strip()
        print(f"  {printed.splitlines()[0]}" if printed else f"  {words[0]}", flush=True)
        return done.returncode == 0

    sides = {
        "guest": ["--kernel", KERNEL, *question.get("guest", []), "--max-time", "3m", "--blocks", "6..60"],
        "host": ["--max-time", "45s", "--wait", "10m"],
    }
    for side, more in sides.items():
        options = ["--name", f"{name}-{side}", "--min-effect", "5%", "--quiet", *more]
        if not ajuste("compare", *options, *words):
            return
        ajuste("bundle", f"{name}-{side}", "-o", str(BUNDLES / f"{name}-{side}.ajuste"))
    ajuste("transfer", f"{name}-guest", f"{name}-host", "--add")
