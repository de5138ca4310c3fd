"""The testbeds of a cluster: its machines as they are, and guests on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ajuste.catalogue.loader import Catalogue
from ajuste.executor.executor import Executor
from ajuste.machine.files import file_sha256
from ajuste.machine.home import AGENT, ajuste_version, native_program
from ajuste.model.base import BaseModel
from ajuste.model.error import RequestError
from ajuste.model.wording import Say
from ajuste.run.machine_order import MachineOrder
from ajuste.run.relevance import ActivityObserver
from ajuste.run.testbed import Experiment, HostTestbed, RunOptions, file_marks
from ajuste.study.resolved import Machine, ResolvedStudy, fingerprint
from ajuste.study.site import study_directory
from ajuste_fleet.cluster.connection import Connection
from ajuste_fleet.cluster.coordinator import BenchExecutor, ClusterExecutor
from ajuste_fleet.cluster.messages import HostJob, pack_guest
from ajuste_guest.testbed import GuestTestbed


def _connection(options: RunOptions) -> Connection:
    assert options.cluster is not None
    return Connection(options.cluster, options.say)


class BenchTestbed(HostTestbed):
    """Runs on the machines of a cluster themselves."""

    explains = False

    def __init__(self, options: RunOptions) -> None:
        super().__init__(options)
        self.connected = self._connection = _connection(options)

    def prepared(self, resolved: ResolvedStudy, catalogue: Catalogue) -> Experiment:
        # Machines may join and leave, and each checks for itself what is possible.
        if resolved.boots:
            raise RequestError("a study that reboots its machine is not supported on a cluster")
        marks = file_marks(resolved) | {"machine": "those of a cluster"}
        return Experiment(resolved, fingerprint(resolved, marks))

    def executor(self, experiment: Experiment, machine: Machine, first: Callable[[Executor], None]) -> Executor:
        study = experiment.resolved.study
        job = HostJob(
            ajuste=ajuste_version(),
            agent=file_sha256(native_program(AGENT)),
            study=study.model_dump_json(),
            directory=str(study_directory(study).absolute()),
            accept_risk=self.options.accept_risk,
        )
        return BenchExecutor(self._connection, job, experiment.resolved, self.options.say)

    def observer(self, experiment: Experiment, catalogue: Catalogue) -> ActivityObserver | None:
        return None

    def order(
        self,
        resolved: ResolvedStudy,
        present: Callable[[], Sequence[str]],
        keep: Callable[[BaseModel], None],
        say: Say,
    ) -> MachineOrder | None:
        if self.options.fleet is None:
            return None
        from ajuste_fleet.order import Fleet  # It loads the analysis.

        return Fleet(self.options.fleet, resolved, present, keep, say)


class ClusterTestbed(GuestTestbed):
    """Runs in guests on workers of a cluster."""

    def __init__(self, options: RunOptions) -> None:
        super().__init__(options)
        self.connected = self._connection = _connection(options)

    def executor(self, experiment: Experiment, machine: Machine, first: Callable[[Executor], None]) -> Executor:
        guest = self._guest(experiment, machine)
        local = partial(super().executor, experiment, machine, first)
        return ClusterExecutor(self._connection, partial(pack_guest, *guest), local, self.options.say)

    def observer(self, experiment: Experiment, catalogue: Catalogue) -> ActivityObserver | None:
        return None
