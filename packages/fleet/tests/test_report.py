"""Reports of many machines: what is said of them, and that ten thousand are as readable as forty."""

from __future__ import annotations

from functools import cache

import pytest
from benchmarks.fleet.many import assembled, played, study

from ajuste.model.fleet import FLEET
from ajuste.model.results import Results
from ajuste.model.verdict import MACHINES
from ajuste.report.document import Paragraph, Picture, Section, Table
from ajuste.report.listings import ENDS, MOST_MACHINES
from ajuste.report.method import environment_facts
from ajuste.report.results import results_report
from ajuste_fleet.model import CanaryRecord, fleet_of
from ajuste_fleet.report import canary_says


@cache
def results(machines: int, blocks: int = 12) -> Results:
    resolved = study()
    trials, owners, about = played(resolved, machines, blocks)
    record = CanaryRecord(stages=(1, None), each=blocks, guards=("elapsed < 20s",), reached=2, machines=machines)
    made = assembled(resolved, trials, owners, {"machines": about, FLEET: record.model_dump(mode="json")}, "it is over")
    return made.model_copy(update={"canary": record.model_dump(mode="json")})


def section(fleet_results: Results, name: str) -> Section:
    section = results_report(fleet_results).section(name)
    assert section is not None
    return section


def rows(fleet_results: Results, name: str) -> list[str]:
    (table,) = (block for block in section(fleet_results, name).blocks if isinstance(block, Table))
    return [str(row.cells[0]) for group in table.groups for row in group.rows]


def paragraphs(fleet_results: Results) -> str:
    return " ".join(
        block.text for block in section(fleet_results, "fleet-section").blocks if isinstance(block, Paragraph)
    )


def test_the_answer_counts_machines_and_names_those_that_differ() -> None:
    fleet_results = results(MOST_MACHINES)
    (fleet,) = fleet_of(fleet_results)
    assert fleet.verdicts["improves"] > 10
    headline = results_report(fleet_results).headline
    assert f"improves elapsed time on {fleet.verdicts['improves']} of 40 machines" in headline
    assert f"worsens it on {fleet.verdicts['worsens']}" in headline
    assert "with one NUMA node" in headline
    assert "with one NUMA node" in fleet_results.verdicts[0].reason
    assert "one NUMA node" in paragraphs(fleet_results)


def test_the_section_has_the_mean_a_new_machine_and_the_group() -> None:
    named = rows(results(MOST_MACHINES), "fleet-section")
    assert named == [
        "Mean of all machines",
        "A new machine",
        "Spread between machines",
        "With one NUMA node",
        "All others",
    ]


def test_forty_machines_have_a_line_each_from_the_least_effect_to_the_largest() -> None:
    fleet_results = results(MOST_MACHINES)
    estimates = {machine.machine: machine.estimate or 0 for machine in MACHINES.of(fleet_results)[0].machines}
    named = rows(fleet_results, "machines-section")
    assert len(named) == MOST_MACHINES
    assert [estimates[name] for name in named] == sorted(estimates.values())


def test_of_more_machines_those_at_both_ends_have_a_line_and_quantiles_say_the_rest() -> None:
    fleet_results = results(120, 4)
    assert len(rows(fleet_results, "machines-section")) == 2 * ENDS
    assert sum(name.endswith("machines have less than") for name in rows(fleet_results, "fleet-section")) == 5
    (picture,) = (block for block in section(fleet_results, "fleet-section").blocks if isinstance(block, Picture))
    assert picture.plot.height < 1000
    machines = next(fact for fact in environment_facts(fleet_results.environment) if fact.name == "machines")
    assert len(machines.parts) == MOST_MACHINES + 1
    assert machines.parts[-1].text.startswith("80 more")


def test_a_canary_order_is_said_with_its_end() -> None:
    assert "stages of 1 and all" in paragraphs(results(MOST_MACHINES))
    stopped = CanaryRecord(stages=(1, 5, None), each=9, reached=2, machines=5, stopped="guard x is broken on lab2")
    assert canary_says(stopped).startswith("Stopped in stage 2 of 3, after 5 machines: guard x is broken on lab2.")


def test_without_stages_all_machines_begin_at_once() -> None:
    assert canary_says(CanaryRecord(stages=(None,), each=12, machines=3)).startswith("All machines began at once")


@pytest.mark.parametrize("machines", [2])
def test_two_machines_are_no_fleet(machines: int) -> None:
    fleet_results = results(machines)
    assert fleet_of(fleet_results) == ()
    assert rows(fleet_results, "machines-section") == ["node00000", "node00001"]
