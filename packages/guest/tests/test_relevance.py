"""Looking whether what varies can matter: trials beside those of the study, what follows from them; it is played."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from ajuste.analysis.results import assemble
from ajuste.catalogue.loader import catalogue
from ajuste.design.stopping import Stop
from ajuste.executor.executor import Depth
from ajuste.kernel.spec import parse_spec
from ajuste.model.cost import CostFunction, Costs, NamedCosts
from ajuste.model.error import RequestError
from ajuste.model.event import Sample
from ajuste.model.kernel import KernelVersion
from ajuste.model.modelled import ModelledMachine
from ajuste.model.plan import Plan
from ajuste.model.relevance import NO_CHANCE, NoChance
from ajuste.model.trial import Observation
from ajuste.report.format import result_labels
from ajuste.report.headline import headlines
from ajuste.run.relevance import RelevanceLook
from ajuste.run.runner import Executors, Runner
from ajuste.store.store import Store
from ajuste.study.read import read_study
from ajuste.study.resolve import resolve
from ajuste.study.resolved import ResolvedStudy
from ajuste_guest.relevance import MOST_PROBES, GuestObserver, probed
from played import Notes, PlayedExecutor, agent_events
from shell import small

SWAPPINESS = (("sched_min_granularity_ns", "vm.swappiness"), ("750000, 75000000", "10, 60"))
Figures = Mapping[str, Mapping[str, tuple[int, int]]]
NO_SWAP: Figures = {"meminfo": {"SwapTotal": (0, 0)}, "vmstat": {"pgscan_anon": (4, 4)}}
SWAPPING: Figures = {"meminfo": {"SwapTotal": (9, 9)}, "vmstat": {"pswpin": (0, 3), "pgscan_anon": (0, 5)}}
TCP = frozenset(catalogue().conditions["tcp"].functions)


@dataclass(eq=False)
class Guest(PlayedExecutor):
    """A guest whose samplers read ``figures`` before and after, and whose kernel runs these functions."""

    figures: Figures
    ran: tuple[str, ...] | None = None
    broken: bool = False
    plans: list[Plan] = field(default_factory=list)
    probes: list[Plan] = field(default_factory=list)

    def run(self, plan: Plan) -> Observation:
        (self.probes if plan.samplers else self.plans).append(plan)
        return self._observe(plan)

    def _observe(self, plan: Plan) -> Observation:
        if self.broken and plan in self.probes:
            return Observation(problem="the guest hung")
        *events, end = agent_events(plan, 100 + crc32(f"{plan.id} {plan.writes}".encode()) % 40)
        sources = {sampler.source for sampler in plan.samplers}
        for source in sources & self.figures.keys():
            for place, at_ns in enumerate((3, 10**9)):
                values: Any = {name: pair[place] for name, pair in self.figures[source].items()}
                events.append(Sample(at_ns=at_ns, source=source, values=values))  # type: ignore[arg-type]
        return Observation(events=(*events, end), lines="", host_seconds=1.5)

    def count(self, plan: Plan, depth: Depth, machine: ModelledMachine | None = None) -> Observation:
        if self.ran is None:
            raise RequestError("this QEMU has no plugins")
        costs = Costs(version=1, depth=depth, user=0, kernel=0, faulted=0, tasks=())  # type: ignore[arg-type]
        self.probes.append(plan)
        return replace(self._observe(plan), costs=costs)

    def named(self, costs: Costs) -> NamedCosts:
        functions = tuple(CostFunction(name=name, file="", space="kernel") for name in self.ran or ())
        return NamedCosts(faulted=0, functions=functions, parts=())


@pytest.fixture
def study(tmp_path: Path) -> Callable[..., ResolvedStudy]:
    def resolving(*parts: tuple[str, str]) -> ResolvedStudy:
        text = small(3, 12)
        for old, new in parts:
            text = text.replace(old, new)
        (tmp_path / "small.toml").write_text(text)
        read = read_study(tmp_path / "small.toml", catalogue(), parse_kernel=parse_spec)
        kernels = {"debian:5.10": KernelVersion(major=5, minor=10)}
        return resolve(read, catalogue(), kernels, lambda name: f"/bin/{name}")

    return resolving


@dataclass
class Carried:
    stop: Stop
    guest: Guest
    messages: list[str]
    no_chance: tuple[NoChance, ...] | None


def carry_out(
    resolved: ResolvedStudy, store: Store, guest: Guest, known: tuple[NoChance, ...] | None = None
) -> Carried:
    run = store.new_run(study="s", fingerprint="f", seed=1, ajuste="0", named="s", resolved="", environment={})
    messages: list[str] = []
    look = RelevanceLook(GuestObserver(resolved, catalogue(), lambda _: TCP), lambda _: None, messages.append, known)
    with Executors(lambda _: guest, lambda *_: None) as executors:
        stop = Runner(resolved, run, store, executors, Notes(), None, look).carry_out()
    assert len(store.trials(run)) == len(guest.plans), "probes are no part of the results"
    return Carried(stop, guest, messages, look.no_chance)


def test_a_study_of_what_cannot_matter_ends_with_its_fewest_blocks_and_says_why(
    study: Callable[..., ResolvedStudy], store: Store
) -> None:
    resolved = study(*SWAPPINESS)
    done = carry_out(resolved, store, Guest(NO_SWAP))
    assert done.stop == Stop("irrelevant", "what varies had no chance to matter in 3 blocks")
    (message,) = done.messages
    assert message.startswith("vm.swappiness cannot matter here: no swap is on. To see an effect, turn swap on")
    assert len(done.guest.probes) == 2, "one more trial for each level"
    assert done.no_chance is not None
    assert done.no_chance[0].where == "in 2 trials beside those of the study"


def test_as_many_blocks_as_are_asked_for_are_measured(study: Callable[..., ResolvedStudy], store: Store) -> None:
    done = carry_out(study(*SWAPPINESS, ("min_blocks = 3", "min_blocks = 7")), store, Guest(NO_SWAP))
    assert done.stop == Stop("irrelevant", "what varies had no chance to matter in 7 blocks")


@pytest.mark.parametrize("guest", [Guest(SWAPPING), Guest(NO_SWAP, broken=True), Guest({})])
def test_where_it_mattered_or_nobody_can_tell_nothing_is_said(
    study: Callable[..., ResolvedStudy], store: Store, guest: Guest
) -> None:
    done = carry_out(study(*SWAPPINESS), store, guest)
    assert (done.stop.why, done.messages, done.no_chance) == ("budget", [], ())


@pytest.mark.parametrize(
    ("factor", "guest", "probes"),
    [
        (SWAPPINESS, Guest(SWAPPING), 1),
        (SWAPPINESS, Guest({}), 2),
        # A rate of 1 % would not be reached if the other trial took ten times as long and nothing waited there.
        ((), Guest({"schedstat": {"cpu.wait_ns": (0, 5 * 10**8)}}), 1),
        ((), Guest({"schedstat": {"cpu.wait_ns": (0, 5 * 10**7)}}), 2),
    ],
)
def test_no_more_trials_are_made_than_leave_no_doubt(
    study: Callable[..., ResolvedStudy], store: Store, factor: tuple[tuple[str, str], ...], guest: Guest, probes: int
) -> None:
    assert carry_out(study(*factor), store, guest).no_chance == ()
    assert len(guest.probes) == probes


def test_what_an_earlier_process_found_is_not_looked_for_again(
    study: Callable[..., ResolvedStudy], store: Store
) -> None:
    known = (NoChance(factor="vm.swappiness", saw="no swap is on"),)
    done = carry_out(study(*SWAPPINESS), store, Guest(SWAPPING), known)
    assert (done.stop.why, done.messages) == ("irrelevant", [])
    assert not done.guest.probes


def test_functions_tell_what_no_sampler_can(study: Callable[..., ResolvedStudy], store: Store) -> None:
    resolved = study(("sched_min_granularity_ns", "net.ipv4.tcp_sack"), ("750000, 75000000", "false, true"))
    done = carry_out(resolved, store, Guest({}, ran=("schedule",)))
    assert done.no_chance is not None
    assert [reason.saw for reason in done.no_chance] == ["no TCP segment was sent or received"]
    assert set(done.no_chance[0].never_ran) == TCP
    assert carry_out(resolved, store, Guest({}, ran=("schedule", "tcp_connect"))).messages == []
    assert carry_out(resolved, store, Guest({}, ran=None, broken=True)).messages == [], "this QEMU has no plugins"


def test_nothing_is_looked_for_where_no_condition_is_known(study: Callable[..., ResolvedStudy], store: Store) -> None:
    resolved = study(("sched_min_granularity_ns", "vm.stat_interval"), ("750000, 75000000", "1, 5"))
    done = carry_out(resolved, store, Guest(NO_SWAP))
    assert (done.no_chance, done.guest.probes) == (None, [])


def test_few_trials_have_every_level_or_it_had_hardly_a_chance(
    study: Callable[..., ResolvedStudy], store: Store
) -> None:
    few, every = probed(study(*SWAPPINESS))
    assert (few, every) == (("vm.swappiness=10", "vm.swappiness=60"), {"vm.swappiness"})
    levels = ", ".join(map(str, range(20)))
    many = study(SWAPPINESS[0], ("750000, 75000000", levels))
    assert len(probed(many)[0]) == MOST_PROBES
    done = carry_out(many, store, Guest(NO_SWAP))
    assert done.messages[0].startswith("vm.swappiness can hardly matter here: no swap is on.")
    assert done.stop.why != "irrelevant"


def test_the_headline_gives_the_reason_and_asks_for_no_more_blocks(
    study: Callable[..., ResolvedStudy], store: Store
) -> None:
    resolved = study(*SWAPPINESS)
    run = store.new_run(study="s", fingerprint="f", seed=1, ajuste="0", named="s", resolved="", environment={})
    guest = Guest(NO_SWAP)
    with Executors(lambda _: guest, lambda *_: None) as executors:
        Runner(resolved, run, store, executors, Notes()).carry_out()
    no_chance = (NoChance(factor="vm.swappiness", saw="no swap is on", instead="turn swap on"),)
    fields = {"run": "R", "stopped": "irrelevant", "stopped_because": ""}
    results = assemble(resolved, store.trials(run), no_chance=no_chance, **fields)  # type: ignore[arg-type]
    assert NO_CHANCE.of(results) == no_chance
    assert results.answer.startswith("vm.swappiness had no chance to matter: no swap is on. ")
    assert results.notes[0] == "vm.swappiness had no chance to matter: no swap is on. To see an effect, turn swap on."
    assert {verdict.more_blocks for verdict in results.verdicts} == {None}
    (headline,) = headlines(results, result_labels(results))
    assert headline.sentence == "In emulation, vm.swappiness had no chance to matter: no swap is on."
