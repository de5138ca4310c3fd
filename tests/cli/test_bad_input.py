"""Bad input: one clear message with file, line, field, value and what would be right; exit code 2; nothing changed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ajuste.machine.home import home
from guests import in_guests
from shell import SMALL, Shell

LEVELS = "levels = [750000, 75000000]"

WRONG = {
    "unknown tunable": (
        ("sched_min_granularity_ns", "sched_min_granularty_ns"),
        r"small.toml:6: factor\[1\].name: .*'sched_min_granularty_ns'.*did you mean sched_min_granularity_ns",
    ),
    "level out of range": (
        (LEVELS, "levels = [1, 750000]"),
        r"small.toml:7: .*= 1 is out of range; expected between 100000 and 1000000000",
    ),
    "level of the wrong type": ((LEVELS, 'levels = ["fast", 750000]'), r"small.toml:7: .*'fast' is not a whole number"),
    "baseline not among the levels": (
        (LEVELS, LEVELS + "\nbaseline = 5"),
        r'small.toml:8: factor\[1\].baseline: found "5", which is not a level; expected one of 750000, 75000000',
    ),
    "tunable that the kernel does not have": (
        ("debian:5.10", "debian:6.12"),
        r"small.toml:6: .*kernels that have it: up to 6.5.*successor base_slice_ns",
    ),
    "missing program": (
        ('kind = "matrix"\nparameters = { size = 100, repetitions = 2 }', 'command = ["no-such-program"]'),
        r'small.toml:10: workload.command\[1\]: program "no-such-program" not found',
    ),
    "not valid TOML": ((LEVELS, "levels = [750000"), r"small.toml:\d+: not valid TOML: "),
    "unknown field": (
        ("min_blocks", "min_block"),
        r"small.toml:\d+: budget.min_block: unknown field; did you mean min_blocks",
    ),
    "unknown metric": (
        ('["involuntary-switches"]', '["involuntary-switch"]'),
        r'small.toml:\d+: analysis.metrics\[1\]: .*"involuntary-switch" not found; did you mean involuntary-switches',
    ),
    "unknown kernel": (("debian:5.10", "debian:4.4"), r"small.toml:\d+: target.kernel: .*'debian:4.4'.*5.10"),
    "a guest's field on the host": (
        ('kernel = "debian:5.10"', 'kind = "host"'),
        r"small.toml:\d+: target.instruction_ns: applies only to guests",
    ),
}


@in_guests
@pytest.mark.parametrize(("change", "message"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_study_is_refused(ajuste: Shell, change: tuple[str, str], message: str) -> None:
    text = SMALL.replace(*change)
    assert text != SMALL
    (ajuste.directory / "small.toml").write_text(text)
    output, complained = ajuste("run", "small.toml", expect=2)
    assert output == ""
    assert re.search(message, complained, re.DOTALL), complained
    assert "Traceback" not in complained
    assert not (ajuste.home / "data").exists()
    assert not (ajuste.home / "state").exists()


@in_guests
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("plan", "granularty"), "did you mean granularity"),
        (("run", "nothing.toml"), "study file nothing.toml not found"),
        (("run", "granularity", "--kernel", "5.10"), "did you mean debian:5.10"),
        (("run", "granularity", "--kernel", "path:small.toml"), "small.toml is not an x86 kernel image"),
        (("run", "granularity", "--seed", "-1"), "--seed"),
        (("run", "granularity", "--seed", str(2**63)), "--seed: expected at most 9223372036854775807"),
        (("tune", "granularity", "--sampler", "grid", "--objective", "elapsed", "--constraint", "foo"), '"foo"'),
        (("run", "granularity", "--machine", "zen5"), "--machine zen5: machine 'zen5' not found"),
        (("run", "granularity", "--machine", "./no.toml"), "cannot read the machine"),
        (("run", "granularity", "--report", "no/such/place.html"), "--report no/such/place.html: expected a file"),
        (("run", "granularity", "--kernel"), "--kernel requires a value"),
        (("report", "nothing"), "run 'nothing' not found"),
        (("why", "nothing", "--html", "no/such/place.html"), "--html no/such/place.html: expected a file"),
        (("report", "nothing", "--html", "no/such/place.html"), "--html no/such/place.html: expected a file"),
        (("tunables", "show", "sched_min_granularty_ns"), "did you mean sched_min_granularity_ns"),
        (("frobnicate",), "frobnicate"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_wrong_words_are_refused(ajuste: Shell, words: tuple[str, ...], message: str) -> None:
    output, complained = ajuste(*words, expect=2)
    assert message in complained
    assert output == ""
    assert "Traceback" not in complained


@in_guests
def test_a_kernel_cannot_be_chosen_where_kernels_are_compared(ajuste: Shell) -> None:
    text = SMALL.replace('name = "sched_min_granularity_ns"', 'name = "kernel"').replace(
        LEVELS, 'levels = ["debian:5.10", "debian:6.1"]'
    )
    (ajuste.directory / "small.toml").write_text(text.replace('kernel = "debian:5.10"\n', ""))
    _, complained = ajuste("plan", "small.toml", "--kernel", "debian:6.12", expect=2)
    assert "the kernel is a factor of small.toml" in complained
    output, _ = ajuste("plan", "small.toml")
    assert "kernel=debian:6.1" in output


@in_guests
def test_a_home_that_cannot_be_made_is_one_clear_error(ajuste: Shell) -> None:
    for words in (("run", "small.toml"), ("report",)):
        output, complained = Shell(ajuste.directory, Path("/proc/nowhere"))(*words, expect=2)
        assert output == ""
        assert "AJUSTE_HOME" in complained
        assert "Traceback" not in complained


@pytest.mark.vm
@pytest.mark.slow
def test_a_kernel_that_does_not_boot_is_refused_and_no_run_remains(ajuste: Shell) -> None:
    from ajuste_guest.kernel.fetch import fetch_kernel

    whole = fetch_kernel("debian:5.10", home()).vmlinuz
    (ajuste.directory / "vmlinuz").write_bytes(whole.read_bytes()[:3_000_000])
    _, complained = ajuste("run", "small.toml", "--kernel", "path:vmlinuz", expect=2)
    assert "did not come up in a guest" in complained
    assert ajuste.json("report") == []
    assert not list((ajuste.home / "state" / "sessions").glob("*"))
