"""Carrying out one step's study: in the store, with a display while it runs and a report when it is done."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ajuste.catalogue.loader import Catalogue
from ajuste.experiment import Means, conduct, prepare
from ajuste.kernel.bisect.session import Measured
from ajuste.model.error import RunError
from ajuste.outcome import results_of
from ajuste.report.html import write_report
from ajuste.report.progress import Progress
from ajuste.store.store import Store
from ajuste.study.measures import measures
from ajuste.study.schema import Study


@dataclass(frozen=True)
class Measuring:
    """``named`` is the command of the bisection as it was typed. What is in the store is not measured again."""

    catalogue: Catalogue
    means: Means
    named: str
    quiet: bool = False

    def __call__(self, study: Study) -> Measured:
        """Raises RequestError for a kernel that does not boot or a study that it cannot carry out, RunError where
        measuring failed.
        """
        budget = study.budget
        metric = measures(study, self.catalogue).deciding[0]
        with Progress(
            min_blocks=budget.min_blocks,
            max_blocks=budget.max_blocks,
            max_seconds=60 * budget.max_minutes,
            metric=metric,
            quiet=self.quiet,
        ) as progress:
            means = replace(self.means, say=progress.say)
            experiment = prepare(study, self.catalogue, means)
            with Store(means.home.store_url) as store:
                run = conduct(experiment, store, progress, means, named=self.named)
                results = results_of(run, store)
        if run.stopped == "failed":
            raise RunError(f"the study failed: {run.stopped_because}")
        found = next((one for one in results.verdicts if one.metric == metric.name), None)
        if found is None:
            raise RunError(f"nothing could be said of {metric.name}: {run.stopped_because}")
        report = means.home.reports / f"{run.id}.html"
        write_report(results, report)
        return Measured(found, run.id, str(report))
