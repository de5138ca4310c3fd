"""Six published results, asked again in guests: the sign of each, and the mechanism that `ajuste why` finds. Writes the
table of docs/reference/published.md.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ajuste.model.wording import change
from benchmarks.comparison import Comparison
from benchmarks.verdicts.page import write

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "published.md"
_HERE: Final = Path(__file__).parent
_AJUSTE: Final = Path(sys.executable).parent / "ajuste"
_GIT: Final = "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git"


@dataclass(frozen=True)
class Claim:
    """A published result: ``metric`` of the second configuration is higher (1) or lower (-1).

    ``command`` asks for it, whose run is called ``name``; ``mechanism`` is what is published as its cause, and
    ``sentence`` a pattern of it in what ``ajuste why`` says.
    """

    name: str
    statement: str
    source: str
    link: str
    command: tuple[str, ...]
    metric: str
    sign: int
    mechanism: str
    sentence: str


CLAIMS: Final = (
    Claim(
        name="published-bbr",
        statement="Over 100 ms with 1 % loss BBR gets more than CUBIC (9,150 instead of 3.27 Mbit/s of 10 Gbit/s).",
        source="Cardwell, commit 0f8782ea1497",
        link=f"{_GIT}/commit/?id=0f8782ea1497",
        command=("run", "lossy.toml"),
        metric="received",
        sign=1,
        mechanism="it paces at the measured rate; losses do not reduce its window",
        sentence="pacing.*reductions of TCP's congestion window",
    ),
    Claim(
        name="published-rt-latency",
        statement="PREEMPT_RT shortens the longest wake-up of an urgent thread (idle: 11.2 instead of 19.7 µs).",
        source="Cerqueira and Brandenburg 2013",
        link="https://people.mpi-sws.org/~bbb/papers/",
        command=(
            *("compare", "--kernel", "debian:6.1/generic,debian:6.1/rt", "--blocks", "8"),
            *("--background", "hackbench groups=1 loops=100000 fds=1 size=8000 transport=pipes"),
            *("--metric", "cyclictest.max", "--", "cyclictest"),
            *("interval_us=1000", "loops=300", "policy=fifo", "histogram_us=2000"),
        ),
        metric="cyclictest.max",
        sign=-1,
        mechanism="spinning locks become sleeping ones, so the kernel is preempted while it holds them",
        sentence="sleeping locks taken instead of 0",
    ),
    Claim(
        name="published-rt-throughput",
        statement="PREEMPT_RT costs throughput: hackbench takes longer (4.8 instead of 3.9 s).",
        source="KernelTrap on 2.6.24.7-rt",
        link="http://kerneltrap.org/taxonomy/term/581",
        command=(
            *("compare", "--kernel", "debian:6.1/generic,debian:6.1/rt", "--blocks", "6"),
            *("--metric", "hackbench.time", "--", "hackbench", "groups=1", "loops=50"),
        ),
        metric="hackbench.time",
        sign=1,
        mechanism="sleeping locks and the switches at them",
        sentence="sleeping locks taken instead of 0",
    ),
    Claim(
        name="published-thp",
        statement="Huge pages make random accesses to a large memory faster.",
        source="Linux: Transparent Hugepage Support",
        link="https://docs.kernel.org/admin-guide/mm/transhuge.html",
        command=(
            *("compare", "--kernel", "debian:6.12", "--set", "thp.enabled=never,always", "--machine", "zen4-8c"),
            *("--file", "chase", "--metric", "modelled-time", "--blocks", "6", "--", "./chase", "32", "1000000"),
        ),
        metric="modelled-time",
        sign=-1,
        mechanism="fewer TLB misses, and each is cheaper",
        sentence="its TLBs",
    ),
    Claim(
        name="published-hz",
        statement="A higher timer frequency costs computations time.",
        source="Linux: kernel/Kconfig.hz",
        link=f"{_GIT}/tree/kernel/Kconfig.hz",
        command=(
            *("compare", "--kernel", "build:debian:6.1+HZ_100=y,build:debian:6.1+HZ_1000=y", "--min-effect", "0.1%"),
            *("--metric", "elapsed", "--blocks", "8", "--", "matrix", "size=100", "repetitions=100"),
        ),
        metric="elapsed",
        sign=1,
        mechanism="more timer interrupts",
        sentence="timer_interrupt .interrupt.: .* instead of",
    ),
    Claim(
        name="published-slice",
        statement="A longer base slice means fewer switches among tasks that compute (2,284 at 32 ms, 10,342 at 3 ms).",
        source="Chaurasiya, commit a26979377bf3",
        link=f"{_GIT}/commit/?id=a26979377bf3",
        command=(
            *("compare", "--kernel", "debian:6.12", "--set", "base_slice_ns=3ms,32ms", "--background", "3x spin"),
            *("--metric", "context-switches", "--blocks", "8", "--", "matrix", "size=100", "repetitions=30"),
        ),
        metric="context-switches",
        sign=-1,
        mechanism="a task runs until its longer slice has expired",
        sentence="a run lasts .* instead of",
    ),
)


@dataclass(frozen=True)
class Answer:
    """The finding of Ajuste: means of both configurations, the ``verdict`` and the ``mechanism``; empty where it finds
    none.
    """

    claim: Claim
    unit: str
    means: Mapping[str, float]
    verdict: Mapping[str, Any]
    mechanism: str

    @property
    def sign(self) -> int:
        """Return 1 for higher and -1 for lower for certain, otherwise 0."""
        none = 1.0 if self.verdict["scale"] == "ratio" else 0.0
        low, high = self.verdict["low"], self.verdict["high"]
        return int(low is not None and low > none) - int(high is not None and high < none)

    @property
    def effect(self) -> str:
        """Return the effect with its interval."""
        scale, unit = self.verdict["scale"], self.verdict["unit"]
        ends = [change(self.verdict[end], scale, unit) for end in ("low", "high") if self.verdict[end] is not None]
        return f"{change(self.verdict['estimate'], scale, unit)} ({' to '.join(ends) or 'unknown'})"

    @property
    def outcome(self) -> str:
        """Return whether sign and mechanism are those that are published."""
        if self.sign != self.claim.sign:
            return "misses: " + (f"{self.verdict['verdict']}" if not self.sign else "the other sign")
        return "agrees" if self.mechanism else "agrees in the sign; `why` does not name the mechanism"


def measure() -> Iterator[Comparison]:
    """Ask all six, in about fifteen minutes where both kernels of HZ are built, and write the page."""
    answers = []
    with tempfile.TemporaryDirectory() as directory:
        for name in ("lossy.toml", "lossy.sh"):
            shutil.copy(_HERE / name, directory)
        source = _HERE / "chase.c"
        subprocess.run(["gcc", "-O1", "-static", "-o", Path(directory, "chase"), source], check=True)
        for claim in CLAIMS:
            answers.append(answer := _answer(claim, Path(directory)))
            yield Comparison(
                name=claim.name,
                what=claim.statement,
                unit=answer.unit,
                figures={name: [mean] for name, mean in answer.means.items()},
                goal=f"{_sign(claim.sign)}; found {answer.effect}: {answer.outcome}",
                reached=answer.outcome == "agrees",
            )
    write(table(answers), PAGE, "published")


def _answer(claim: Claim, directory: Path) -> Answer:
    command, *words = claim.command
    named = ["--name", claim.name] if command == "compare" else []
    results = _json(command, *named, "--quiet", "--json", *words, directory=directory)
    explanation = _json("why", claim.name, "--json", directory=directory)
    return answer_of(claim, results, explanation)


def answer_of(claim: Claim, results: Mapping[str, Any], explanation: Mapping[str, Any]) -> Answer:
    """Return the answer that the documents of ``ajuste compare`` and ``ajuste why`` have."""
    verdict = next(verdict for verdict in results["verdicts"] if verdict["metric"] == claim.metric)
    costs = explanation.get("costs") or {}
    parts = (explanation, costs, costs.get("modelled") or {})
    sentences = [sentence for part in parts for sentence in part.get("sentences", ())]
    return Answer(
        claim,
        verdict["unit"],
        {each["name"]: each["metrics"][claim.metric]["mean"] for each in results["configurations"]},
        verdict,
        next((sentence for sentence in sentences if re.search(claim.sentence, sentence)), ""),
    )


def _json(*words: str, directory: Path) -> Any:
    done = subprocess.run([_AJUSTE, *words], cwd=directory, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"ajuste {' '.join(words)} failed with exit code {done.returncode}")
    return json.loads(done.stdout)


def _sign(sign: int) -> str:
    return "higher" if sign > 0 else "lower"


def table(answers: list[Answer]) -> str:
    """Return the answers as Markdown: one table, then the command of each."""
    heads = ("claim", "metric", "expected", "found", "mechanism expected", "mechanism that `why` names", "outcome")
    rows = [
        (
            f"{answer.claim.statement} [{answer.claim.source}]({answer.claim.link})",
            f"`{answer.claim.metric}`",
            _sign(answer.claim.sign),
            answer.effect,
            answer.claim.mechanism,
            answer.mechanism or "–",
            answer.outcome,
        )
        for answer in answers
    ]
    lines = [heads, ("---",) * len(heads), *rows]
    agreeing = sum(answer.outcome == "agrees" for answer in answers)
    commands = "\n".join(_command(answer.claim) for answer in answers)
    return "\n".join(
        (
            f"{agreeing} of {len(answers)} agree in sign and mechanism. Intervals are of 95 %.\n",
            *(f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in lines),
            f"\n```text\n{commands}\n```",
        )
    )


def _command(claim: Claim) -> str:
    words = [word if re.fullmatch(r"[\w./:=,+%-]+", word) else f"'{word}'" for word in claim.command]
    return f"ajuste {' '.join(words)}"
