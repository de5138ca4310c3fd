"""Advice on the lab page: ask for it in a guest, watch it, and read it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from ajuste.model.capability import Asked
from ajuste.model.error import RequestError
from ajuste.study.command_line.defaults import DEFAULT_KERNEL
from ajuste_advise.jobs import MOST_MINUTES, STUDY, advice_of, guest_words, text_of
from ajuste_advise.report import advice_report
from ajuste_lab.jobs import Job
from ajuste_lab.rendering import Form, document_page, handled, page, request_lab

PLACES: Final = (("/advise", "Advice"),)

_LONGEST: Final = 500
# The fields of the form that are options of the command, with what they are without an entry.
_OPTIONS: Final[Mapping[str, str]] = {
    "kernel": DEFAULT_KERNEL,
    "guest_cpus": "1",
    "background": "",
    "metric": "",
}


def ask(request: Request) -> Response:
    """Return the form, and the answers that there are."""
    return _form(request)


def _form(request: Request, problem: str = "", form: Form | None = None) -> Response:
    values = {"workload": "", "minutes": "10", **_OPTIONS, **(dict(form) if form is not None else {})}
    jobs = [job for job in request_lab(request).service.jobs.all() if job.study.startswith(STUDY)]
    return page(
        request,
        "advise.html.j2",
        status=400 if problem else 200,
        values=values,
        problem=problem,
        answers=[(job, advice_of(job)) for job in jobs],
        about=len(STUDY),
        most=MOST_MINUTES,
    )


def begin(request: Request, form: Form) -> Response:
    """Start the search for advice, and show how far it is."""
    try:
        words = _words(form)
    except RequestError as error:
        return _form(request, error.message, form)
    jobs = request_lab(request).service.jobs
    job = jobs.start(f"{STUDY}{form.get('workload', '')}", words, jobs.new_directory(), rights=Asked("page"))
    return RedirectResponse(f"/advise/{job.id}", status_code=303)


def _words(form: Form) -> list[str]:
    options = {name: entry for name in _OPTIONS if (entry := form.get(name, "").strip()[:_LONGEST])}
    minutes = form.get("minutes", "")
    if not minutes.isdecimal() or not 1 <= int(minutes) <= MOST_MINUTES:
        raise RequestError(f"minutes: found {minutes[:20]!r}; expected 1 to {MOST_MINUTES}")
    return guest_words(form.get("workload", "")[:_LONGEST], options | {"max_time": f"{minutes}m"})


def show(request: Request) -> Response:
    """Return the advice, or how far it is."""
    job = request_lab(request).service.jobs.find(request.path_params["job"])
    if not job.study.startswith(STUDY):
        raise RequestError(f"job {job.id} has nothing to do with advice", hint="list them on the page Advice")
    advice = advice_of(job)
    if advice is not None:
        return document_page(request, advice_report(advice))
    alive = job.alive
    return page(
        request,
        "advising.html.j2",
        job=job,
        workload=job.study.removeprefix(STUDY),
        alive=alive,
        steps=_steps(job),
        problem="" if alive else job.problem,
    )


def _steps(job: Job) -> list[str]:
    # What the command says of itself: 3/4 find: …
    return [line for line in text_of(job.directory / "said").splitlines() if line[1:3] == "/4"]


def stop(request: Request, _: Form) -> Response:
    """Stop the search; what was measured stays."""
    request_lab(request).service.jobs.find(request.path_params["job"]).interrupt()
    return RedirectResponse("/advise", status_code=303)


ROUTES: Final = (
    Route("/advise", ask),
    Route("/advise", handled(begin), methods=["POST"]),
    Route("/advise/{job}", show),
    Route("/advise/{job}/stop", handled(stop), methods=["POST"]),
)
