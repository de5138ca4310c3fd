"""The desk of a client: the runs that it sees, the jobs that it may start, and their cost."""

from __future__ import annotations

import json
import threading
import time
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from ajuste.catalogue.loader import catalogue
from ajuste.catalogue.place import kernels
from ajuste.kernel.spec import kernel_kind
from ajuste.model.capability import granted
from ajuste.model.error import RequestError
from ajuste.model.explanation import EXPLANATIONS
from ajuste.model.origin import IMPORTED
from ajuste.model.results import Results
from ajuste.model.wording import shortened
from ajuste.report.plan import PlannedStudy
from ajuste.report.side_by_side import side_by_side, side_by_side_document
from ajuste.run.experiment import progress_of
from ajuste.run.testbed import RunOptions
from ajuste.store.head import Head, Run
from ajuste.study.builtin import builtin_studies, find_study
from ajuste.study.named import require_allowed
from ajuste.study.resolved import ResolvedStudy
from ajuste_lab.agents import requests
from ajuste_lab.agents.budget import AgentBudget
from ajuste_lab.campaign.evaluator import Evaluator, ExperimentBench
from ajuste_lab.campaign.kept import campaign_names, find_campaign
from ajuste_lab.campaign.promotion import standing
from ajuste_lab.jobs import Job
from ajuste_lab.service import LabService

Document = dict[str, Any]

# Maximum number of runs, the newest first, that are searched for a tunable.
_MOST_EVIDENCE: Final = 200
_STEP_S: Final = 0.2


