"""The operations for clients, defined once: both protocols, their schemas and their reference follow from it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from ajuste.model.error import RequestError
from ajuste.model.plugins import load_each
from ajuste.model.wording import visible
from ajuste_lab.agents import requests
from ajuste_lab.agents.desk import AgentDesk, Document

MOST_BYTES: Final = 256 * 1024
"""Maximum size of the arguments of one call, in bytes."""

Asked = TypeVar("Asked", bound=requests.AgentRequest)


@dataclass(frozen=True)
class Operation:
    """An operation that ``reads`` starts, stops and stores nothing."""

    name: str
    what: str
    request: type[requests.AgentRequest]
    act: Callable[[AgentDesk, Any], Document]
    reads: bool = True

    def carry_out(self, desk: AgentDesk, arguments: Mapping[str, Any], *, as_text: bool = False) -> Document:
        """Return the answer. ``as_text``: numbers may be texts, as in the query of an address. Raises RequestError for
        arguments that are wrong or too large, and for too many calls.
        """
        desk.budget.call()
        document = json.dumps(arguments)
        if len(document) > MOST_BYTES:
            raise RequestError(
                f"the arguments have more than {MOST_BYTES // 1024} KiB", hint="send a smaller study or fewer settings"
            )
        try:
            request = self.request.model_validate_json(document, strict=not as_text)
        except ValidationError as failure:
            problems = failure.errors(include_url=False, include_input=False)[:5]
            message = "; ".join(
                f"{'.'.join(map(str, p['loc']))[:100] or 'arguments'}: {p['msg'][:200]}" for p in problems
            )
            raise RequestError(message, hint=f"see the schema of {self.name}") from None
        return {name: _visible(value) for name, value in self.act(desk, request).items()}


def _visible(value: Any) -> Any:
    # Texts may come from any program or stranger: control characters are made visible.
    match value:
        case str():
            return visible(value)
        case dict():
            return {visible(str(name)): _visible(item) for name, item in value.items()}
        case list() | tuple():
            return [_visible(item) for item in value]
        case _:
            return value


@cache
def operations() -> Mapping[str, Operation]:
    """Return all operations by name: first those of packages."""
    desk = AgentDesk
    of_lab = (
        Operation(
            "tunables",
            "List the settings that Ajuste knows, or explain one and list the runs that touched it.",
            requests.TunablesAsked,
            desk.tunables,
        ),
        Operation("studies", "List the built-in studies.", requests.NothingAsked, desk.studies),
        Operation("runs", "List the runs in the store, the newest first.", requests.RunsAsked, desk.runs),
        Operation(
            "plan",
            "Show every write, command and trial of a study, and its cost. Nothing is done.",
            requests.StudyPlanned,
            desk.plan,
        ),
        Operation(
            "run",
            "Start a study in a guest. Returns a job at once; watch it.",
            requests.StudyStarted,
            desk.run,
            reads=False,
        ),
        Operation(
            "watch", "Say how a job stands: what it does, its run, its verdicts so far.", requests.JobAsked, desk.watch
        ),
        Operation("stop", "Stop a job. What was measured is kept.", requests.JobStopped, desk.stop, reads=False),
        Operation("verdicts", "Read the answer and all verdicts of a run.", requests.RunAsked, desk.verdicts),
        Operation(
            "why",
            "Explain why a configuration differs from the baseline. Records both in a guest if that was not done.",
            requests.WhyAsked,
            desk.why,
            reads=False,
        ),
        Operation(
            "differences",
            "Compare runs: their verdicts, and what differs between their environments.",
            requests.DifferencesAsked,
            desk.differences,
        ),
        Operation(
            "export",
            "Return a proven improvement as a script, a sysctl.d file, a tuned profile, a systemd "
            "unit or an Ansible playbook. Nothing is applied.",
            requests.ExportAsked,
            desk.export,
        ),
        Operation("campaigns", "List the campaigns.", requests.NothingAsked, desk.campaigns),
        Operation(
            "campaign_ledger",
            "Show a campaign: what may be proposed, each proposal with its evidence, and the error budget left.",
            requests.CampaignAsked,
            desk.campaign_ledger,
        ),
        Operation(
            "campaign_propose",
            "Propose settings to a campaign. They are explored, and confirmed with hidden "
            "seeds and workloads if they look better.",
            requests.ProposalMade,
            desk.campaign_propose,
            reads=False,
        ),
        Operation(
            "budget",
            "Say how many trials and minutes are left for this client.",
            requests.NothingAsked,
            desk.budget_left,
        ),
    )
    of_packages = [operation for _, module in load_each("operations") for operation in module.OPERATIONS]
    return MappingProxyType({operation.name: operation for operation in (*of_packages, *of_lab)})


def find_operation(name: str) -> Operation:
    """Return the operation. Raises RequestError if there is none of that name."""
    operation = operations().get(name)
    if operation is None:
        raise RequestError(f"tool {name[:80]!r} not found", hint=f"expected one of {', '.join(operations())}")
    return operation


def argument_schema(operation: Operation) -> dict[str, Any]:
    """Return the JSON Schema of an operation's arguments."""
    return {"additionalProperties": False, "properties": {}} | operation.request.model_json_schema()
