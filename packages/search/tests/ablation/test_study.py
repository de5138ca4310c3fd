"""A profile's lines as the factors of a study."""

from __future__ import annotations

import pytest
from packages.search.tests.apart import SETS, placed, resolved

from ajuste.catalogue.loader import catalogue
from ajuste.cli.saving import study_text
from ajuste.model.error import RequestError
from ajuste.run.planning import planned_study
from ajuste.study.builtin import find_study
from ajuste.study.check import check
from ajuste.study.command_line.request import Request
from ajuste.study.command_line.study import adhoc_document, adhoc_study, study_without_profiles
from ajuste.study.explain import design_words
from ajuste.study.profile import Placed
from ajuste.study.read import read_study
from ajuste_search.ablation.study import ablation_study

FEW = {name: SETS[name] for name in ("vm.swappiness", "vm.dirty_ratio", "sched_min_granularity_ns")}


def test_few_lines_make_every_combination_of_them() -> None:
    study = resolved(placed(FEW))
    assert study.baseline == "nothing of it"
    assert set(study.names) >= {"the whole", "only vm.swappiness", "all but vm.dirty_ratio"}
    assert len(study.names) == 8
    written = {
        configuration.configuration.name: {w.tunable for w in configuration.writes}
        for configuration in study.configurations
    }
    assert written["nothing of it"] == set()
    assert written["the whole"] == set(FEW)
    assert written["all but vm.dirty_ratio"] == set(FEW) - {"vm.dirty_ratio"}


def test_what_is_so_already_and_what_is_left_out_is_told_with_the_results() -> None:
    notes = " ".join(resolved(placed(FEW)).notes)
    assert "vm.laptop_mode = 0" in notes
    assert "script script = x (is a program)" in notes


def test_the_design_is_told_in_words() -> None:
    few, many = resolved(placed(FEW)), resolved(placed())
    assert "every combination" in design_words(few.study, [c.configuration for c in few.configurations])
    assert "in its reverse" in design_words(many.study, [c.configuration for c in many.configurations])


def test_a_study_gives_its_workload_and_its_own_factors_stay_at_their_baselines() -> None:
    study = read_study(find_study("granularity"), catalogue())
    apart = ablation_study(study, placed({"vm.swappiness": "10", "vm.dirty_ratio": "40"}))
    assert apart.workload == study.workload
    assert apart.name == "granularity-ablate"
    assert [len(factor.levels) for factor in apart.factors] == [1, 2, 2]
    assert apart.factors[0].levels == (study.factors[0].baseline_level,)
    assert check(apart, catalogue()) == []
    ablation = ablation_study(study, placed({study.factors[0].name: "3000000"}))
    assert [factor.name for factor in ablation.factors] == [study.factors[0].name]


def test_whole_profiles_are_levels_of_one_factor_beside_the_machine_as_it_is() -> None:
    request = Request((("sleep", "1"),), profile="sysctl:p.conf", vm=True)
    study = adhoc_study(request, catalogue(), (placed(FEW),))
    (factor,) = study.factors
    assert (factor.name, factor.levels) == ("profile", ("as it is", "quick"))
    assert factor.settings["quick"] == FEW
    assert study_without_profiles(request, catalogue()).target.kernel == "debian:6.12"
    assert 'combine = "all"' in study_text(adhoc_document(request, catalogue(), (placed(FEW),))[0], "x")


def test_profiles_are_on_one_kernel_and_a_profile_must_change_something() -> None:
    with pytest.raises(RequestError, match="does not support several kernels"):
        study_without_profiles(Request((("true",),), profile="x", kernel="debian:5.10,debian:6.1"), catalogue())
    nothing = Placed(placed(FEW).profile, (), placed(FEW).unchanged, placed(FEW).unmapped)
    with pytest.raises(RequestError, match="changes no setting of this target"):
        resolved(nothing)


def test_a_hint_lists_what_a_profile_does_not_set() -> None:
    few = placed(FEW)
    with pytest.raises(RequestError) as single:
        resolved(Placed(few.profile, (), few.unchanged, few.unmapped))
    assert single.value.hint == (
        "try another profile: 1 line already in effect, 1 left out (script script = x: is a program)"
    )
    with pytest.raises(RequestError) as four:
        resolved(Placed(few.profile, (), (), few.unmapped * 4))
    assert str(four.value.hint).endswith("; 1 more)")
    with pytest.raises(RequestError, match="quick sets nothing") as none:
        resolved(Placed(few.profile, (), (), ()))
    assert none.value.hint == "try another profile"


def test_the_lines_of_a_profile_have_the_units_of_their_tunables() -> None:
    named_as_in_sysctl = {"kernel.sched_min_granularity_ns": "10000000", "vm.dirty_ratio": "40"}
    plan = planned_study(resolved(placed(named_as_in_sysctl)), catalogue())
    assert plan.units == {"kernel.sched_min_granularity_ns": "ns", "vm.dirty_ratio": "%"}


def test_one_line_is_one_line_in_words() -> None:
    plan = planned_study(resolved(placed({"vm.dirty_ratio": "40"})), catalogue())
    assert "the shares of 1 line on" in plan.correction
