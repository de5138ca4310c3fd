"""Advice on the lab page: ask for it in a guest, watch it, and read it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from ajuste.model.capability import Asked
from ajuste.model.error import RequestError
from ajuste.study.command_line.defaults import DEFAULT_KERNEL
from ajuste_advise.model import Advice
from ajuste_advise.report import advice_report
from ajuste_lab.jobs import Job
from ajuste_lab.rendering import Form, document_page, handled, page, request_lab

PLACES: Final = (("/advise", "Advice"),)

DOCUMENT: Final = "advice.json"
MOST_MINUTES: Final = 60
_STUDY: Final = "advice on "
_MOST_BYTES: Final = 1 << 24
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
    jobs = [job for job in request_lab(request).service.jobs.all() if job.study.startswith(_STUDY)]
    return page(
        request,
        "advise.html.j2",
        status=400 if problem else 200,
        values=values,
        problem=problem,
        answers=[(job, _advice(job)) for job in jobs],
        about=len(_STUDY),
        most=MOST_MINUTES,
    )


def begin(request: Request, form: Form) -> Response:
    """Start the search for advice, and show how far it is."""
    try:
        words = _words(form)
    except RequestError as error:
        return _form(request, error.message, form)
    jobs = request_lab(request).service.jobs
    job = jobs.start(f"{_STUDY}{form.get('workload', '')}", words, jobs.new_directory(), rights=Asked("page"))
    return RedirectResponse(f"/advise/{job.id}", status_code=303)


def _words(form: Form) -> list[str]:
    # The command line of the form. Nothing of it reaches a shell.
    text = form.get("workload", "")[:_LONGEST]
    try:
        workload = shlex.split(text)
    except ValueError as error:
        raise RequestError(f"workload: {error}; expected a command such as hackbench groups=2") from None
    if not workload or "--" in workload:
        raise RequestError("workload: expected a command such as hackbench groups=2")
    minutes = form.get("minutes", "")
    if not minutes.isdecimal() or not 1 <= int(minutes) <= MOST_MINUTES:
        raise RequestError(f"minutes: found {minutes[:20]!r}; expected 1 to {MOST_MINUTES}")
    options = [
        word
        for name in _OPTIONS
        if (value := form.get(name, "").strip()[:_LONGEST])
        for word in (f"--{name.replace('_', '-')}={value}",)
    ]
    if not form.get("kernel", "").strip():
        options.append("--vm")  # A page asks for advice in guests only.
    return ["advise", *options, f"--max-time={minutes}m", f"--output={DOCUMENT}", "--", *workload]


def show(request: Request) -> Response:
    """Return the advice, or how far it is."""
    job = request_lab(request).service.jobs.find(request.path_params["job"])
    if not job.study.startswith(_STUDY):
        raise RequestError(f"job {job.id} is no advice", hint="list them on the page Advice")
    advice = _advice(job)
    if advice is not None:
        return document_page(request, advice_report(advice))
    alive = job.alive
    return page(
        request,
        "advising.html.j2",
        job=job,
        workload=job.study.removeprefix(_STUDY),
        alive=alive,
        steps=_steps(job),
        problem="" if alive else job.problem,
    )


def _advice(job: Job) -> Advice | None:
    text = _text(job.directory / DOCUMENT)
    return Advice.model_validate_json(text) if text else None


def _steps(job: Job) -> list[str]:
    # What the command says of itself: 3/4 find: …
    return [line for line in _text(job.directory / "said").splitlines() if line[1:3] == "/4"]


def _text(file: Path) -> str:
    try:
        with file.open(encoding="utf-8", errors="replace") as opened:
            return opened.read(_MOST_BYTES)
    except OSError:
        return ""


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
