"""The schedule of an ablation: different sets of a profile's lines in each block."""

from __future__ import annotations

from collections.abc import Sequence

from ajuste.analysis.pairs import clean_trials
from ajuste.model.trial import Trial
from ajuste.model.verdict import Finding
from ajuste.run.schedule import FixedSchedule
from ajuste.study.factors import profile_lines
from ajuste.study.resolved import ResolvedStudy
from ajuste_search.ablation.results import ablation_rates, undisputed_lines
from ajuste_stats.subsets import of_block, subsets


class AblationSchedule(FixedSchedule):
    """Schedules different sets of a profile's lines in each block."""

    def roster(self, number: int) -> tuple[tuple[str, ...], int]:
        return ablation_names(self.study, number), number

    def compute_findings(self, trials: Sequence[Trial]) -> tuple[Finding, ...]:
        return undisputed_lines(self.study, clean_trials(trials), self.history.machines)

    @property
    def correction(self) -> str:  # type: ignore[override]
        return ablation_rates(self.study).words


def ablation_names(resolved: ResolvedStudy, block: int) -> tuple[str, ...]:
    """Return the names of the configurations that a block holds: ``resolved`` has them in the order of ``subsets``."""
    lines = len(profile_lines(resolved.study))
    names = dict(zip(subsets(lines), resolved.names, strict=True))
    return tuple(names[subset] for subset in of_block(lines, block))
