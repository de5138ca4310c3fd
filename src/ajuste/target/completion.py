"""What a plan for this machine gets when it is carried out, and nobody writes down: the caller's environment, and what
the kernel changes along with a tunable.
"""

from __future__ import annotations

from ajuste.catalogue.loader import Catalogue
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelVersion
from ajuste.model.plan import Command, Location, Plan, User, Write
from ajuste.model.tunable import Tunable
from ajuste.target.availability import why_not_writable
from ajuste.target.caller import callers_environment
from ajuste.target.listing import files_in
from ajuste.target.machine import Machine


class Completion:
    """For this machine with a kernel of ``version``. What was found once is taken again, so that it costs little."""

    def __init__(self, catalogue: Catalogue, version: KernelVersion) -> None:
        self._catalogue = catalogue
        self._version = version
        self._machine = Machine()
        self._companions: dict[str, tuple[Location, ...]] = {}
        self._environments: dict[User | None, dict[str, str]] = {}

    def complete(self, plan: Plan) -> Plan:
        return plan.model_copy(
            update={
                "writes": tuple(map(self.completed, plan.writes)),
                "before": tuple(map(self._command, plan.before)),
                "background": tuple(map(self._command, plan.background)),
                "workload": self._command(plan.workload) if plan.workload is not None else None,
                "after": tuple(map(self._command, plan.after)),
            }
        )

    def _command(self, command: Command) -> Command:
        user = command.user
        if user not in self._environments:
            self._environments[user] = callers_environment(user)
        return command.model_copy(update={"environment": self._environments[user] | command.environment})

    def completed(self, write: Write) -> Write:
        """With everything that the kernel changes along."""
        if write.tunable not in self._companions:
            self._companions[write.tunable] = self._found(write)
        more = self._companions[write.tunable]
        return write.model_copy(update={"companions": tuple(dict.fromkeys((*write.companions, *more)))})

    def _found(self, write: Write) -> tuple[Location, ...]:
        try:
            tunable = self._catalogue.find_tunable(write.tunable)
        except RequestError:
            return ()
        return self._catalogue.companions(tunable, self._version, files_in, self._can_change)

    def _can_change(self, tunable: Tunable) -> bool:
        return not why_not_writable(self._catalogue, tunable, self._machine)
