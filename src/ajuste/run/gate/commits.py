"""The commit that a regression came with: a bisection over the commits between two revisions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ajuste.design.bisection import Outcome, confidence_of_each, culprits, next_candidate, steps_needed
from ajuste.model.error import AjusteError, RunError
from ajuste.model.gate import GateRevision, ProjectCommit
from ajuste.model.verdict import LimitWord
from ajuste.run.gate.bench import RevisionBench
from ajuste.study.project import CONFIDENCE, SIDES, BenchmarkTable

_OUTCOMES: Final[dict[LimitWord, Outcome]] = {"beyond": "there", "within": "absent", "undecided": "undecided"}


@dataclass(frozen=True)
class CommitSearch:
    """Where ``metric`` of ``benchmark`` first lies beyond its limit, of the commits after ``base`` up to ``head``.

    Each is compared with the base, side by side as a gate does, and all of the tests hold together.
    """

    base: GateRevision
    head: GateRevision
    benchmark: BenchmarkTable
    metric: str
    bench: RevisionBench

    def carry_out(self) -> tuple[ProjectCommit, ...]:
        """One of these made it: a single one, unless some could not be told. Raises RunError where it was none of the
        head's commits: the base became better after the two parted.
        """
        repository, base, head = self.bench.request.repository, self.base.commit, self.head.commit
        parting = ProjectCommit(commit=repository.parting(base, head))
        parted = (parting,) if parting.commit not in ("", base) else ()
        own = (ProjectCommit(commit=""),) if not self.head.revision and repository.is_changed() else ()
        line = (ProjectCommit(commit=base), *parted, *repository.commits(f"{base}..{head}"), *own)
        tests = steps_needed(len(line))
        outcomes: dict[int, Outcome] = {}
        while (place := next_candidate(len(line), outcomes)) is not None:
            of_about = f"test {len(outcomes) + 1} of about {max(tests, len(outcomes) + 1)}"
            self.bench.request.options.say(f"testing {line[place].short} ({of_about})")
            outcomes[place] = self._test(line[place], confidence_of_each(CONFIDENCE, tests))
        found = tuple(line[place] for place in culprits(len(line), outcomes))
        if found[0] == parting:
            raise RunError(
                f"{parting.short}, where base and head part, is beyond the limit already: the base got better"
            )
        return found

    def _test(self, commit: ProjectCommit, confidence: float) -> Outcome:
        try:
            self.bench.switch(SIDES[1], GateRevision(revision=commit.short, commit=commit.commit))
            self.bench.prepare(self.benchmark, SIDES[1])
            study = self.bench.study(self.benchmark, confidence)
            results, _ = self.bench.measure(study, self.benchmark)
        except AjusteError:
            return "unusable"
        own = next(one for one in results.verdicts if one.deciding and one.metric == self.metric)
        return _OUTCOMES[own.against_limit or "undecided"]
