"""The page *New experiment*: a form that writes a study file, shows what it would do, and starts it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from ajuste.catalogue.loader import catalogue
from ajuste.model.error import AjusteError, RequestError
from ajuste.model.wording import sentence_start
from ajuste.report.plan import plan_report
from ajuste.study.builtin import builtin_studies, find_study
from ajuste.study.command_line.defaults import DEFAULT_KERNEL
from ajuste.study.command_line.request import Request as CommandRequest
from ajuste.study.command_line.request import split_commands
from ajuste.study.command_line.study import adhoc_document
from ajuste_lab.rendering import Form, document_page, handled, page, request_lab
from ajuste_lab.service import STUDY_FILE

MOST_SETTINGS: Final = 4
# Settings that `ajuste compare` has options of their own for; there the affinity is called cpus.
_PROCESS: Final = ("nice", "policy", "cgroup_weight")
_KERNELS: Final = ("debian:5.10", "debian:6.1", "debian:6.12", "debian:6.12/rt")
_EXAMPLES: Final = {
    "title": "",
    "question": "",
    "kernel": DEFAULT_KERNEL,
    "workload": "",
    "background": "",
    "metrics": "",
    "min_effect": "2%",
    "blocks": "3..30",
    "max_time": "5m",
    "seed": "1",
    "clock": "virtual",
    "where": "guest",
}

# Places in messages, and the fields of the form that they come from.
_FIELDS: Final = (
    (r"(?:workload\.|--)background", "background"),
    (r"workload\b", "workload"),
    (r"(?:analysis\.|--)(?:metric|describe)", "metrics"),
    (r"--kernel|target\.kernel", "kernel"),
    (r"--clock|target\.clock", "clock"),
    (r"--min-effect|analysis\.smallest_effect", "min_effect"),
    (r"--max-time|budget\.max_minutes", "max_time"),
    (r"--blocks|budget\b", "blocks"),
    (r"--seed|seed|design\.seed", "seed"),
    (r"title|name", "title"),
    (r"question", "question"),
)

_PLACED: Final = re.compile(rf"(?:{re.escape(STUDY_FILE)}(?::\d+)?: )?(?P<place>[^:]+): (?P<message>.+)")
_FACTOR: Final = re.compile(r"factor\[(\d+)\](?:\.(\w+))?")
_OPTION: Final = re.compile(r"--(?:set )?([\w.-]+)")
_MISSING: Final = re.compile(r"kernel \S+ not found")

# A problem that starts with the name of a setting keeps its case.
_STARTS_WITH_NAME: Final = re.compile(r"\S*[._]\S|\S+ = ")

_ROW: Final = re.compile(r"(?:setting|levels)_\d")


def form(request: Request) -> Response:
    """Return the form, filled in from the address, or a study's text to edit."""
    query = request.query_params
    if (run := query.get("run")) or query.get("study"):
        return _text_page(request, _study_text(request, run, query.get("study", "")))
    values = {**_EXAMPLES, **{name: query[name][:500] for name in _EXAMPLES if name in query}}
    settings = [(query.get("setting", "")[:200], query.get("levels", "")[:500])]
    return _form_page(request, values, settings)


def _study_text(request: Request, run: str | None, study: str) -> str:
    service = request_lab(request).service
    if run:
        return service.study_text(service.document(service.run(run)))
    if study not in {builtin.name for builtin in builtin_studies()}:
        raise RequestError(f'study "{study[:80]}" not found', hint="list the built-in studies with `ajuste studies`")
    return find_study(study).read_text(encoding="utf-8")


def plan(request: Request, form: Form) -> Response:
    """Return the plan of the study, or the form again with its errors."""
    service = request_lab(request).service
    text = form.get("text")
    document: dict[str, Any] = {}
    try:
        document = service.read(text) if text is not None else form_document(form)
        planned = service.plan(document)
    except AjusteError as error:
        if text is not None:
            return _text_page(request, text, status=400, problem=str(error), hint=error.hint or "")
        values = {name: form.get(name, default)[:500] for name, default in _EXAMPLES.items()}
        problems = field_problems(error, form, [str(factor["name"]) for factor in document.get("factor", ())])
        return _form_page(request, values, _settings(form), 400, problems, error.hint or "")
    written = service.study_text(document) if text is None else text
    return document_page(request, plan_report(planned), template="plan.html.j2", text=written, target=planned.target)


def start(request: Request, form: Form) -> Response:
    """Run the study in the form."""
    service = request_lab(request).service
    job = service.start(service.read(form.get("text", "")), fresh=form.get("fresh") == "yes")
    return RedirectResponse(f"/jobs/{job.id}", status_code=303)


def field_problems(problem: AjusteError, form: Mapping[str, str], factors: Sequence[str]) -> dict[str, str]:
    """Return the error of each field of the form; errors of no field have the empty name.

    ``factors`` are the names of the study's factors, in order.
    """
    problems: dict[str, str] = {}
    for line in str(problem).split("\n"):
        placed = _PLACED.fullmatch(line)
        # What the package lists lack is known only to a plan, which names the kernel.
        field = _field_at(placed["place"], form, factors) if placed else "kernel" if _MISSING.match(line) else ""
        message = placed["message"] if placed and field else line
        message = message if _STARTS_WITH_NAME.match(message) else sentence_start(message)
        sentence = message if message.endswith("?") else f"{message}."
        problems[field] = f"{problems[field]}\n{sentence}" if field in problems else sentence
    return problems


