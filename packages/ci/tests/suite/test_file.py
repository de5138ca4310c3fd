"""The file of a suite, and the studies that its members come to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.kernel.spec import parse_spec
from ajuste.model.error import RequestError
from ajuste.study.command_line.request import Request
from ajuste.study.schema import Study
from ajuste_ci.suite.file import Suite, builtin_suites, find_suite, guest_programs, member_study, read_suite, shares

TEXT = """\
schema = 1
name = "mine"
smallest_effect = 0.03

[guest]
cpus = 2
memory_mib = 512
device = "/dev/nullb0"

[budget]
max_blocks = 7
max_minutes = 6.0

[[member]]
name = "messages"
workload = { kind = "hackbench", parameters = { groups = 1 }, host_parameters = { groups = 4 } }

[[member]]
name = "files"
metrics = ["took", "elapsed"]
scratch = { size_mib = 64 }
guest = { cpus = 1 }

[member.workload]
command = ["sh", "-c", "echo took 3 ms"]
programs = ["cat"]

[[member.workload.metric]]
name = "took"
pattern = "took ([0-9.]+) ms"
unit = "ms"
direction = "lower"
"""
HOST = Request(commands=(), nice="0,5")
GUEST = Request(commands=(), kernel="debian:6.1,debian:6.12")


def suite_of(directory: Path, text: str = TEXT) -> Suite:
    file = directory / "mine.toml"
    file.write_text(text)
    return read_suite(file)


def studies(suite: Suite, request: Request, names: tuple[str, ...] = ()) -> list[Study]:
    members = suite.chosen(names)
    together = shares(suite, members, request)
    return [member_study(suite, member, request, together, catalogue(), parse_kernel=parse_spec) for member in members]


def complaint(directory: Path, text: str, request: Request = HOST) -> str:
    with pytest.raises(RequestError) as caught:
        studies(suite_of(directory, text), request)
    return f"{caught.value.place}: {caught.value.message}".replace(f"{directory}/", "")


def test_all_members_have_the_same_configurations_and_seed(tmp_path: Path) -> None:
    messages, files = studies(suite_of(tmp_path), replace(HOST, seed=3))
    assert messages.factors == files.factors
    assert messages.design == files.design
    assert messages.design.seed == 3
    assert (messages.name, files.name) == ("mine-messages", "mine-files")


def test_errors_of_all_members_add_up_to_those_of_the_suite(tmp_path: Path) -> None:
    suite = suite_of(tmp_path)
    messages, files = studies(suite, replace(HOST, confidence="90%"))
    assert 1 - messages.analysis.confidence == pytest.approx(0.1 / 3)
    assert 1 - files.analysis.confidence == pytest.approx(0.2 / 3), "it has two metrics"
    (alone,) = studies(suite, HOST, ("messages",))
    assert alone.analysis.confidence == pytest.approx(0.95)


def test_time_is_shared_out(tmp_path: Path) -> None:
    assert [study.budget.max_minutes for study in studies(suite_of(tmp_path), HOST)] == [3.0, 3.0]
    assert [study.budget.max_minutes for study in studies(suite_of(tmp_path), replace(HOST, max_time="1m"))] == [
        0.5,
        0.5,
    ]


def test_the_command_line_overrides_the_suite(tmp_path: Path) -> None:
    (study, _) = studies(suite_of(tmp_path), HOST)
    assert (study.budget.max_blocks, study.analysis.smallest_effect) == (7, 0.03)
    (study, _) = studies(suite_of(tmp_path), replace(HOST, blocks="2..4", min_effect="10%"))
    assert (study.budget.min_blocks, study.budget.max_blocks, study.analysis.smallest_effect) == (2, 4, 0.1)


def test_a_guest_is_that_of_the_suite_unless_the_member_says_otherwise(tmp_path: Path) -> None:
    messages, files = studies(suite_of(tmp_path), GUEST)
    assert (messages.target.cpus, files.target.cpus) == (2, 1)
    assert (messages.target.memory_mib, files.target.memory_mib) == (512, 512)
    assert files.scratch is not None
    assert files.scratch.device == "/dev/nullb0"
    assert messages.workload.parameters == {"groups": "1"}
    (messages, _) = studies(suite_of(tmp_path), replace(GUEST, memory="1GiB"))
    assert messages.target.memory_mib == 1024


def test_on_this_machine_nothing_of_the_guest_holds(tmp_path: Path) -> None:
    messages, files = studies(suite_of(tmp_path), HOST)
    assert files.scratch is not None
    assert files.scratch.device is None
    assert messages.workload.parameters == {"groups": "4"}
    assert messages.workload.host_parameters == {}


def test_one_guest_has_the_programs_of_all_members(tmp_path: Path) -> None:
    suite = suite_of(tmp_path)
    beside = guest_programs(suite, catalogue())
    assert beside == ("cat", "hackbench", "sh")
    together = shares(suite, suite.table.members, GUEST)
    member_studies = [
        member_study(suite, member, GUEST, together, catalogue(), beside=beside, parse_kernel=parse_spec)
        for member in suite.table.members
    ]
    assert [set(study.workload.programs) for study in member_studies] == [set(beside), set(beside)]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("max_blocks = 7", "max_block = 7", "mine.toml:11: budget.max_block: unknown field"),
        ('name = "files"', 'name = "messages"', 'member[2].name: the member "messages" is given twice'),
        ('kind = "hackbench"', 'kind = "hackbenche"', "mine.toml:16: member[1].workload.kind: "),
        ('metrics = ["took", "elapsed"]', 'metrics = ["took", "elapse"]', "mine.toml:20: member[2].metrics[2]: "),
        ("groups = 1 }", "grups = 1 }", "grups"),
        ('["sh", "-c", "echo took 3 ms"]', "[]", "member[2].workload.command"),
        ("schema = 1", "schema = 2", "schema"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in TEXT
    assert message in complaint(tmp_path, TEXT.replace(old, new, 1))


def test_several_commands_are_no_member(tmp_path: Path) -> None:
    variants = '[[member]]\nname = "x"\n[[member.workload.variant]]\nname = "a"\ncommand = ["true"]\n'
    assert "several commands are a factor" in complaint(tmp_path, f'schema = 1\nname = "mine"\n{variants}')


def test_what_the_command_line_says_wrong_is_said_of_its_option(tmp_path: Path) -> None:
    assert complaint(tmp_path, TEXT, replace(HOST, nice="0,50")).startswith("--nice 0,50: ")


def test_a_member_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match='member "file" not found in the suite mine; did you mean files'):
        suite_of(tmp_path).chosen(("file",))


def test_a_suite_that_is_not_there() -> None:
    with pytest.raises(RequestError, match='suite "schedule" not found; did you mean scheduler'):
        find_suite("schedule")


@pytest.mark.parametrize("suite", builtin_suites(), ids=lambda suite: suite.table.name)
def test_built_in_suites_are_called_as_their_files_and_make_studies(suite: Suite) -> None:
    assert suite.table.name == suite.source.file.stem
    assert suite.table.title
    for request in (HOST, GUEST):
        member_studies = studies(suite, request)
        assert len(member_studies) == len(suite.table.members)
        assert all(len(member.analysis.metrics) <= 2 for member in member_studies)
