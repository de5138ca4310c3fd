"""Sheets on the lab page: the list, and one sheet with its predictions, studies and questions."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import urlencode

from markdown_it import MarkdownIt
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from ajuste.machine.home import ajuste_version, home
from ajuste.model.error import RequestError
from ajuste.store.store import Store
from ajuste_course.guide import step_text
from ajuste_course.hand_in import SUFFIX, missing, write_hand_in
from ajuste_course.sheet import AskStep, MeasureStep, Sheet, SimulateStep, filled, read_sheet, sheet_files
from ajuste_course.simulation import made_data
from ajuste_course.student import check_student, drawn
from ajuste_course.translation import languages, say, translated
from ajuste_course.workbook import Shelf, Workbook, now, predictions_before, read_prediction
from ajuste_lab.rendering import Form, handled, page, request_lab

PLACES: Final = (("/course", "Sheets"),)


def listed(request: Request) -> Response:
    """Return the list of sheets."""
    sheets = [(read_sheet(file), (read_sheet(file).language, *languages(file))) for file in sheet_files().values()]
    return page(request, "course.html.j2", sheets=sheets, student=request.query_params.get("student", "")[:64])


def show(request: Request) -> Response:
    """Return a sheet for one student."""
    plain, file = _sheet(request.path_params["sheet"])
    student = check_student(plain, request.query_params.get("student", ""))
    language = request.query_params.get("language", plain.language)
    if language not in (plain.language, *languages(file)):
        raise RequestError(
            f"{plain.name} has no translation to {language[:10]}; expected one of "
            f"{', '.join((plain.language, *languages(file)))}"
        )
    workbook = Shelf(home()).begin(plain, student, language)
    return _page(request, plain, translated(file, language), workbook)


def _page(
    request: Request, plain: Sheet, texts: Sheet, workbook: Workbook, problem: str = "", form: Form | None = None
) -> Response:
    values = drawn(plain, workbook.student)
    renderer = MarkdownIt("commonmark", {"html": False}).enable("table")
    lab, running = request_lab(request), {}
    for job in lab.service.jobs.all():
        if job.alive and job.study.startswith(f"{plain.name} "):
            running[job.study.split(" ", 1)[1]] = job.id
    sealed = {step.name for run in workbook.runs for step in predictions_before(plain, run)}
    steps = [
        {
            "kind": step.kind,
            "name": getattr(step, "name", ""),
            "html": Markup(renderer.render(step_text(step, values))),  # noqa: S704 - its HTML is escaped
            "choices": [str(filled(choice, values)) for choice in step.choices] if isinstance(step, AskStep) else [],
            "unit": step.unit if isinstance(step, AskStep) else "",
            "by": step.answer_by if isinstance(step, AskStep) else "",
            "points": getattr(step, "points", None),
            "ready": _is_ready(plain, getattr(step, "name", ""), workbook),
            "sealed": getattr(step, "name", "") in sealed,
            "job": running.get(f"{getattr(step, 'name', '')} {workbook.student}", ""),
        }
        for step in texts.steps
    ]
    return page(
        request,
        "sheet.html.j2",
        status=400 if problem else 200,
        sheet=texts,
        workbook=workbook,
        steps=steps,
        missing=missing(plain, workbook),
        problem=problem,
        at=form.get("name", "") if form is not None else "",
        typed=form if form is not None else {},
        say=lambda text, **words: say(workbook.language, text, **words),
        address=_address(plain, workbook),
    )


def _is_ready(sheet: Sheet, name: str, workbook: Workbook) -> bool:
    return not name or all(step.name in workbook.predictions for step in predictions_before(sheet, name))


def _address(sheet: Sheet, workbook: Workbook, anchor: str = "", path: str = "") -> str:
    query = urlencode({"student": workbook.student, "language": workbook.language})
    return f"/course/{sheet.name}{path}?{query}{f'#{anchor}' if anchor else ''}"


def _sheet(name: str) -> tuple[Sheet, Path]:
    # Only sheets that are installed: a page names no file.
    if (file := sheet_files().get(name)) is None:
        raise RequestError(f"sheet {name[:60]} not found", hint="choose one of the list")
    return read_sheet(file), file


def _of_form(request: Request) -> tuple[Sheet, Path, Workbook]:
    plain, file = _sheet(request.path_params["sheet"])
    return plain, file, Shelf(home()).find(plain, check_student(plain, request.query_params.get("student", "")))


def predict(request: Request, form: Form) -> Response:
    """Make a prediction."""
    plain, file, workbook = _of_form(request)
    name = form.get("name", "")
    try:
        prediction = read_prediction(form.get("direction", ""), form.get("size", ""), form.get("why", ""))
        Shelf(home()).predict(plain, workbook.student, name, prediction)
    except RequestError as error:
        return _page(request, plain, translated(file, workbook.language), workbook, error.message, form)
    return RedirectResponse(_address(plain, workbook, f"step-{name}"), status_code=303)


def answer(request: Request, form: Form) -> Response:
    """Answer a question."""
    plain, file, workbook = _of_form(request)
    name = form.get("name", "")
    try:
        Shelf(home()).answer(plain, workbook.student, name, form.get("value", ""))
    except RequestError as error:
        return _page(request, plain, translated(file, workbook.language), workbook, error.message, form)
    return RedirectResponse(_address(plain, workbook, f"step-{name}"), status_code=303)


def measure(request: Request, form: Form) -> Response:
    """Start the study of a step, and show its progress."""
    plain, _, workbook = _of_form(request)
    step = plain.find_kind(form.get("name", ""), MeasureStep)
    workbook.require_predictions(plain, step.name)
    jobs = request_lab(request).service.jobs
    words = ["course", "measure", plain.name, step.name, "--student", workbook.student, "--quiet", "--json"]
    job = jobs.start(f"{plain.name} {step.name} {workbook.student}", words, jobs.new_directory())
    return RedirectResponse(f"/jobs/{job.id}", status_code=303)


def data(request: Request) -> Response:
    """Return the made data of a step as a file."""
    plain, _, workbook = _of_form(request)
    step = plain.find_kind(request.path_params["step"], SimulateStep)
    workbook.require_predictions(plain, step.name)
    text = made_data(plain, step, workbook.student, workbook.seed(plain, step.name)).text()
    return _download(text.encode(), f"{plain.name}-{step.name}.csv", "text/csv; charset=utf-8")


def hand_in(request: Request) -> Response:
    """Return the file to hand in."""
    plain, _, workbook = _of_form(request)
    name = f"{plain.name}-{workbook.student}{SUFFIX}"
    with TemporaryDirectory(prefix="ajuste-hand-in-") as directory, Store(home().store_url) as store:
        file = Path(directory) / f"{now()[:10]}{SUFFIX}"
        write_hand_in(file, workbook, store, ajuste_version())
        return _download(file.read_bytes(), name, "application/octet-stream")


def _download(content: bytes, name: str, kind: str) -> Response:
    return Response(content, media_type=kind, headers={"content-disposition": f'attachment; filename="{name}"'})


ROUTES: Final = (
    Route("/course", listed),
    Route("/course/{sheet}", show),
    Route("/course/{sheet}/predict", handled(predict), methods=["POST"]),
    Route("/course/{sheet}/answer", handled(answer), methods=["POST"]),
    Route("/course/{sheet}/measure", handled(measure), methods=["POST"]),
    Route("/course/{sheet}/data/{step}", data),
    Route("/course/{sheet}/hand-in", hand_in),
)
