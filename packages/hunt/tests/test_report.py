"""The answer of a hunt, and its report."""

from __future__ import annotations

from ajuste.model.plan import CpuPause
from ajuste.report.markdown import markdown
from ajuste_hunt.model import Found, Hunt
from ajuste_hunt.report import answer, hunt_report

NEVER = Hunt(
    study="job",
    goal="hung",
    kernel="debian:6.12",
    cpus=2,
    outcome="never",
    trials=400,
    plain=8,
    shown_plain=0,
    kinds=30,
    sites=60,
    tries_of_site=3,
    run_ms=5.0,
    longest_pause_us=5000.0,
    host_seconds=300.0,
)
FINDING = Found(
    trial=76,
    way="access",
    seed=0,
    pauses_then=2,
    pauses=(CpuPause(cpu=1, at_ns=1_185_000, for_ns=138_000),),
    ending="exit code 1",
    replays=5,
    attempts=5,
    minimal=True,
    digest="0" * 64,
    host_seconds=60.0,
)


def test_what_was_not_seen_says_how_far_the_search_went() -> None:
    text = answer(NEVER)
    assert all(part in text for part in ("400 trials", "5000 µs", "60 accesses", "3 times", "no proof"))
    assert "accesses" not in answer(NEVER.model_copy(update={"sites": 0, "tries_of_site": 0}))


def test_what_was_found_names_its_pauses_and_how_it_was_searched() -> None:
    document = NEVER.model_copy(update={"outcome": "found", "finding": FINDING, "reproducer": "found.toml"})
    assert "trial 76: exit code 1, when CPU 1 stands still for 138 µs, 1.185 ms after the start" in answer(document)
    text = markdown(hunt_report(document))
    assert all(part in text for part in ("ajuste run found.toml", "5 of 5 alike", "1 of 2 pauses", "1.185000"))


def test_what_plain_trials_show_is_no_rare_case() -> None:
    at_once = NEVER.model_copy(update={"outcome": "at-once", "shown_plain": 7, "finding": FINDING})
    assert "7 of 8 trials" in answer(at_once)
    seed = NEVER.model_copy(update={"outcome": "found", "finding": FINDING.model_copy(update={"pauses": ()})})
    assert "The seed alone shows it" in answer(seed)
