"""The page *Runs*: search by subject and result, compare runs, and import bundles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from ajuste.model.error import RequestError
from ajuste.model.wording import visible_line
from ajuste.report.document import Badge
from ajuste.report.side_by_side import SideBySide, side_by_side, side_by_side_document
from ajuste.report.verdicts import ORDER, word_badge
from ajuste.store.head import PINNED, Head
from ajuste_lab.access import IMPORT, LARGEST_BUNDLE
from ajuste_lab.index import NOTHING_KNOWN, RunFacts
from ajuste_lab.pages.side_by_side import side_by_side_report
from ajuste_lab.rendering import Form, document_page, handled, page, request_lab

KEPT: Final = "keep"
"""The tag by which a person says that a run is worth keeping: ``ajuste store prune --untagged`` spares it."""
ON_A_PAGE: Final = 40
MOST_COMPARED: Final = 12
_MOST_CHOICES: Final = 200
_OFFERED: Final = 40
_BUNDLE: Final = "application/octet-stream"
_STATES: Final = ("running", "unfinished", "failed")


@dataclass(frozen=True)
class RunSearch:
    """The runs to list; an empty field matches all."""

    find: str = ""
    setting: str = ""
    kernel: str = ""
    workload: str = ""
    verdict: str = ""
    tag: str = ""
    state: str = ""

    @staticmethod
    def of(query: QueryParams) -> RunSearch:
        return RunSearch(**{field.name: query.get(field.name, "").strip()[:200] for field in fields(RunSearch)})

    def takes(self, head: Head, facts: RunFacts) -> bool:
        return (
            (not self.kernel or self.kernel in head.kernels)
            and (not self.workload or self.workload == head.workload)
            and (not self.setting or self.setting in facts.settings)
            and (not self.verdict or self.verdict in facts.verdicts)
            and (not self.tag or self.tag in head.tags.split())
            and (not self.state or (self.state == "failed") == (head.stopped == "failed"))
            and (self.state not in ("running", "unfinished") or not head.stopped)
            and (not self.find or self._is_about(head, facts))
        )

    def _is_about(self, head: Head, facts: RunFacts) -> bool:
        parts = (head.id, head.study, head.answer, facts.title, facts.question, *facts.settings)
        text = "\n".join(parts).casefold()
        return all(word in text for word in self.find.casefold().split())


@dataclass(frozen=True)
class RunRowShown:
    """A line of the list."""

    head: Head
    title: str
    settings: tuple[str, ...]
    badges: tuple[Badge, ...]
    tags: tuple[str, ...]
    pinned: bool
    going_on: bool


def listed(request: Request) -> Response:
    """Return the list of runs, or one page of it."""
    lab = request_lab(request)
    heads, facts = lab.runs()
    wanted = RunSearch.of(request.query_params)
    chosen = [head for head in heads if wanted.takes(head, facts.get(head.id, NOTHING_KNOWN))]
    if wanted.state in ("running", "unfinished"):
        chosen = [head for head in chosen if lab.service.is_going_on(head) == (wanted.state == "running")]
    chosen.sort(key=lambda head: PINNED not in head.tags.split())
    # An address with a wrong number shows the nearest page.
    text = request.query_params.get("page", "1")
    number = int(text) if text.isdecimal() and len(text) < 9 else 1
    number = max(1, min(number, -(-len(chosen) // ON_A_PAGE)))
    on_page = chosen[(number - 1) * ON_A_PAGE : number * ON_A_PAGE]
    filters = {name: value for name, value in vars(wanted).items() if value}

    def place(other: int) -> str:
        return "/?" + urlencode({**filters, "page": other})

    # A job without a run yet has no page of its own: the list shows its state.
    jobs = [job for job in lab.service.jobs.all()[:8] if not job.run and (job.alive or job.problem)]
    return page(
        request,
        "runs.html.j2",
        rows=[run_row(head, facts.get(head.id, NOTHING_KNOWN), lab.service.is_going_on(head)) for head in on_page],
        total=len(heads),
        found=len(chosen),
        first=(number - 1) * ON_A_PAGE + 1,
        before=place(number - 1) if number > 1 else "",
        after=place(number + 1) if number * ON_A_PAGE < len(chosen) else "",
        wanted=wanted,
        filtered=bool(filters),
        choices=_choices(heads, facts),
        indexing=lab.index.is_reading,
        jobs=jobs,
        largest_bundle=LARGEST_BUNDLE,
    )


def run_row(head: Head, facts: RunFacts, going_on: bool) -> RunRowShown:
    """Return the line of a run for lists."""
    tags = head.tags.split()
    return RunRowShown(
        head=head,
        title=facts.title or head.study,
        settings=facts.settings,
        badges=verdict_badges(facts.verdicts),
        tags=tuple(tag for tag in tags if tag != PINNED),
        pinned=PINNED in tags,
        going_on=going_on,
    )


def verdict_badges(verdicts: Mapping[str, int]) -> tuple[Badge, ...]:
    """Return a badge for each verdict, with its count."""
    counted = [(word, verdicts[word]) for word in ORDER if verdicts.get(word)]
    return tuple(word_badge(word, f"{word}: {count}" if count > 1 else word) for word, count in counted)


def change(request: Request, form: Form) -> Response:
    """Delete the chosen runs after a confirmation, or redirect to their comparison."""
    lab = request_lab(request)
    chosen = [str(run) for run in form.getlist("run")][:200]
    action = str(form.get("action", ""))
    if not chosen:
        raise RequestError("no run was chosen", hint="tick the runs first")
    if action == "compare":
        return RedirectResponse("/compare?" + urlencode([("run", run) for run in chosen]), status_code=303)
    if action != "delete":
        raise RequestError(f"{action[:40]!r} is nothing that can be done to runs", hint="compare or delete them")
    if form.get("sure") != "yes":
        heads = [lab.service.head(run) for run in chosen]
        return page(request, "sure.html.j2", heads=heads)
    lab.service.delete(chosen)
    return RedirectResponse("/", status_code=303)


def keep(request: Request, form: Form) -> Response:
    """Save tags, pin and note of one run."""
    lab = request_lab(request)
    head = lab.service.head(request.path_params["run"])
    if (note := form.get("note")) is not None:
        lab.notes.keep(head.id, str(note))
    words = str(form.get("tags", " ".join(head.tags.split()))).replace("#", " ").replace(",", " ").split()
    special = [tag for tag in (PINNED, KEPT) if form.get(tag) == "yes"]
    lab.service.set_tags(head.id, [*(word for word in words if word not in (PINNED, KEPT)), *special])
    return RedirectResponse(f"/runs/{head.id}", status_code=303)


def _choices(heads: Sequence[Head], facts: Mapping[str, RunFacts]) -> dict[str, list[str]]:
    # The most frequent first.
    return {
        "setting": _frequent(name for entry in facts.values() for name in entry.settings),
        "kernel": _frequent(kernel for head in heads for kernel in head.kernels),
        "workload": _frequent(head.workload for head in heads),
        "verdict": [word for word in ORDER if any(word in entry.verdicts for entry in facts.values())],
        "tag": _frequent(tag for head in heads for tag in head.tags.split()),
        "state": list(_STATES),
    }


def _frequent(names: Iterable[str]) -> list[str]:
    return [name for name, _ in Counter(name for name in names if name).most_common(_MOST_CHOICES)]


def compared(request: Request) -> Response:
    """Return the comparison of the runs in the address; with fewer than two, a choice of runs to add."""
    chosen = _chosen(request)
    if len(chosen) < 2:
        return _offer(request, chosen)
    comparison = _side_by_side(request, chosen)
    return document_page(request, side_by_side_report(comparison), template="compare.html.j2", compared=comparison)


def compared_document(request: Request) -> Response:
    """Return the comparison for a program."""
    return JSONResponse(side_by_side_document(_side_by_side(request, _chosen(request))))


def _chosen(request: Request) -> list[str]:
    chosen = list(dict.fromkeys(request.query_params.getlist("run")))
    if len(chosen) > MOST_COMPARED:
        raise RequestError(
            f"{len(chosen)} runs were chosen; expected at most {MOST_COMPARED}", hint="choose fewer runs"
        )
    return chosen


def _side_by_side(request: Request, chosen: list[str]) -> SideBySide:
    service = request_lab(request).service
    return side_by_side([service.results(service.run(run)) for run in chosen])


def _offer(request: Request, chosen: list[str]) -> Response:
    lab = request_lab(request)
    heads, facts = lab.runs()
    study = next((head.study for head in heads if head.id in chosen), "")
    offered = sorted((head for head in heads if head.stopped), key=lambda head: head.study != study)[:_OFFERED]
    rows = [run_row(head, facts.get(head.id, NOTHING_KNOWN), going_on=False) for head in offered]
    return page(request, "choose.html.j2", rows=rows, chosen=chosen, study=study)


async def import_bundle(request: Request) -> Response:
    """Import the bundle that is the body of the request; ``name`` is what the person calls it."""
    name = visible_line(request.query_params.get("name", "").strip()[:100]) or "the file"
    kind = request.headers.get("content-type", "")
    if kind != _BUNDLE:
        raise RequestError(f"the request is {kind[:80] or 'of no kind'}; expected the bytes of a bundle ({_BUNDLE})")
    with NamedTemporaryFile(prefix="ajuste-import-", suffix=".ajuste") as upload:
        try:
            async for part in request.stream():
                upload.write(part)
            upload.flush()
        except ClientDisconnect:
            return Response(status_code=400)
        except OSError as error:
            message = f"{name} cannot be kept while it is checked: {error.strerror}"
            raise RequestError(message, hint="make room in the directory of temporary files") from error
        imported = await run_in_threadpool(request_lab(request).service.import_bundle, Path(upload.name), name)
    return JSONResponse({"runs": [asdict(run) for run in imported]})


ROUTES: Final = (
    Route("/", listed),
    Route("/runs", handled(change), methods=["POST"]),
    Route("/runs/{run}/keep", handled(keep), methods=["POST"]),
    Route("/compare", compared),
    Route("/compare.json", compared_document),
    Route(IMPORT, import_bundle, methods=["POST"]),
)