def _field_at(place: str, form: Mapping[str, str], factors: Sequence[str]) -> str:
    rows = {name: row for row, (name, _) in enumerate(_settings(form)) if name}
    if match := _FACTOR.match(place):
        row = rows.get(factors[int(match[1]) - 1]) if int(match[1]) <= len(factors) else None
        if row is None:  # Settings of one level are one factor together.
            row = next((row for name, row in rows.items() if place.endswith(f".{name}")), None)
        return "" if row is None else f"{'setting' if match[2] == 'name' else 'levels'}_{row}"
    options = {_field(name) or name: row for name, row in rows.items()}
    if (match := _OPTION.match(place)) and match[1] in options:
        return f"levels_{options[match[1]]}"
    fields = (field for pattern, field in _FIELDS if re.match(pattern, place))
    return place if _ROW.fullmatch(place) else next(fields, "")


def form_document(form: Mapping[str, str]) -> dict[str, Any]:
    """Return the study of a filled-in form, as ``ajuste compare`` would write it. Raises RequestError."""
    values = {name: form.get(name, "").strip() for name in _EXAMPLES}
    settings = [(name, levels) for name, levels in _settings(form) if name or levels]
    missing = [
        f"levels_{row}: give levels, such as 10, 60" if name else f"setting_{row}: choose a setting"
        for row, (name, levels) in enumerate(_settings(form))
        if bool(name) != bool(levels)
    ]
    missing += [
        f"levels_{row}: found a semicolon; expected commas between levels, such as {levels.replace(';', ', ')}"
        for row, (_, levels) in enumerate(_settings(form))
        if ";" in levels
    ]
    if not values["workload"]:
        missing.append("workload: choose a workload, such as hackbench")
    if missing:
        raise RequestError("\n".join(missing), hint="give each of these fields what it expects")
    options = {_field(name): levels for name, levels in settings if _field(name)}
    request = CommandRequest(
        commands=split_commands(tuple(_words("workload", values["workload"]))),
        set=tuple(f"{name}={_levels(levels)}" for name, levels in settings if not _field(name)),
        nice=options.get("nice"),
        policy=options.get("policy"),
        cpus=options.get("cpus"),
        cgroup_weight=options.get("cgroup_weight"),
        kernel=None if values["where"] == "host" else values["kernel"] or DEFAULT_KERNEL,
        vm=values["where"] != "host",
        clock=None if values["where"] == "host" else values["clock"] or None,
        background=tuple(part.strip() for part in values["background"].split(";") if part.strip()),
        metric=tuple(part.strip() for part in values["metrics"].split(",") if part.strip()),
        min_effect=values["min_effect"] or None,
        max_time=values["max_time"] or None,
        blocks=values["blocks"] or None,
        seed=_whole("seed", values["seed"]),
    )
    document, _ = adhoc_document(request, catalogue())
    named = {name: values[name] for name in ("title", "question") if values[name]}
    title = "".join(c if c.isascii() and c.isalnum() else "-" for c in values["title"].lower())
    return {**document, **named, "name": "-".join(filter(None, title.split("-")))[:60] or "lab"}


def _field(setting: str) -> str:
    return {"affinity": "cpus"}.get(setting, setting if setting in _PROCESS else "")


def _levels(text: str) -> str:
    return ",".join(part.strip() for part in text.split(","))


def _words(what: str, text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise RequestError(f"{what}: {error}", hint="close every quotation mark") from error


def _whole(what: str, text: str) -> int | None:
    if not text:
        return None
    if not (text.isdecimal() and len(text) < 19):
        raise RequestError(f"{what}: {text[:40]!r} is not a whole number of at least 0")
    return int(text)


def _settings(form: Mapping[str, str]) -> list[tuple[str, str]]:
    pairs = ((form.get(f"setting_{n}", "").strip(), form.get(f"levels_{n}", "").strip()) for n in range(MOST_SETTINGS))
    return [(name[:200], levels[:500]) for name, levels in pairs]


def _form_page(
    request: Request,
    values: Mapping[str, str],
    settings: list[tuple[str, str]],
    status: int = 200,
    problems: Mapping[str, str] = MappingProxyType({}),
    hint: str = "",
) -> Response:
    known = catalogue()
    lab = request_lab(request)
    rows = [*settings, *[("", "")] * MOST_SETTINGS][:MOST_SETTINGS]
    kernels = dict.fromkeys([*_KERNELS, *(head.kernel for head in lab.service.runs()[:500] if head.kernel)])
    return page(
        request,
        "new.html.j2",
        status=status,
        values=values,
        settings=rows,
        tunables=[*known.tunables.values()],
        workloads=[workload for workload in known.workloads.values() if not workload.endless],
        backgrounds=[workload for workload in known.workloads.values() if workload.endless],
        metrics=list(known.metrics.values()),
        kernels=[kernel for kernel in kernels if "," not in kernel][:30],
        studies=builtin_studies(),
        problems=problems,
        hint=_for_page(hint),
    )


def _for_page(hint: str) -> str:
    # Without a page of the manual, and without an option, which nobody can give here.
    return "" if hint.startswith("see ") or "--" in hint else hint


def _text_page(request: Request, text: str, status: int = 200, **messages: str) -> Response:
    problem, hint = messages.get("problem", ""), messages.get("hint", "")
    return page(request, "study.html.j2", status=status, text=text, problem=problem, hint=hint)


ROUTES: Final = (
    Route("/new", form),
    Route("/new/plan", handled(plan), methods=["POST"]),
    Route("/new/run", handled(start), methods=["POST"]),
)
