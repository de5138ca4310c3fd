"""The page of a run: its report, or its trials so far while it goes on, and its actions."""

from __future__ import annotations

import time
from typing import Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route

from ajuste.model.capability import Asked
from ajuste.model.error import RequestError
from ajuste.report.html import render_html
from ajuste.report.results import results_report
from ajuste.store.head import PINNED, Run
from ajuste.study.resolved import ResolvedStudy
from ajuste_lab.index import NOTHING_KNOWN
from ajuste_lab.jobs import Job
from ajuste_lab.pages.runs import KEPT, run_row
from ajuste_lab.rendering import Form, document_page, handled, page, request_lab, request_run
from ajuste_lab.watch import Laboratory

_ENDS_WITHIN_S: Final = 30.0
_ELSEWHERE: Final = "press Ctrl-C where it was started; all measurements are kept"


def show(request: Request) -> Response:
    """Return the report of a run that has ended, or the progress of one that has not."""
    lab, run = request_run(request)
    if run.id != request.path_params["run"]:
        return RedirectResponse(f"/runs/{run.id}", status_code=303)
    context = _around(lab, run)
    if context["going_on"] or not lab.service.store.count(run):
        return page(request, "live.html.j2", **context, **_question(run))
    return document_page(request, results_report(lab.service.results(run)), template="run.html.j2", **context)


def _around(lab: Laboratory, run: Run) -> dict[str, Any]:
    head = lab.service.head(run.id)
    facts = lab.index.of([head]).get(run.id, NOTHING_KNOWN)
    job = lab.service.jobs.of_run(run.id)
    going_on = lab.service.is_going_on(run)
    tags = head.tags.split()
    return {
        "run": run,
        "row": run_row(head, facts, going_on),
        "going_on": going_on,
        "ours": job is not None and job.alive,
        "problem": job.problem if job is not None and not going_on else "",
        "tags": " ".join(tag for tag in tags if tag not in (PINNED, KEPT)),
        "pinned": PINNED in tags,
        "kept": KEPT in tags,
        "note": lab.notes.of(run.id),
        "only_here": head.kernel == "host" and not lab.service.allow_host,
        "can_extend": bool(run.stopped) and run.stopped not in ("failed", "decided", "irrelevant"),
    }


def _question(run: Run) -> dict[str, Any]:
    resolved = ResolvedStudy.model_validate_json(run.resolved)
    return {
        "study": resolved.study,
        "drawn": {
            "run": run.id,
            "configurations": [entry.configuration.name for entry in resolved.configurations][:40],
            "baseline": resolved.baseline,
            "metrics": [{"name": m.name, "title": m.title, "unit": m.unit} for m in resolved.deciding],
            "smallest": resolved.study.analysis.smallest_effect,
            "blocks": resolved.study.budget.max_blocks,
        },
    }


async def events(request: Request) -> Response:
    """Return the events of a run as they happen (Server-Sent Events)."""
    lab = request_lab(request)
    run = await run_in_threadpool(lab.service.run, request.path_params["run"])
    watched = lab.watches.of(run).events()
    return StreamingResponse(watched, media_type="text/event-stream", headers={"x-accel-buffering": "no"})


def report_file(request: Request) -> Response:
    """Return the report as one self-contained file."""
    lab, run = request_run(request)
    name = f'attachment; filename="{run.id}.html"'
    return HTMLResponse(render_html(results_report(lab.service.results(run))), headers={"content-disposition": name})


def results_file(request: Request) -> Response:
    """Return the results as ``--json`` prints them."""
    lab, run = request_run(request)
    name = f'attachment; filename="{run.id}.json"'
    text = lab.service.results(run).model_dump_json(indent=2)
    return Response(text, media_type="application/json", headers={"content-disposition": name})


def study_file(request: Request) -> Response:
    """Return the study of a run as a study file."""
    lab, run = request_run(request)
    name = f'attachment; filename="{run.id}.toml"'
    return PlainTextResponse(lab.service.study_text(lab.service.document(run)), headers={"content-disposition": name})


