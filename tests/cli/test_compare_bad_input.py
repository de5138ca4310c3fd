"""Wrong requests of ``ajuste compare``: one clear message that names the option, exit code 2, and nothing changed."""

from __future__ import annotations

import re

import pytest

from shell import Shell

WRONG: dict[str, tuple[tuple[str, ...], str]] = {
    "no command": ((), "the command to measure is missing"),
    "an empty command": (("--", "true", "--"), "the command after one of the -- is missing"),
    "a program that is not there": (
        ("--", "no-such-program", "x"),
        r"no-such-program x: program .* not found",
    ),
    "a file that is not there": (("--", "./no-such-job"), r'\./no-such-job: file "no-such-job" not found'),
    "a second program that is not there": (
        ("--", "true", "--", "no-such-program"),
        r'program "no-such-program" not found',
    ),
    "an unknown tunable": (
        ("--set", "vm.swapines=1,2", "--", "true"),
        r"--set vm.swapines=1,2: .*did you mean vm.swa",
    ),
    "a level out of range": (("--set", "vm.swappiness=10,201", "--", "true"), r"--set vm.swappiness=10,201: .*201"),
    "one of several is missing": (("--set", "block.scheduler=none", "--", "true"), r"--set block.scheduler=none: .*\["),
    "an unknown policy": (("--policy", "batsh", "--", "true"), r"--policy batsh: .*did you mean batch"),
    "a kernel that this machine does not run": (("--kernel", "debian:4.4", "--", "true"), r"--kernel debian:4.4: "),
    "a clock that there is not": (
        ("--vm", "--clock", "sun", "--", "true"),
        r"--clock sun: found \"sun\"; expected 'virtual' or 'wall'",
    ),
    "a guest's option on this machine": (("--memory", "1GiB", "--", "true"), "--memory: applies only to guests"),
    "a machine that there is not": (
        ("--vm", "--machine", "zen5", "--", "true"),
        r"--machine zen5: machine 'zen5' not found(.|\n)*zen4-8c",
    ),
    "a machine's metric without a machine": (
        ("--vm", "--metric", "l1d-misses", "--", "true"),
        r'--metric l1d-misses: metric "l1d-misses" requires a modelled machine(.|\n)*--machine NAME',
    ),
    "a metric without a direction": (
        ("--metric", "a=json:/a", "--", "true"),
        r"--metric a=json:/a: expected a direction before the =",
    ),
    "a seed that no store can hold": (
        ("--seed", "9" * 20, "--", "true"),
        "--seed 9{20}: .*expected at most 9223372036854775807",
    ),
    "an empty name": (("--name", "", "--", "true"), '--name : found ""'),
    "an unknown option": (("--niec", "1", "--", "true"), r"option --niec not found"),
    "a report that cannot be written": (
        ("--report", "/no/where.html", "--", "true"),
        "--report /no/where.html: ",
    ),
    "a boot loader that there is not": (
        ("--boot", "mitigations=default,off", "--loader", "lilo", "--reboots", "--dry-run", "--", "true"),
        "--loader lilo: expected",
    ),
    "a word that the kernel's command line cannot have": (
        ("--boot", "a b=1,2", "--", "true"),
        r"\Aajuste: --boot a b=1,2: \"a b\" is not a word [^:]*mitigations add --help",
    ),
    "a study that cannot be saved": (("--save", "/no/where.toml", "--", "true"), "--save /no/where.toml: No such file"),
}


@pytest.mark.parametrize(("words", "message"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_request_is_refused_before_anything_happens(
    ajuste: Shell, words: tuple[str, ...], message: str
) -> None:
    output, complained = ajuste("compare", *words, expect=2)
    assert output == ""
    flat = " ".join(complained.split())
    assert re.search(message, flat), flat
    assert "Traceback" not in complained
    assert ajuste.json("report") == []