class AgentDesk:
    """Answers the requests of one client. ``allowed`` are the tunables of this machine that it may change."""

    def __init__(
        self,
        service: LabService,
        budget: AgentBudget,
        allowed: Collection[str] = (),
    ) -> None:
        self.service = service
        self.budget = budget
        self.rights = granted("agent", allowed)
        self._known = catalogue()
        self._starting = threading.Lock()

    # Looking.

    def tunables(self, request: requests.TunablesAsked) -> Document:
        if request.name:
            tunable = self._known.find_tunable(request.name)
            whole = tunable.model_dump(mode="json") | {"kernels": kernels(tunable)}
            return {"tunable": whole, "runs": self._runs_touching(tunable.name)}
        words = request.search.split()
        matches = self._known.search(words) if words else list(self._known.tunables.values())
        rows = [
            {"name": match.name, "title": match.title, "subsystem": match.subsystem, "kernels": kernels(match)}
            for match in matches[: request.limit]
        ]
        return {"tunables": rows, "found": len(matches)}

    def studies(self, request: requests.NothingAsked) -> Document:
        return {"studies": [{"name": s.name, "title": s.title, "question": s.question} for s in builtin_studies()]}

    def runs(self, request: requests.RunsAsked) -> Document:
        text = request.find.lower()
        heads = [
            head
            for head in self.service.runs()
            if text in f"{head.id}\n{head.study}\n{head.kernel}\n{head.workload}\n{head.answer}\n{head.tags}".lower()
        ]
        return {"runs": [_listed(head) for head in heads[: request.limit]], "found": len(heads)}

    def verdicts(self, request: requests.RunAsked) -> Document:
        run = self.service.run(request.run)
        return _verdicts(self.service.results(run)) | {"going_on": self.service.is_going_on(run)}

    def differences(self, request: requests.DifferencesAsked) -> Document:
        runs = {run.id: run for run in map(self.service.run, request.runs)}
        if len(runs) < 2:
            raise RequestError(f"runs: all are {next(iter(runs))}; expected two different runs", hint="see runs")
        return {"differences": side_by_side_document(side_by_side([*map(self.service.results, runs.values())]))}

    def export(self, request: requests.ExportAsked) -> Document:
        run = self.service.run(request.run)
        chosen = [] if request.configuration is None else [request.configuration]
        return {"export": self._command_output(["export", "--format", request.format, "--json", "--", run.id, *chosen])}

    # Planning and measuring.

    def plan(self, request: requests.StudyPlanned) -> Document:
        planned = self._planned(self._document(request))
        return {"plan": planned.model_dump(mode="json"), "cost": _cost(planned), "left": self.budget.left()}

    def run(self, request: requests.StudyStarted) -> Document:
        """Start a study. Raises RequestError if it is invalid, not allowed or beyond the budget."""
        document = self._document(request)
        planned = self._planned(document)
        cost = _cost(planned)
        trials, minutes = int(cost["trials"]), cost["minutes"]
        job = self._started(
            trials,
            minutes,
            lambda: self.service.start(document, fresh=request.fresh, max_minutes=minutes, rights=self.rights),
        )
        return self.watch(requests.JobAsked(job=job.id, wait_s=request.wait_s))

    def watch(self, request: requests.JobAsked) -> Document:
        """Return the state of a job of this client, once it ends or after a while."""
        job = self.find_job(request.job)
        waited = 0.0
        while job.alive and waited < request.wait_s:
            time.sleep(_STEP_S)
            waited += _STEP_S
        going_on = job.alive
        state: Document = {"job": job.id, "study": job.study, "going_on": going_on, "doing": shortened(job.doing)}
        if not going_on:
            self._settle()
            state |= {"exit_code": job.exit_code, "problem": job.problem[:2000]}
        if job.study != _CAMPAIGN and (run := self._job_run(job)) is not None:
            state |= {"run": run.id, "verdicts": _verdicts(self.service.results(run))["verdicts"]}
        return state | {"left": self.budget.left()}

    def stop(self, request: requests.JobStopped) -> Document:
        job = self.find_job(request.job)
        job.interrupt()
        return {"job": job.id, "stopped": True}

    def why(self, request: requests.WhyAsked) -> Document:
        """Return the recording of a run, or a job that makes one."""
        run = self.service.run(request.run)
        results = self.service.results(run)
        names = [configuration.name for configuration in results.configurations if not configuration.baseline]
        if request.configuration is not None and request.configuration not in names:
            raise RequestError(
                f"{request.configuration[:80]!r} is not a configuration of {run.id}",
                hint=f"choose one of {', '.join(names[:10])}",
            )
        explanations = [
            explanation.model_dump(mode="json")
            for explanation in EXPLANATIONS.of(results)
            if request.configuration in (None, explanation.configuration)
        ]
        if explanations:
            return {"explanations": explanations}
        study = ResolvedStudy.model_validate_json(run.resolved).study
        require_allowed(study, self.rights, self._known, kernel_kind)
        chosen = [] if request.configuration is None else [request.configuration]
        words = ["why", "--json", "--", run.id, *chosen]
        job = self.start("why", words, trials=2, minutes=10)
        done = self.watch(requests.JobAsked(job=job.id, wait_s=request.wait_s))
        return done | {"next": "ask why again once the job has ended"}

    # Campaigns.

    def campaigns(self, request: requests.NothingAsked) -> Document:
        return {"campaigns": campaign_names(self.service.home)}

    def campaign_ledger(self, request: requests.CampaignAsked) -> Document:
        stored = find_campaign(self.service.home, request.campaign)
        return standing(stored.campaign, stored.ledger.entries).model_dump(mode="json")

    def campaign_propose(self, request: requests.ProposalMade) -> Document:
        """Start a proposal. Raises RequestError, and stores nothing, if it is not allowed."""
        stored = find_campaign(self.service.home, request.campaign)
        studies = stored.studies(self._known)
        for study in studies:
            if study.target.on_host:
                require_allowed(study, self.rights, self._known, kernel_kind)
        options = RunOptions(self.service.home, dry=True)
        bench = ExperimentBench(self._known, options, lambda study: progress_of(study, self._known, quiet=True))
        settings = Evaluator(stored, self._known, bench, self.rights).check(request.settings)
        trials = 2 * (stored.campaign.explore + stored.campaign.confirm * len(studies))
        minutes = studies[0].budget.max_minutes + sum(study.budget.max_minutes for study in studies)
        minutes = min(minutes, request.max_minutes or minutes)
        words = [word for name, level in settings.items() for word in ("--set", f"{name}={level}")]
        words = ["campaign", "propose", stored.campaign.name, *words, "--quiet", "--json"]
        job = self.start(_CAMPAIGN, words, trials=trials, minutes=minutes)
        state = self.watch(requests.JobAsked(job=job.id, wait_s=request.wait_s))
        return state | {"ledger": self.campaign_ledger(requests.CampaignAsked(campaign=request.campaign))}

    def budget_left(self, request: requests.NothingAsked) -> Document:
        self._settle()
        limits = self.budget.limits
        return {
            "left": self.budget.left(),
            "limits": {"trials": limits.trials, "minutes": limits.minutes, "calls_per_minute": limits.calls},
            "this_machine": sorted(self.rights.named),
        }

    # Shared by all operations.

    def start(self, study: str, words: Sequence[str], *, trials: int, minutes: float) -> Job:
        """Start ``ajuste WORDS`` with the rights of this client, which pays for all of the trials and minutes. Raises
        RequestError if that is beyond its budget.
        """

        def child() -> Job:
            directory = self.service.jobs.new_directory()
            return self.service.jobs.start(study, words, directory, rights=self.rights, minutes=minutes)

        return self._started(trials, minutes, child, whole=True)

    def find_job(self, name: str) -> Job:
        """Return a job of this client. Raises RequestError for all others: they are as good as not there."""
        if not self.budget.owns(name):
            raise RequestError(f"job {name[:80]!r} not found", hint="use the job that another operation returned")
        return self.service.jobs.find(name)

    def _document(self, request: requests.StudyPlanned) -> Document:
        if isinstance(request.study, str):
            # Only built-in studies: a client must not read files of this machine.
            names = [study.name for study in builtin_studies()]
            if request.study not in names:
                raise RequestError(
                    f"study {request.study[:80]!r} not found", hint=f"expected one of {', '.join(names)}"
                )
            document = tomllib.loads(find_study(request.study).read_text(encoding="utf-8"))
        else:
            document = json.loads(json.dumps(request.study))
        overrides: Mapping[str, Mapping[str, Any]] = {
            "target": {"kernel": request.kernel},
            "design": {"seed": request.seed},
            "budget": {"max_blocks": request.max_blocks, "max_minutes": request.max_minutes},
        }
        for table, fields in overrides.items():
            more = {name: value for name, value in fields.items() if value is not None}
            if more and isinstance(document.setdefault(table, {}), dict):
                document[table] |= more
        budget = document.get("budget")
        if request.max_blocks is not None and isinstance(budget, dict) and isinstance(budget.get("min_blocks"), int):
            budget["min_blocks"] = min(budget["min_blocks"], request.max_blocks)
        return document

    def _planned(self, document: Document) -> PlannedStudy:
        return self.service.plan(document, self.rights)

    def _started(self, trials: int, minutes: float, start: Callable[[], Job], *, whole: bool = False) -> Job:
        with self._starting:
            self._settle()
            self.budget.require(trials, minutes)
            job = start()
            self.budget.charge(job.id, trials, minutes, whole=whole)
        return job

    def _job_run(self, job: Job) -> Run | None:
        # A job that was stopped before its first trial has no run.
        try:
            return self.service.run(job.run) if job.run else None
        except RequestError:
            return None

    def _settle(self) -> None:
        for name in self.budget.open_jobs:
            job = self.service.jobs.find(name)
            if not job.alive:
                run = self._job_run(job)
                counted = 0 if run is None else self.service.store.count(run) - job.trials_before
                self.budget.settle(name, counted)

    def _command_output(self, words: list[str]) -> Any:
        directory = self.service.jobs.new_directory()
        try:
            return json.loads(self.service.jobs.output_of(words, directory, rights=self.rights))
        finally:
            directory.rmdir()

    def _runs_touching(self, tunable: str) -> list[Document]:
        rows = []
        for head in self.service.runs()[:_MOST_EVIDENCE]:
            run = self.service.run(head.id)
            if json.dumps(tunable) in run.resolved:
                rows.append(_listed(head))
        return rows


# Jobs with this name have runs that a client must not see.
_CAMPAIGN: Final = "campaign"


def _cost(planned: PlannedStudy) -> dict[str, float]:
    # Upper bounds: a run that is decided early takes less.
    blocks = planned.budget.max_blocks
    return {
        "trials": blocks * planned.block_size,
        "minutes": planned.budget.max_minutes or 24 * 60.0,
    }


def _listed(head: Head) -> Document:
    return {
        "run": head.id,
        "study": head.study,
        "created": head.created,
        "kernel": head.kernel,
        "workload": head.workload,
        "stopped": head.stopped or "not finished",
        "imported": head.imported,
        "answer": head.answer,
    }


def _verdicts(results: Results) -> Document:
    return {
        "run": results.run,
        "study": results.study,
        "answer": results.answer,
        "clock": results.clock,
        "digest": results.digest,
        "imported": IMPORTED.of(results),
        "stopped": results.stopped,
        "stopped_because": results.stopped_because,
        "verdicts": [verdict.model_dump(mode="json") for verdict in results.verdicts],
        "notes": list(results.notes),
    }
