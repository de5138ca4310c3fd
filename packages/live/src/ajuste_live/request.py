"""``ajuste live`` on the command line: its metrics, guards and slices, and the resulting study."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, cast, get_args

from ajuste.catalogue.loader import Catalogue
from ajuste.model.error import Place, RequestError
from ajuste.model.live import LiveDesign, LiveMetric
from ajuste.model.tunable import SERVER_KINDS, SERVICE_PREFIX
from ajuste.model.wording import listed
from ajuste.study.command_line.conditions import read_guard
from ajuste.study.command_line.job import read_metric
from ajuste.study.command_line.option import option, texts
from ajuste.study.command_line.request import Request, seconds, share, wrong
from ajuste.study.command_line.study import adhoc_document
from ajuste.study.job import PatternTable
from ajuste.study.metrics import custom_metric
from ajuste.study.read import checked_study
from ajuste.study.schema import Study
from ajuste_stats.terms import SwitchbackOrder

HINT: Final = "see `ajuste live --help` for examples"
LEAST_SLICE_S: Final = 2.0
LONGEST_S: Final = 60 * 86_400.0

_SOURCE: Final = re.compile(r"(.*?)=([a-z]+):(.+)", re.DOTALL)
_EXAMPLE: Final = "for example 'latency,s,lower=prometheus:http://127.0.0.1:9100/metrics#demo_latency_seconds'"
_OTHERWISE: Final = "add --watch '{},UNIT=SOURCE:WHERE'"
_SERVERS: Final = " or ".join(f"--service {kind}" for kind in SERVER_KINDS)
_COUNTER: Final = "counter"
_DIRECTIONS: Final = frozenset({"lower", "higher", "none"})


@dataclass(frozen=True)
class LiveRequest:
    """The options of ``ajuste live`` as typed, by field."""

    service: tuple[str, ...] = texts(
        "Running server that --set service.NAME=LEVEL,LEVEL varies: redis or postgresql, with its port or socket if "
        "they are not the usual ones, such as redis:6380 (repeatable).",
        "SERVER[:ADDRESS]",
    )
    slice: str = option("Length of a slice, in which one configuration is tried: 60s.", "DURATION", default="")
    washout: str | None = option(
        "Do not count this much of each slice (default: as long as the metrics respond).", "DURATION"
    )
    for_: str = option("Stop after this time, decided or not (default: 1h).", "DURATION", default="1h")
    order: str = option(
        "Of the configurations in a block: random; mirrored (there and back); latin (each follows every other).",
        "ORDER",
        default="random",
    )
    metric: tuple[str, ...] = texts(
        "Metric that decides, and where it is: NAME,UNIT,lower=prometheus:URL#SERIES; also promql:, command:, "
        "regex:FILE#PATTERN, json:FILE#/POINTER, psi:, proc:, cgroup:, process: (repeatable).",
        "METRIC",
    )
    watch: tuple[str, ...] = texts("Also read this metric, for guards and the report (repeatable).", "METRIC")
    control: str | None = option("Metric of the load that no setting changes, such as requests per second.", "METRIC")
    guard: tuple[str, ...] = texts(
        "Restore at once when this does not hold: 'METRIC < LIMIT' or 'METRIC not worse than SHARE' (repeatable).",
        "GUARD",
    )
    max_load: float | None = option("Pause while the load average of one minute exceeds this.", "NUMBER")
    max_pressure: str | None = option(
        "Pause while tasks wait for CPU, I/O or memory for more of the time (PSI): 40%.", "SHARE"
    )


def live_design(request: LiveRequest) -> LiveDesign:
    """Return the design: the sources and their timing. Raises RequestError."""
    if not request.slice:
        raise RequestError(
            "--slice is required: how long does each configuration run at a time?", hint="add --slice 60s"
        )
    metrics = tuple(_metric("--metric", text) for text in request.metric)
    if not metrics:
        raise RequestError("--metric is required: what should get better?", hint=_EXAMPLE)
    watched = tuple(_metric("--watch", text) for text in request.watch)
    control = _metric("--control", request.control) if request.control else None
    known = [metric.metric.name for metric in (*metrics, *watched, *((control,) if control else ()))]
    if twice := next((name for name in known if known.count(name) > 1), None):
        raise RequestError(f"two metrics are called {twice}", hint="use a different name for each")
    guarded = {metric.metric.name: metric.metric for metric in (*metrics, *watched)}
    slice_s = seconds("--slice", request.slice)
    if slice_s < LEAST_SLICE_S:
        raise wrong("--slice", request.slice, f"at least {LEAST_SLICE_S:g} s", HINT)
    washout_s = _washout(request.washout, slice_s)
    for_s = seconds("--for", request.for_)
    if not slice_s <= for_s <= LONGEST_S:
        raise wrong("--for", request.for_, "at least one slice, and at most 60 days", HINT)
    guards = tuple(read_guard(text, guarded, HINT, _OTHERWISE) for text in request.guard)
    if request.order not in get_args(SwitchbackOrder):
        raise wrong("--order", request.order, "random, mirrored or latin", HINT)
    if request.max_load is not None and not 0 < request.max_load < math.inf:
        expected = "a load average above 0, such as the number of CPUs"
        raise wrong("--max-load", f"{request.max_load:g}", expected, HINT)
    return LiveDesign(
        metrics=metrics,
        watched=watched,
        control=control,
        guards=guards,
        slice_s=slice_s,
        washout_s=washout_s,
        for_s=for_s,
        order=cast(SwitchbackOrder, request.order),
        max_load=request.max_load,
        max_pressure=_max_pressure(request.max_pressure),
    )


def live_study(
    request: Request, design: LiveDesign, catalogue: Catalogue, program: str, servers: Sequence[str] = ()
) -> Study:
    """Return the study with the factors of ``request``. ``program`` runs during each slice; ``servers`` are the running
    ones. Raises RequestError.
    """
    if not request.set:
        raise RequestError("--set is required: what should vary?", hint="add --set vm.dirty_background_ratio=10,2")
    document, origin = adhoc_document(
        replace(
            request,
            set=tuple(_of_server("--set", text, servers) for text in request.set),
            baseline=tuple(_of_server("--baseline", text, servers) for text in request.baseline),
            commands=((program,),),
            metric=tuple(_as_pattern(metric) for metric in design.metrics),
            warm_up=0,
            name="live" if request.name is None else request.name,
        ),
        catalogue,
    )
    study = checked_study(document, replace(origin, hint=HINT, command="ajuste live"), catalogue)
    varied = listed([f"{factor.name} {', '.join(factor.levels)}" for factor in study.factors])
    metrics = listed([metric.metric.name for metric in design.metrics])
    title, question = f"Live: {varied}", f"What do {varied} change for {metrics} of the running service?"
    most_blocks = max(study.budget.min_blocks, math.ceil(design.for_s / design.slice_s / 2))
    budget = study.budget.model_copy(update={"max_blocks": most_blocks, "max_minutes": design.for_s / 60})
    return study.model_copy(update={"title": title, "question": question, "budget": budget})


def _of_server(option: str, text: str, servers: Sequence[str]) -> str:
    # `service.NAME=…` as the setting of the server that it is of: `redis.NAME[ADDRESS]=…`.
    if not text.startswith(SERVICE_PREFIX):
        return text
    place = Place(f"{option} {text}")
    name, equals, levels = text.removeprefix(SERVICE_PREFIX).partition("=")
    addresses = dict(_server(server) for server in servers)
    if len(addresses) < len(servers):
        raise RequestError(
            "found two servers of one kind; expected one --service of each",
            hint=f"name a setting of the other one by its address, such as {SERVER_KINDS[0]}.{name}[PORT]",
            place=place,
        )
    kind, dot, setting = name.partition(".")
    if not (dot and kind in addresses):
        kind, setting = next(iter(addresses), ""), name
        if len(addresses) != 1:
            raise RequestError(
                f"of which running server is {SERVICE_PREFIX}{name}? {len(addresses) or 'No'} --service given",
                hint=f"write {SERVICE_PREFIX}{kind}.{name}" if addresses else f"add {_SERVERS}",
                place=place,
            )
    address = f"[{addresses[kind]}]" if addresses[kind] else ""
    return f"{kind}.{setting}{address}{equals}{levels}"


def _server(text: str) -> tuple[str, str]:
    kind, _, address = text.partition(":")
    if kind not in SERVER_KINDS:
        raise RequestError(
            f"found {text!r}; expected a running server: {' or '.join(SERVER_KINDS)}, or one with :PORT or :SOCKET",
            hint="use `ajuste compare --service COMMAND` for other servers; it starts the server again for each level",
            place=Place("--service"),
        )
    return kind, address


def _as_pattern(live_metric: LiveMetric) -> str:
    # As an option of `ajuste compare`; nothing is ever read by it.
    metric = live_metric.metric
    words = [metric.name, *([metric.unit] if metric.unit else []), metric.direction]
    words += ["difference"] if metric.scale == "difference" else []
    return f"{','.join(words)}=regex:^{metric.name}=(.*)$"


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
        metric = custom_metric(PatternTable.model_validate(table))
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


def _washout(text: str | None, slice_s: float) -> float | None:
    if text is None:
        return None
    washout_s = 0.0 if text.strip() in ("0", "0s") else seconds("--washout", text)
    if washout_s > slice_s / 2:
        raise wrong("--washout", text, f"at most half of a slice ({slice_s / 2:g} s)", HINT)
    return washout_s


def _max_pressure(text: str | None) -> float | None:
    if text is None:
        return None
    max_share = share("--max-pressure", text)
    if not 0 < max_share < 1:
        raise wrong("--max-pressure", text, "a share of the time between 0 and 100 %", HINT)
    return max_share
