"""Questions that a guest cannot answer are refused with what to do instead, or labelled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.kernel.spec import parse_spec
from ajuste.model.error import RequestError
from ajuste.study.answerable import guest_notes
from ajuste.study.read import read_study
from ajuste.study.schema import Study

STUDY = """\
schema = 1
name = "asked"
[[factor]]
{factor}
[workload]
command = ["true"]
[target]
{target}
[analysis]
metrics = [{metrics}]
"""
GUEST = 'kernel = "debian:6.12"'
ARGUMENTS = """\
name = "security"
levels = ["on", "off"]
[factor.settings.on]
[factor.settings.off]
kernel_arguments = "{}"
"""
Ask = Callable[..., Study]


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    def asking(factor: str, target: str = GUEST, metrics: str = '"elapsed"') -> Study:
        path = tmp_path / "asked.toml"
        path.write_text(STUDY.format(factor=factor, target=target, metrics=metrics))
        return read_study(path, catalogue(), parse_kernel=parse_spec)

    return asking


def varied(name: str, levels: str) -> str:
    return f'name = "{name}"\nlevels = {levels}'


@pytest.mark.parametrize(
    ("factor", "message"),
    [
        (ARGUMENTS.format("mitigations=off"), "mitigations: what mitigations cost is flushed buffers"),
        (ARGUMENTS.format("nopti spectre_v2=off"), "nopti, spectre_v2: what mitigations cost"),
        (varied("cpu.governor[cpu0]", '["powersave", "performance"]'), "cpu.governor: a guest's CPU has no frequency"),
        (varied("net.ring_rx[eth0]", "[256, 512]"), "net.ring_rx: a guest has no network card"),
        (
            varied("kernel", '["build:debian:6.12", "build:debian:6.12+CPU_MITIGATIONS=n"]'),
            "CPU_MITIGATIONS: what mitigations cost",
        ),
    ],
)
def test_what_a_guest_has_not_is_refused_with_what_to_do_instead(ask: Ask, factor: str, message: str) -> None:
    target = "" if 'name = "kernel"' in factor else GUEST
    with pytest.raises(RequestError) as raised:
        ask(factor, target)
    assert message in raised.value.message
    assert (raised.value.hint or "").startswith(("measure on a host", "boot this machine"))


def test_counts_of_instructions_are_an_answer_and_the_rest_is_labelled(ask: Ask) -> None:
    study = ask(ARGUMENTS.format("mitigations=off"), metrics='"kernel-instructions"')
    (note,) = guest_notes(study, catalogue())
    assert note.startswith("mitigations: what mitigations cost")
    with pytest.raises(RequestError, match="mitigations"):
        ask(ARGUMENTS.format("mitigations=off"), metrics='"kernel-instructions", "elapsed"')


def test_by_the_wall_clock_mitigations_are_labelled(ask: Ask) -> None:
    (note,) = guest_notes(ask(ARGUMENTS.format("mitigations=off"), f'{GUEST}\nclock = "wall"'), catalogue())
    assert "the mitigations of the host are in every figure too" in note


def test_the_order_of_a_disk_is_labelled_under_the_virtual_clock(ask: Ask) -> None:
    factor = varied("block.scheduler[vda]", '["none", "mq-deadline"]')
    (note,) = guest_notes(ask(factor), catalogue())
    assert note.startswith("block.scheduler: a guest's disk has no seeks")
    assert guest_notes(ask(factor, f'{GUEST}\nclock = "wall"'), catalogue()) == ()


def test_what_does_not_vary_is_no_question(ask: Ask) -> None:
    both = ARGUMENTS.format("mitigations=off").replace("[factor.settings.on]", '[factor.settings.on]\nnice = 5\n'
        'kernel_arguments = "mitigations=off"')  # fmt: skip
    assert guest_notes(ask(both), catalogue()) == ()


def test_a_profile_that_also_sets_other_things_is_labelled(ask: Ask) -> None:
    profile = ARGUMENTS.format("mitigations=off").replace("[factor.settings.off]", "[factor.settings.off]\nnice = 5")
    (note,) = guest_notes(ask(profile), catalogue())
    assert note.startswith("mitigations: ")


def test_a_host_answers_all(ask: Ask) -> None:
    study = ask(varied("cpu.governor[cpu0]", '["powersave", "performance"]'), 'kind = "host"\nclock = "wall"')
    assert guest_notes(study, catalogue()) == ()
