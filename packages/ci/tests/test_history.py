"""``ajuste history`` in a repository, as a person uses it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from projects import BUILD, PROJECT, Project, prints
from shell import Shell


@pytest.fixture
def project(ajuste: Shell) -> Project:
    """A project whose third commit is 2 % faster, its sixth 4 % slower, and whose fourth does not build."""
    made = Project(ajuste)
    made.commit("first", ajuste_toml=PROJECT, build_sh=BUILD, job_sh=prints("100.0"))
    made.commit("words")
    made.commit("faster", job_sh=prints("98.0"))
    made.commit("broken", build_sh="echo no compiler >&2; exit 3\n")
    made.commit("mended", build_sh=BUILD, job_sh=prints("98.1"))
    made.commit("slower", job_sh=prints("102.0"))
    made.commit("last")
    return made


def history(project: Project, *words: str, expect: int = 0) -> Any:
    return json.loads(project.ajuste("history", "--json", *words, expect=expect)[0])["histories"]


@pytest.mark.usefixtures("machine_lock")
def test_changes_beyond_the_limit_are_found_at_their_commits(project: Project) -> None:
    (series,) = history(project)
    subjects = [point["commit"]["subject"] for point in series["points"]]
    assert subjects == ["first", "words", "faster", "broken", "mended", "slower", "last"]
    values = [point["value"] for point in series["points"] if point["commit"]["subject"] != "broken"]
    assert values == pytest.approx([100, 100, 98, 98.1, 102, 102])
    assert "does not build" in series["points"][3]["reason"]
    changes = [
        (change["after"]["subject"], change["worse"], round(change["change"], 3)) for change in series["changes"]
    ]
    assert changes == [("faster", False, 0.98), ("slower", True, 1.04)]
    assert series["known"]
    assert project.left == []
    output, _ = project.ajuste("history", "--last", "3")
    assert output.startswith("1 change beyond the limit:")
    assert "+3.98 %" in output


@pytest.mark.usefixtures("machine_lock")
def test_commits_between_those_that_were_measured_are_named(project: Project) -> None:
    (series,) = history(project, "--since", "HEAD~6", "--last", "3", expect=1)
    assert series["reason"].startswith("2 of 3 commits can be measured, a history requires 3; ")
    (series,) = history(project, "--since", "HEAD~6", "--last", "4")
    assert [point["commit"]["subject"] for point in series["points"]] == ["first", "faster", "mended", "last"]
    slower = series["changes"][-1]
    assert [commit["subject"] for commit in slower["between"]] == ["slower", "last"]


@pytest.mark.usefixtures("machine_lock")
def test_the_regression_is_bisected_to_its_commit(project: Project) -> None:
    results = project.gate("--base", "HEAD~6", "--bisect", expect=3)
    (figure,) = results["benchmarks"]
    assert [commit["subject"] for commit in figure["culprits"]] == ["slower"]
    project.write(job_sh=prints("110.0"))
    (figure,) = project.gate("--base", "HEAD", "--bisect", expect=3)["benchmarks"]
    assert figure["culprits"] == [{"commit": "", "date": "", "subject": ""}]
    output, _ = project.ajuste("gate", "--base", "HEAD", "--bisect", expect=3)
    assert "It came with the changes that are not committed." in output
    assert project.left == []


@pytest.mark.usefixtures("machine_lock")
def test_where_commits_do_not_build_all_that_may_have_made_it_are_named(project: Project) -> None:
    project.commit("unbuilt", build_sh="exit 1\n")
    project.commit("slow again", build_sh=BUILD, job_sh=prints("110.0"))
    (figure,) = project.gate("--base", "HEAD~2", "--bisect", expect=3)["benchmarks"]
    assert [commit["subject"] for commit in figure["culprits"]] == ["unbuilt", "slow again"]


@pytest.mark.usefixtures("machine_lock")
def test_a_base_that_got_better_blames_no_commit_of_the_head(project: Project) -> None:
    project.git("checkout", "--quiet", "-b", "topic")
    project.commit("one of the topic")
    project.commit("another of the topic")
    project.git("checkout", "--quiet", "main")
    project.commit("main gets faster", job_sh=prints("90.0"))
    (figure,) = project.gate("--base", "main", "--head", "topic", "--bisect", expect=3)["benchmarks"]
    assert figure["culprits"] == []
    assert "the base got better" in figure["reason"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--since", "nothing"), '--since "nothing": revision not found'),
        (("--until", "-x"), '--until "-x": revision not found'),
        (("--since", "HEAD~1"), "2 commits from HEAD~1 to HEAD; a history requires 3"),
        (("--last", "2"), "at least 3"),
        (("job2",), 'benchmark "job2" not found'),
    ],
)
def test_a_wrong_request_measures_nothing(project: Project, words: tuple[str, ...], message: str) -> None:
    _, complaint = project.ajuste("history", *words, expect=2)
    assert message in complaint
    assert project.left == []


@pytest.mark.slow
@pytest.mark.usefixtures("machine_lock")
def test_with_layouts_commits_are_compared_by_the_means_of_their_builds(ajuste: Shell) -> None:
    project = Project(ajuste)
    table = PROJECT.replace("sh build.sh", "sh build.sh {layout}") + "layouts = 6\n"
    build = 'set -- $1 $(cat job.txt) && shift $1 && printf "#!/bin/sh\\necho took $1 ms\\n" >job && chmod +x job\n'
    project.commit("one", ajuste_toml=table, build_sh=build, job_txt="100 102 98 101 99 100\n")
    project.commit("moved", job_txt="98 100 101 99 102 100\n")
    project.commit("slower", job_txt="105 107 103 106 104 105\n")
    (series,) = history(project)
    assert [point["value"] for point in series["points"]] == pytest.approx([100, 100, 105], abs=0.1)
    assert [change["after"]["subject"] for change in series["changes"]] == ["slower"]
    assert series["blocks"] == 6
