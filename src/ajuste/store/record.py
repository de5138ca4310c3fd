"""Record of a run in the store, as the analysis takes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from ajuste.analysis.digest import digest_in_order
from ajuste.model.error import RunError
from ajuste.model.measurements import Measurements, TrialMeasurements
from ajuste.model.trial import Trial
from ajuste.store.store import Run, Store


@dataclass(frozen=True)
class KeptRecord:
    """A record (see ``analysis.record``) of a run of which only the figures are in memory."""

    run: Run
    store: Store

    @cached_property
    def measurements(self) -> Measurements:
        return self.store.measurements(self.run)

    @property
    def digest(self) -> str:
        """Return the digest of the trials whose figures are shown, even while the run goes on. Of a run that
        ended it is computed once: that takes all that its programs printed.
        """
        stored = self.store.digest(self.run, len(self.measurements)) if self.run.stopped else None
        if stored is not None:
            return stored
        digest = digest_in_order(self._listed_trials())
        if self.run.stopped:
            with suppress(RunError):  # A store that can only be read can be shown as well.
                self.store.keep_digest(self.run, digest, len(self.measurements))
        return digest

    def _listed_trials(self) -> Iterator[TrialMeasurements]:
        measurements = self.measurements
        places = zip(
            measurements.block.tolist(), measurements.position.tolist(), measurements.attempt.tolist(), strict=True
        )
        wanted = next(places, None)
        for place, measured in self.store.each_measured(self.run):
            if place == wanted:
                yield measured
                wanted = next(places, None)
        if wanted is not None:
            raise RunError(f"trials of run {self.run.id} disappeared from the store {self.store.name}")

    def whole(self, rows: Sequence[int]) -> Sequence[Trial]:
        measurements = self.measurements
        return self.store.trials_at(
            self.run,
            [
                (int(measurements.block[row]), int(measurements.position[row]), int(measurements.attempt[row]))
                for row in rows
            ],
        )
