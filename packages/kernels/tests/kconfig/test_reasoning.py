"""Causes of the values of options, and what is said of them."""

from __future__ import annotations

import pytest

from ajuste_guest.kernel.config import parse_config
from ajuste_kernels.kconfig import KconfigAnswer, KconfigQuestion, OptionExplanation, as_values
from ajuste_kernels.kconfig_reader import KconfigTree, answer


def answered(tree: KconfigTree, **fields: object) -> KconfigAnswer:
    return answer(tree, KconfigQuestion.model_validate(fields))


def explained(tree: KconfigTree, config: str, name: str, wanted: str | None) -> OptionExplanation:
    return answered(tree, config=as_values(parse_config(config)), explain={name: wanted}).explanations[name]


def test_what_the_configuration_says_was_asked_for(tree: KconfigTree) -> None:
    explanation = explained(tree, "CONFIG_NET=y\n", "NET", None)
    assert (explanation.value, explanation.cause) == ("y", "asked")


def test_a_dependency_that_is_not_met_is_named_with_its_own_cause(tree: KconfigTree) -> None:
    explanation = explained(tree, "CONFIG_MPTCP=y\n# CONFIG_NET is not set\n", "MPTCP", "y")
    assert (explanation.value, explanation.cause, explanation.deciding) == ("n", "dependency", ("INET",))
    assert list(explanation.sentences()) == [
        "MPTCP is n: it requires INET (it is n)",
        "INET is n: it requires NET (it is n)",
    ]


def test_what_must_be_off_is_named(tree: KconfigTree) -> None:
    config = "CONFIG_SMP=y\nCONFIG_NUMA=y\nCONFIG_EXPERT=y\nCONFIG_RT=y\n"
    explanation = explained(tree, config, "NUMA_BALANCING", "y")
    assert (explanation.cause, explanation.deciding) == ("dependency", ("RT",))
    assert explanation.sentence == "NUMA_BALANCING is n: it requires !RT (RT is y)"


def test_of_alternatives_all_are_named(tree: KconfigTree) -> None:
    explanation = explained(tree, "CONFIG_RT=y\n", "RT", "y")
    assert explanation.deciding == ("CRAZY", "EXPERT")
    assert "EXPERT || CRAZY" in explanation.sentence


def test_a_test_of_the_compiler_that_fails_decides(tree: KconfigTree) -> None:
    explanation = explained(tree, "CONFIG_MAGIC=y\n", "MAGIC", "y")
    assert (explanation.cause, explanation.deciding) == ("dependency", ("CC_HAS_MAGIC",))


def test_what_is_selected_cannot_be_off(tree: KconfigTree) -> None:
    explanation = explained(tree, "CONFIG_SMP=y\nCONFIG_NUMA=y\n", "HAVE_NODES", "n")
    assert (explanation.value, explanation.cause, explanation.deciding) == ("y", "selected", ("NUMA",))


def test_what_has_no_prompt_can_only_be_selected(tree: KconfigTree) -> None:
    explanation = explained(tree, "CONFIG_HAVE_NODES=y\n", "HAVE_NODES", "y")
    assert (explanation.value, explanation.cause, explanation.deciding) == ("n", "hidden", ("NUMA",))


def test_of_a_choice_the_other_is_named(tree: KconfigTree) -> None:
    explanation = explained(tree, "CONFIG_HZ_100=y\n", "HZ_250", "y")
    assert (explanation.cause, explanation.deciding) == ("choice", ("HZ_100",))


def test_a_number_that_follows_from_a_choice(tree: KconfigTree) -> None:
    explanation = explained(tree, "CONFIG_HZ_100=y\n", "HZ", "250")
    assert (explanation.value, explanation.cause, explanation.deciding) == ("100", "hidden", ("HZ_100",))


def test_a_number_beyond_its_range(tree: KconfigTree) -> None:
    explanation = explained(tree, "CONFIG_SMP=y\nCONFIG_NR_CPUS=512\n", "NR_CPUS", "512")
    assert (explanation.cause, explanation.sentence) == ("range", "NR_CPUS is 8: it must be between 2 and 64")


def test_a_module_cannot_carry_what_is_built_in(tree: KconfigTree) -> None:
    explanation = explained(tree, "CONFIG_MODULES=y\nCONFIG_NET=y\nCONFIG_VETH=m\nCONFIG_BRIDGE=y\n", "BRIDGE", "y")
    assert (explanation.value, explanation.cause, explanation.deciding) == ("m", "dependency", ("VETH",))


def test_what_nobody_named_has_its_default(tree: KconfigTree) -> None:
    explanation = explained(tree, "CONFIG_SMP=y\nCONFIG_NUMA=y\n", "NUMA_BALANCING", "n")
    assert (explanation.value, explanation.cause) == ("y", "default")


@pytest.mark.parametrize(
    ("name", "near"), [("MPTPC", "MPTCP"), ("NUMA_BALANCE", "NUMA_BALANCING"), ("BALANCING", "NUMA_BALANCING")]
)
def test_of_an_unknown_option_the_nearest_names_are_told(tree: KconfigTree, name: str, near: str) -> None:
    explanation = explained(tree, "CONFIG_NET=y\n", name, "y")
    assert (explanation.cause, explanation.nearest[0]) == ("unknown", near)
    assert near in explanation.sentence


def test_an_option_is_described_by_its_kconfig_file(tree: KconfigTree) -> None:
    option = answered(tree, config={}, describe=("MPTCP",)).options["MPTCP"]
    assert option.title == "Multipath TCP"
    assert option.help == "Multipath TCP lets a connection use several paths at once."
    assert (option.menus, option.file, option.directory) == (("General setup",), "net/Kconfig", "net")


def test_of_a_longer_help_the_first_sentence_is_taken(tree: KconfigTree) -> None:
    option = answered(tree, config={}, describe=("NET",)).options["NET"]
    assert option.help == "Unless you really know what you are doing, say Y."


def test_options_that_the_kernel_does_not_have_are_not_described(tree: KconfigTree) -> None:
    assert answered(tree, config={}, describe=("NO_SUCH",)).options == {}


def test_the_configuration_comes_to_what_the_rules_make_of_it(tree: KconfigTree) -> None:
    values = answered(tree, config={"SMP": "y", "NUMA": "y", "MPTCP": "y", "HZ_100": "y"}, values=True).values
    assert values["HAVE_NODES"] == "y"
    assert values["HZ"] == "100"
    assert "MPTCP" not in values


def test_defaults_are_told_beside_what_was_said(tree: KconfigTree) -> None:
    config = {"SMP": "y", "NUMA": "y", "NUMA_BALANCING": "n", "NR_CPUS": "4"}
    kconfig_answer = answered(tree, config=config, defaults=("NUMA_BALANCING", "NR_CPUS"), values=True)
    assert kconfig_answer.defaults == {"NUMA_BALANCING": "y", "NR_CPUS": "8"}
    assert kconfig_answer.values["NR_CPUS"] == "4"


def test_what_is_implied_is_only_a_default(tree: KconfigTree) -> None:
    values = answered(tree, config={"FORWARDING": "y", "TUNNEL": "m"}, values=True).values
    assert (values["TUNNEL"], values["FILTER"]) == ("m", "y")