def act(request: Request, form: Form) -> Response:
    """Pause, stop, resume or extend a run, or measure it again."""
    lab, run = request_run(request)
    action = form.get("action", "")
    if action in ("pause", "stop"):
        _end(lab, run)
        if action == "stop" and any(head.id == run.id and not head.stopped for head in lab.service.runs()):
            lab.service.store.stop_run(run, "interrupted", "stopped on the lab page")
        exists = any(head.id == run.id for head in lab.service.runs())
        return RedirectResponse(f"/runs/{run.id}" if exists else "/", status_code=303)
    starts = {"resume": _resumed, "extend": _extended, "again": _again}
    if action not in starts:
        raise RequestError(f"{action[:40]!r} is nothing that can be done to a run", hint="use the page's buttons")
    return RedirectResponse(f"/jobs/{starts[action](lab, run).id}", status_code=303)


def _end(lab: Laboratory, run: Run) -> None:
    # Only a job of the lab can be interrupted: the process of another terminal belongs to its user.
    job = lab.service.jobs.of_run(run.id)
    if job is None or not job.alive:
        if lab.service.is_going_on(run):
            raise RequestError(
                "this run was started elsewhere, so the lab page cannot pause or stop it", hint=_ELSEWHERE
            )
        return
    job.interrupt()
    until = time.monotonic() + _ENDS_WITHIN_S
    while job.alive and time.monotonic() < until:
        time.sleep(0.1)
    if job.alive:
        raise RequestError("the run is still ending its last trial", hint="try again in a minute")


def _resumed(lab: Laboratory, run: Run) -> Job:
    if run.stopped:
        raise RequestError(f"run {run.id} has ended", hint="measure it again instead")
    return lab.service.start(lab.service.document(run), rights=_study_author(run))


def _extended(lab: Laboratory, run: Run) -> Job:
    # With twice the budget the run resumes: its trials stay.
    document = lab.service.document(run)
    budget = ResolvedStudy.model_validate_json(run.resolved).study.budget
    twice = {"max_blocks": min(2 * budget.max_blocks, 100_000), "max_minutes": 2 * budget.max_minutes}
    more = {**document, "budget": {**document.get("budget", {}), **twice}}
    return lab.service.start(more, rights=_study_author(run))


def _study_author(run: Run) -> Asked | None:
    # The study of an imported run is a stranger's: it has only the rights of a bundle.
    return Asked("bundle") if run.imported else None


def _again(lab: Laboratory, run: Run) -> Job:
    return lab.service.start(lab.service.document(run), fresh=True, rights=_study_author(run))


def job(request: Request) -> Response:
    """Return the page of a job whose run has no id yet."""
    lab = request_lab(request)
    job = lab.service.jobs.find(request.path_params["job"])
    if job.run and any(head.id == job.run for head in lab.service.runs()):
        return RedirectResponse(f"/runs/{job.run}", status_code=303)
    return page(request, "job.html.j2", job=job, alive=job.alive, problem=job.problem, doing=job.doing)


def job_state(request: Request) -> Response:
    """Return the state of a job, for a program."""
    job = request_lab(request).service.jobs.find(request.path_params["job"])
    return JSONResponse({"run": job.run, "doing": job.doing, "alive": job.alive, "problem": job.problem})


def cancel(request: Request, _: Form) -> Response:
    """Interrupt a job, also one that has no run yet."""
    job = request_lab(request).service.jobs.find(request.path_params["job"])
    job.interrupt()
    return RedirectResponse("/", status_code=303)


ROUTES: Final = (
    Route("/runs/{run}", show),
    Route("/runs/{run}/events", events),
    Route("/runs/{run}/report.html", report_file),
    Route("/runs/{run}/results.json", results_file),
    Route("/runs/{run}/study.toml", study_file),
    Route("/runs/{run}/act", handled(act), methods=["POST"]),
    Route("/jobs/{job}", job),
    Route("/jobs/{job}/state", job_state),
    Route("/jobs/{job}/cancel", handled(cancel), methods=["POST"]),
)
