"""``ajuste live`` on the command line: its metrics, guards and slices, and the study that they come to."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Final, cast, get_args

from ajuste.catalogue.loader import Catalogue
from ajuste.model.error import Place, RequestError
from ajuste.model.live import LiveDesign, LiveMetric, SwitchbackOrder
from ajuste.model.wording import listed
from ajuste.study.command_line.guards import read_guard
from ajuste.study.command_line.job import read_metric
from ajuste.study.command_line.request import Request, seconds, share, wrong
from ajuste.study.command_line.study import adhoc_study
from ajuste.study.job import PatternTable
from ajuste.study.measures import own_metric
from ajuste.study.schema import Study

HINT: Final = "see `ajuste live --help` for examples"
LEAST_SLICE_S: Final = 2.0
LONGEST_S: Final = 60 * 86_400.0

_SOURCE: Final = re.compile(r"(.*?)=([a-z]+):(.+)", re.DOTALL)
_EXAMPLE: Final = "for example 'latency,s,lower=prometheus:http://127.0.0.1:9100/metrics#demo_latency_seconds'"
_OTHERWISE: Final = "add --watch '{},UNIT=SOURCE:WHERE'"
_COUNTER: Final = "counter"
_DIRECTIONS: Final = frozenset({"lower", "higher", "none"})


@dataclass(frozen=True)
class LiveRequest:
    """Each field is the option of that name, as it was given."""

    set: tuple[str, ...]
    slice: str
    metric: tuple[str, ...]
    watch: tuple[str, ...] = ()
    control: str | None = None
    guard: tuple[str, ...] = ()
    washout: str | None = None
    for_: str = "1h"
    order: str = "random"
    max_load: float | None = None
    max_pressure: str | None = None
    baseline: tuple[str, ...] = ()
    one_at_a_time: bool = False
    min_effect: str | None = None
    confidence: str | None = None
    seed: int | None = None
    name: str | None = None


def live_design(request: LiveRequest) -> LiveDesign:
    """What is read and when. Raises RequestError."""
    metrics = tuple(_metric("--metric", text) for text in request.metric)
    if not metrics:
        raise RequestError("--metric is required: what should get better?", hint=_EXAMPLE)
    watched = tuple(_metric("--watch", text) for text in request.watch)
    control = _metric("--control", request.control) if request.control else None
    known = [one.metric.name for one in (*metrics, *watched, *((control,) if control else ()))]
    if twice := next((name for name in known if known.count(name) > 1), None):
        raise RequestError(f"two metrics are called {twice}", hint="use a different name for each")
    guarded = {one.metric.name: one.metric for one in (*metrics, *watched)}
    slice_s = seconds("--slice", request.slice)
    if slice_s < LEAST_SLICE_S:
        raise wrong("--slice", request.slice, f"at least {LEAST_SLICE_S:g} s", HINT)
    washout_s = _washout(request.washout, slice_s)
    for_s = seconds("--for", request.for_)
    if not slice_s <= for_s <= LONGEST_S:
        raise wrong("--for", request.for_, "at least one slice, and at most 60 days", HINT)
    return LiveDesign(
        metrics=metrics,
        watched=watched,
        control=control,
        guards=tuple(read_guard(text, guarded, HINT, _OTHERWISE) for text in request.guard),
        slice_s=slice_s,
        washout_s=washout_s,
        for_s=for_s,
        order=_order(request.order),
        max_load=_max_load(request.max_load),
        max_pressure=_max_pressure(request.max_pressure),
    )


def live_study(request: LiveRequest, design: LiveDesign, catalogue: Catalogue, program: str) -> Study:
    """The study: what varies, and what is to be known. ``program`` is what lasts as long as a slice."""
    if not request.set:
        raise RequestError("--set is required: what should vary?", hint="add --set vm.dirty_background_ratio=10,2")
    study = adhoc_study(
        Request(
            commands=((program,),),
            set=request.set,
            baseline=request.baseline,
            one_at_a_time=request.one_at_a_time,
            metric=tuple(_as_pattern(one) for one in design.metrics),
            min_effect=request.min_effect,
            confidence=request.confidence,
            warm_up=0,
            seed=request.seed,
            name=request.name or "live",
        ),
        catalogue,
    )
    varied = listed([f"{factor.name} {', '.join(factor.levels)}" for factor in study.factors])
    metrics = listed([one.metric.name for one in design.metrics])
    title, question = f"Live: {varied}", f"What do {varied} change for {metrics} of the running service?"
    most_blocks = max(study.budget.min_blocks, math.ceil(design.for_s / design.slice_s / 2))
    budget = study.budget.model_copy(update={"max_blocks": most_blocks, "max_minutes": design.for_s / 60})
    return study.model_copy(update={"title": title, "question": question, "budget": budget})


def _as_pattern(one: LiveMetric) -> str:
    """As ``ajuste compare`` is told of a metric; nothing is ever read by it."""
    own = one.metric
    words = [own.name, *([own.unit] if own.unit else []), own.direction]
    words += ["difference"] if own.scale == "difference" else []
    return f"{','.join(words)}=regex:^{own.name}=(.*)$"


def _metric(option: str, text: str) -> LiveMetric:
    match = _SOURCE.fullmatch(text)
    if match is None:
        raise wrong(option, text, "NAME,UNIT,lower=SOURCE:WHERE", _EXAMPLE)
    name, *words = match[1].split(",")
    head = ",".join([name, *(word for word in words if word.strip() != _COUNTER)])
    if option != "--metric" and not _DIRECTIONS & set(head.split(",")):
        head += ",none"
    try:
        table = read_metric(f"{head}=regex:(.)")
        assert isinstance(table, dict)
        metric = own_metric(PatternTable.model_validate(table))
    except RequestError as failure:
        raise RequestError(failure.message, hint=_EXAMPLE, place=Place(f"{option} {text}")) from None
    except ValueError:
        raise wrong(option, text, "a name of lower-case letters, digits and hyphens before the =", _EXAMPLE) from None
    return LiveMetric(
        metric=metric.model_copy(update={"what": f"read from {match[2]}:{match[3]}"}),
        kind=match[2],
        where=match[3],
        counter=_COUNTER in map(str.strip, words),
    )


def _order(text: str) -> SwitchbackOrder:
    if text not in get_args(SwitchbackOrder):
        raise wrong("--order", text, "random, mirrored or latin", HINT)
    return cast(SwitchbackOrder, text)


def _washout(text: str | None, slice_s: float) -> float | None:
    if text is None:
        return None
    found = 0.0 if text.strip() in ("0", "0s") else seconds("--washout", text)
    if found > slice_s / 2:
        raise wrong("--washout", text, f"at most half of a slice ({slice_s / 2:g} s)", HINT)
    return found


def _max_load(given: float | None) -> float | None:
    if given is not None and not 0 < given < math.inf:
        raise wrong("--max-load", f"{given:g}", "a load average above 0, such as the number of CPUs", HINT)
    return given


def _max_pressure(text: str | None) -> float | None:
    if text is None:
        return None
    found = share("--max-pressure", text)
    if not 0 < found < 1:
        raise wrong("--max-pressure", text, "a share of the time between 0 and 100 %", HINT)
    return found
