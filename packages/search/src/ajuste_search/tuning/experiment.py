"""A search as an experiment: its study resolved and prepared, with what makes its configurations."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ajuste.catalogue.loader import Catalogue
from ajuste.kernel.spec import kernel_kind
from ajuste.model.search import Search
from ajuste.run.testbed import Experiment, RunOptions, testbed_for
from ajuste.study.named import require_allowed
from ajuste.study.resolve import Resolver, resolver
from ajuste.study.resolved import ResolvedStudy
from ajuste.study.schema import Study
from ajuste_search.tuning.study import first_study, searched_study


@dataclass(frozen=True)
class SearchPreparation:
    """The preparation of a study for a ``search`` among the combinations of all levels."""

    search: Search

    def resolve(self, study: Study, catalogue: Catalogue, options: RunOptions) -> ResolvedStudy:
        """Return the study that the search begins with, on its kernels. Raises RequestError."""
        return first_study(self._resolver(study, catalogue, options), self.search)

    def prepare(self, study: Study, catalogue: Catalogue, options: RunOptions) -> Experiment:
        """Prepare as ``ajuste.run.experiment.prepare`` does. Raises RequestError."""
        require_allowed(study, options.rights.planning, catalogue, kernel_kind)
        made = self._resolver(study, catalogue, options)
        experiment = testbed_for(study, options).prepared(first_study(made, self.search), catalogue)
        return replace(experiment, resolver=made)

    def _resolver(self, study: Study, catalogue: Catalogue, options: RunOptions) -> Resolver:
        searched = searched_study(study, self.search, catalogue)
        return resolver(*testbed_for(study, options).surroundings(searched, catalogue))
