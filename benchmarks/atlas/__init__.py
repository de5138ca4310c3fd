"""Ask the same questions in a guest and on this machine: what ``ajuste transfer`` shows as the atlas.

``python -m benchmarks atlas`` asks all of ``questions.toml``, all guests first, and puts the answers into the atlas
that comes with the program. Its runs stay in ``target/atlas``, as bundles too; a guest that has answered is not asked
again. Guests take about half an hour on two CPUs, the machine itself as long, and then it should have no other work.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from ajuste_guest.transfer.answers import Atlas, agreement, merge_atlases, shipped_atlas
from benchmarks.comparison import Comparison
from benchmarks.place import share_fetched

ROOT: Final = Path(__file__).parents[2]
SHIPPED: Final = ROOT / "packages" / "guest" / "src" / "ajuste_guest" / "transfer" / "atlas.json"
PLACE: Final = ROOT / "target" / "atlas"
AJUSTE: Final = Path(sys.executable).with_name("ajuste")
CPUS: Final = min(os.cpu_count() or 1, 8)
SIDES: Final = {
    "guest": ("--kernel", "debian:6.12", "--topology", f"cores={CPUS}", "--blocks", "6..60", "--max-time", "10m"),
    "host": ("--max-time", "40s", "--wait", "10m", "--accept-risk"),  # some questions are about real-time policies
}
SIGNS: Final = frozenset({"priority", "scheduling policy", "affinity", "scheduler core", "the work itself"})
"""Kinds that ask who runs when, or how much work there is: a guest should have their signs."""


def measure() -> Iterator[Comparison]:
    share_fetched(PLACE / "cache")
    measured = [question for side in SIDES for question in questions() if _ask(question, side)]
    for question in (question for question in questions() if measured.count(question) == len(SIDES)):
        _ajuste("transfer", *(f"{question['name']}-{side}" for side in SIDES), "--add")
    atlas = Atlas.model_validate_json((PLACE / "data" / "atlas.json").read_text(encoding="utf-8"))
    SHIPPED.write_text(merge_atlases(shipped_atlas(), atlas).model_dump_json(indent=1) + "\n", encoding="utf-8")
    agreed = agreement("signs", [question for question in atlas.questions if question.kind in SIGNS])
    share = 100 * agreed.same / agreed.decided if agreed.decided else 0.0
    yield Comparison(
        name="atlas",
        what=f"signs of {agreed.decided} effects that guest and host both decided, of {agreed.questions}",
        unit="%",
        figures={"same sign": [share]},
        goal="90 % or more have the same sign where it is about who runs when or how much work there is",
        reached=share >= 90,
    )


def questions() -> list[dict[str, Any]]:
    """Return the questions of ``questions.toml``."""
    return list(tomllib.loads((Path(__file__).parent / "questions.toml").read_text(encoding="utf-8"))["question"])


def _ask(question: dict[str, Any], side: str) -> bool:
    """Return whether that side could be measured; why not is printed."""
    name = f"{question['name']}-{side}"
    guest_options = question.get("guest", []) if side == "guest" else []
    options = ("--name", name, "--min-effect", "5%", "--quiet", *SIDES[side], *guest_options)
    if not _ajuste("compare", *options, *question["words"]):
        return False
    bundle = PLACE / f"{name}.ajuste"
    bundle.unlink(missing_ok=True)
    return _ajuste("bundle", name, "-o", str(bundle))


def _ajuste(*words: str) -> bool:
    environment = {**os.environ, "AJUSTE_HOME": str(PLACE)}
    done = subprocess.run([AJUSTE, *words], capture_output=True, text=True, check=False, env=environment)
    printed = (done.stderr if done.returncode else done.stdout).strip().splitlines()
    print(f"{words[0]} {words[2] if words[0] == 'compare' else words[1]}: {printed[0] if printed else ''}", flush=True)
    return done.returncode == 0
