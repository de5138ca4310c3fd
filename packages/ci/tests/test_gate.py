"""``ajuste gate`` in a repository, as a person and as CI use it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from projects import BUILD, PROJECT, Project, prints
from shell import SMALL, Shell, patiently
from tiers import slow

C_PROJECT = """\
[[benchmark]]
name = "steps"
build = "cc -O1 -fno-inline -o steps steps.c"
command = "./steps"
metric = ["instructions", "user-instructions"]
limit = "1%"
"""
C_PROGRAM = """\
#include <stdio.h>
unsigned grown(unsigned x) { for (int i = 0; i < ROUNDS; i++) x = x * 1664525u + 1013904223u; return x; }
unsigned steady(unsigned x) { for (int i = 0; i < 50; i++) x = x * 1664525u + 1013904223u; return x; }
int main(void) { unsigned x = 1; for (int i = 0; i < 10000; i++) x = steady(grown(x)); return printf("%u\\n", x) < 0; }
"""


@pytest.fixture
def project(ajuste: Shell) -> Project:
    made = Project(ajuste)
    made.commit("one", ajuste_toml=PROJECT, build_sh=BUILD, job_sh=prints("100.0"))
    return made


@pytest.mark.usefixtures("machine_lock")
def test_a_regression_beyond_the_limit_is_proved_and_told_in_every_format(project: Project) -> None:
    project.commit("two", job_sh=prints("102.0"))
    before = project.git("status", "--short")
    results = project.gate("--junit", "j.xml", "--markdown", "m.md", "--badge", "b.svg", expect=3)
    (figure,) = results["benchmarks"]
    assert (results["result"], figure["name"], figure["metric"], figure["verdict"]) == (
        "regression",
        "job",
        "took",
        "regression",
    )
    assert (figure["base"], figure["head"], figure["limit"], figure["line"]) == (100, 102, 0.01, 1)
    assert figure["estimate"] == pytest.approx(1.02)
    assert 1.01 < figure["low"] <= figure["estimate"] <= figure["high"]
    suite = ElementTree.parse(project.directory / "j.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("1", "1", "0")
    assert "| job | took | 100 ms | 102 ms | +2 % |" in (project.directory / "m.md").read_text()
    assert "1 regression" in (project.directory / "b.svg").read_text()
    assert project.git("status", "--short") == before + "?? b.svg\n?? j.xml\n?? m.md\n"
    assert project.left == []


@pytest.mark.usefixtures("machine_lock")
def test_equal_revisions_and_changes_within_the_limit_pass(project: Project) -> None:
    project.commit("two")
    assert project.gate()["result"] == "pass"
    project.commit("three", job_sh=prints("100.5"))
    results = project.gate()
    assert (results["result"], results["benchmarks"][0]["verdict"]) == ("pass", "pass")
    assert results["benchmarks"][0]["estimate"] == pytest.approx(1.005)
    output, _ = project.ajuste("gate", "--base", "HEAD~1")
    assert output.startswith("No regression: 1 figure within the limit.\n")
    project.commit("four", job_sh=prints("50"))
    assert project.gate()["result"] == "pass", "what is faster is no regression"


@pytest.mark.usefixtures("machine_lock")
def test_noise_that_is_too_wide_is_undecided_and_a_policy_says_what_that_means(
    project: Project, tmp_path: Path
) -> None:
    # Pairs that are now far from each other, now close: too few say nothing, whichever of both comes first.
    noise = f"#!/bin/sh\nread n <{tmp_path}/n || n=0; echo $((n + 1)) >{tmp_path}/n\n"
    noise += 'set -- 100 110 50 150 100 105 50 160; shift $((n % 8)); sleep 0.01; echo "took $1 ms"\n'
    project.commit("two", job_sh=noise, ajuste_toml=PROJECT.replace("20s", "500ms"))
    project.commit("three")
    results = project.gate(expect=4)
    assert (results["result"], results["benchmarks"][0]["verdict"]) == ("undecided", "undecided")
    assert "reached the limit of 0.5 seconds" in results["benchmarks"][0]["reason"]
    assert project.gate("--undecided", "pass")["result"] == "undecided"


@pytest.mark.usefixtures("machine_lock")
def test_the_working_tree_is_judged_as_it_is_and_never_touched(project: Project) -> None:
    project.git("mv", "job.sh", "script.sh")
    project.write(
        script_sh=prints("103.0"), build_sh="cp script.sh job && chmod +x job && test ! -e ignored && test -e new.txt\n"
    )
    project.write(_gitignore="ignored\n", ignored="", new_txt="")
    state = project.git("status", "--short"), project.git("count-objects"), project.git("stash", "list")
    results = json.loads(project.ajuste("gate", "--base", "HEAD", "--json", expect=3)[0])
    assert (results["base"]["revision"], results["head"]["revision"]) == ("HEAD", "")
    assert results["benchmarks"][0]["estimate"] == pytest.approx(1.03)
    assert (project.git("status", "--short"), project.git("count-objects"), project.git("stash", "list")) == state
    assert not (project.directory / "job").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("machine_lock")
def test_a_hook_of_git_that_calls_ajuste_does_not_lead_it_into_its_own_index(project: Project) -> None:
    project.commit("two", job_sh=prints("100.1"))
    before = (project.directory / ".git" / "index").read_bytes()
    git = {"GIT_DIR": str(project.directory / ".git"), "GIT_INDEX_FILE": str(project.directory / ".git" / "index")}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in git.items():
            patch.setenv(name, value)
        assert project.gate()["result"] == "pass"
    assert (project.directory / ".git" / "index").read_bytes() == before


@pytest.mark.usefixtures("machine_lock")
def test_one_benchmark_that_fails_is_named_and_the_others_go_on(project: Project) -> None:
    broken = PROJECT.replace('"job"', '"broken"').replace("sh build.sh", "sh -c 'echo no compiler; exit 7'")
    lost = PROJECT.replace('"job"', '"lost"').replace('"./job"', '"./nowhere"')
    silent = PROJECT.replace('"job"', '"silent"').replace('"./job"', '"echo nothing"')
    project.commit("two", ajuste_toml=f"{broken}\n{lost}\n{silent}\n{PROJECT}")
    output, complained = project.ajuste("gate", "--base", "HEAD", expect=1)
    assert "benchmark broken: HEAD (" in complained
    assert "failed with exit code 7\nno compiler\n" in complained
    assert "benchmark lost: ./nowhere not found in HEAD (" in complained
    assert "benchmark silent: measuring failed: " in complained
    assert output.startswith("3 benchmarks could not be measured: broken, lost and silent.\n")
    assert [line.split()[-1] for line in output.splitlines() if line.startswith("job ")] == ["pass"]
    assert project.gate("job")["result"] == "pass"
    assert project.left == []


def test_a_base_that_does_not_build_is_told_with_what_the_build_said_last(project: Project) -> None:
    project.commit("two", build_sh="seq 1000\necho missing.h not found >&2\nexit 2\n")
    project.commit("three", build_sh=BUILD)
    output, complained = project.ajuste("gate", "--base", "HEAD~1", expect=1)
    assert "ajuste: benchmark job: HEAD~1 (" in complained
    assert 'does not build: "sh build.sh" failed with exit code 2\n987\n' in complained
    assert "1000\nmissing.h not found\n" in complained
    log = Path(complained.partition("see all of its output: ")[2].strip())
    assert log.read_text().splitlines()[:2] == ["$ sh build.sh", "1"]
    assert "1 benchmark could not be measured: job." in output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--base", "nowhere"), '--base "nowhere": revision not found in '),
        (("--base", "--output=/tmp/x"), '--base "--output=/tmp/x": revision not found in '),
        (("--base", "HEAD", "--head", "$(id)"), '--head "$(id)": revision not found in '),
        (("--base", "HEAD:ajuste.toml"), '--base "HEAD:ajuste.toml": revision not found in '),
        ((), "--base is required"),
        (("--base", "HEAD", "jop"), 'benchmark "jop" not found in ajuste.toml; did you mean job?'),
        (("--base", "HEAD", "--junit", "no/where.xml"), "--junit no/where.xml: expected a file in an existing direc"),
        (("--base", "HEAD", "--json", "g.json"), "--json takes no file"),
        (("--base", "HEAD", "--json", "--annotations", "github"), "--json and --annotations are mutually exclusive"),
    ],
)
def test_a_wrong_request_changes_nothing(project: Project, words: tuple[str, ...], message: str) -> None:
    assert message in project.ajuste("gate", *words, expect=2)[1]
    assert project.left == []
    assert not (project.home / "data").exists()


def test_in_a_shallow_clone_it_says_how_to_come_to_older_commits(project: Project, tmp_path: Path) -> None:
    shallow = tmp_path / "shallow"
    subprocess.run(["git", "clone", "-q", "--depth=1", f"file://{project.directory}", shallow], check=True)
    for words in (("gate", "--base", "HEAD~1"), ("history",)):
        complained = Shell(shallow, project.home)(*words, expect=2)[1]
        assert "this clone is shallow; get its older commits: git fetch --unshallow" in complained


def test_a_wrong_project_file_is_told_before_anything_is_built(project: Project, tmp_path: Path) -> None:
    built = tmp_path / "built"
    project.write(ajuste_toml=PROJECT.replace("sh build.sh", f"touch {built}").replace('"1%"', '"0%"'))
    complained = project.ajuste("gate", "--base", "HEAD", expect=2)[1]
    assert 'ajuste: ajuste.toml:6: benchmark[1].limit: found "0%"; expected a percentage above 0%' in complained
    project.write(ajuste_toml=PROJECT.replace("sh build.sh", f"touch {built}").replace("took ([", "took (((["))
    project.ajuste("gate", "--base", "HEAD", expect=2)
    (project.directory / "ajuste.toml").unlink()
    assert "ajuste.toml not found in" in project.ajuste("gate", "--base", "HEAD", expect=2)[1]
    assert not built.exists()
    assert not (project.home / "state" / "gate").exists()


def test_outside_of_a_repository_there_is_nothing_to_compare(ajuste: Shell) -> None:
    (ajuste.directory / "ajuste.toml").write_text(PROJECT)
    complained = ajuste("gate", "--base", "HEAD", expect=2)[1]
    assert "is not in the working tree of a git repository" in complained


@pytest.mark.usefixtures("machine_lock")
@pytest.mark.parametrize("number", [signal.SIGINT, *slow(signal.SIGTERM)])
@pytest.mark.parametrize("moment", ["building", "measuring"])
def test_an_interrupt_leaves_no_worktree_and_no_process(
    project: Project, number: signal.Signals, moment: str, tmp_path: Path
) -> None:
    mark, seconds = tmp_path / "mark", f"99.{os.getpid():08}"
    slow = f"touch {mark}; exec sleep {seconds}"
    script = BUILD + slow if moment == "building" else BUILD
    project.commit("two", build_sh=script, job_sh=f"#!/bin/sh\n{slow}\n")
    gate = at_work(project, mark, "--base", "HEAD~1", "--head", "HEAD")
    gate.send_signal(number)
    gate.communicate(timeout=60)
    assert gate.returncode == 130
    assert project.left == []
    sleeping = [path for path in Path("/proc").glob("[0-9]*/cmdline") if seconds.encode() in read(path)]
    assert sleeping == []


def at_work(project: Project, mark: Path, *words: str) -> subprocess.Popen[str]:
    """``ajuste gate`` in a session of its own when ``mark`` is there; begun again while an experiment that is not of
    the tests has the machine.
    """
    end = time.monotonic() + 200
    while True:
        gate = project.ajuste.start("gate", *words, start_new_session=True)
        while not mark.exists() and gate.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        if mark.exists():
            return gate
        gate.kill()
        output, complained = gate.communicate()
        assert "another experiment is running" in complained, output + complained
        assert time.monotonic() < end, output + complained
        time.sleep(1)


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


@pytest.mark.usefixtures("machine_lock")
def test_what_a_killed_gate_left_is_removed_by_the_next(project: Project, tmp_path: Path) -> None:
    mark, seconds = tmp_path / "mark", f"98.{os.getpid():08}"
    project.commit("two", build_sh=f"{BUILD}touch {mark}; test -e {tmp_path}/go || exec sleep {seconds}\n")
    gate = at_work(project, mark, "--base", "HEAD~1")
    (tmp_path / "go").touch()
    gate.kill()
    gate.communicate(timeout=60)
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        if seconds.encode() in read(path):
            os.kill(int(path.parent.name), signal.SIGKILL)
    assert len(project.git("worktree", "list").splitlines()) == 3
    project.gate()
    assert project.left == []


@pytest.mark.vm
@pytest.mark.slow
def test_one_more_round_in_a_function_is_proved_by_instructions_and_the_function_is_named(ajuste: Shell) -> None:
    project = Project(ajuste)
    project.commit("one", ajuste_toml=C_PROJECT, steps_c=C_PROGRAM.replace("ROUNDS", "50"))
    project.commit("two", steps_c=C_PROGRAM.replace("ROUNDS", "54"))
    results = project.gate(expect=3)
    assert [figure["metric"] for figure in results["benchmarks"]] == ["instructions", "user-instructions"]
    for figure in results["benchmarks"]:
        assert (figure["verdict"], figure["clock"]) == ("regression", "virtual")
        assert 1.01 < figure["low"] < figure["high"] < 1.1
        assert figure["functions"][0]["name"] == "grown"
        assert figure["functions"][0]["more"] / figure["functions"][0]["of"] > 0.9
    assert project.gate(expect=3) == results, "the trials of the very same programs are taken from the store"
    output, _ = project.ajuste("gate", "--base", "HEAD~1", "--annotations", "github", expect=3)
    assert "::error file=ajuste.toml,line=1,title=Performance regression%3A steps::instructions +" in output
    assert "grown carries out" in output
    assert project.gate("--base", "HEAD")["benchmarks"][0]["estimate"] == 1
    assert project.left == []


# The GitHub action and the GitLab template: their scripts are run as the CI systems run them.


ROOT = Path(__file__).parents[3]


def run_script(project: Project, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return patiently(
        lambda: subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
            cwd=project.directory,
            env={**os.environ, "AJUSTE_HOME": str(project.home), "PATH": path, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
    )


@pytest.mark.usefixtures("machine_lock")
@pytest.mark.parametrize(("head", "code"), [pytest.param("100.1", 0, marks=pytest.mark.slow), ("102", 3)])
def test_the_action_fetches_the_base_and_tells_github(project: Project, tmp_path: Path, head: str, code: int) -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    step = next(step for step in action["runs"]["steps"] if step.get("id") == "gate")
    project.git("branch", "target")
    project.commit("two", job_sh=prints(head))
    clone = tmp_path / "clone"
    project.git("clone", "--quiet", "--depth=1", "--branch=main", project.directory.as_uri(), str(clone))
    project.directory = clone
    files = {name: str(tmp_path / name.lower()) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    done = run_script(
        project, step["run"], BASE="target", NAMES="job", UNDECIDED="fail", RUNNER_TEMP=str(tmp_path), **files
    )
    assert done.returncode == code, done.stderr
    assert ("::error file=ajuste.toml,line=1,title=" in done.stdout) == (code == 3)
    assert "| job | took |" in Path(files["GITHUB_STEP_SUMMARY"]).read_text()
    outputs = dict(line.split("=", 1) for line in Path(files["GITHUB_OUTPUT"]).read_text().splitlines())
    assert set(outputs) == set(action["outputs"])
    assert all(Path(file).is_file() for file in outputs.values())
    assert project.left == []


@pytest.mark.slow
@pytest.mark.usefixtures("machine_lock")
def test_the_template_leaves_a_code_quality_report_for_gitlab(project: Project) -> None:
    job = yaml.safe_load((ROOT / "ci" / "gitlab.yml").read_text())[".ajuste-gate"]
    project.commit("two", job_sh=prints("102"))
    project.home = project.directory / ".ajuste"
    variables = {
        "AJUSTE_HOME": str(project.home),
        "AJUSTE_BASE": project.git("rev-parse", "HEAD~1").strip(),
        "AJUSTE_UNDECIDED": job["variables"]["AJUSTE_UNDECIDED"],
    }
    (script,) = job["script"]
    done = run_script(project, script, **variables)
    assert done.returncode == 3, done.stderr
    issues = json.loads((project.directory / job["artifacts"]["reports"]["codequality"]).read_text())
    assert [issue["location"]["path"] for issue in issues] == ["ajuste.toml"]
    assert (project.directory / job["artifacts"]["reports"]["junit"]).is_file()
    assert "Regression in job: took +2 %" in done.stderr
    assert project.left == []
    assert run_script(project, script, **variables).returncode == 3, "its own home is no part of the project"


PLACED = '#!/bin/sh\ncase $PWD in */head*) echo "took 100.5 ms" ;; *) echo "took 100 ms" ;; esac\n'


@pytest.mark.slow
@pytest.mark.usefixtures("machine_lock")
def test_a_revision_against_itself_says_how_often_nothing_is_called_a_change(project: Project) -> None:
    # What differs by the directory is called changed each time.
    placed = PROJECT.replace('"job"', '"placed"').replace('"./job"', '"./placed"').replace("build.sh", "placed.sh")
    build = "cp job.txt placed\nchmod +x placed\n"
    project.commit("two", ajuste_toml=f"{PROJECT}\n{placed}", placed_sh=build, job_txt=PLACED)
    results = json.loads(project.ajuste("gate", "--noop", "5", "--json", expect=3)[0])
    same, other = results["benchmarks"]
    assert (same["runs"], same["changed"], same["regressions"], same["undecided"], same["largest"]) == (5, 0, 0, 0, 1)
    assert (same["low"], same["too_often"]) == (pytest.approx(0, abs=1e-12), False)
    assert same["high"] == pytest.approx(0.434, abs=0.001), "Wilson's interval of none in five"
    assert (other["changed"], other["regressions"], other["too_often"]) == (5, 0, True)
    assert project.left == []


LAYOUTS = """\
[[benchmark]]
name = "slower"
build = "sh build.sh {layout} slower.txt"
command = "./job"
metric = "took,ms,lower=regex:took ([0-9.]+) ms"
limit = "1%"
layouts = 6

[[benchmark]]
name = "moved"
build = "sh build.sh {layout} moved.txt"
command = "./job"
metric = "took,ms,lower=regex:took ([0-9.]+) ms"
limit = "1%"
layouts = 6
"""


@pytest.mark.slow
@pytest.mark.usefixtures("machine_lock")
def test_with_layouts_builds_are_compared_and_not_trials_of_one(project: Project) -> None:
    # A figure for each layout: what depends on the layout alone is no regression, though all trials of a build agree.
    build = "test ! -e job && set -- $1 $(cat $2) && shift $1\n"
    build += 'printf "#!/bin/sh\\necho took $1 ms\\n" >job && chmod +x job\n'
    steady, other = "100 101 99 100 101 99\n", "104 97 103 98 102 100\n"
    project.commit("two", ajuste_toml=LAYOUTS, build_sh=build, slower_txt=steady, moved_txt=steady)
    project.commit("three", slower_txt="105 106 104 105 105 104\n", moved_txt=other)
    slower, moved = project.gate(expect=3)["benchmarks"]
    assert (slower["verdict"], slower["blocks"], slower["layouts"]) == ("regression", 6, True)
    assert (slower["base"], slower["head"]) == (pytest.approx(100, abs=0.5), pytest.approx(104.8, abs=0.5))
    assert (moved["verdict"], moved["blocks"]) == ("undecided", 6)
    assert "measured 6 layouts" in moved["reason"]
    assert project.left == []


@pytest.mark.parametrize("words", [("--base", "HEAD"), ("--bisect",), ("--junit", "j.xml")])
def test_a_revision_against_itself_has_no_base(project: Project, words: tuple[str, ...]) -> None:
    _, complained = project.ajuste("gate", "--noop", "5", *words, expect=2)
    assert f"--noop and {words[0]} are mutually exclusive" in complained


REPRODUCER = """\
[[reproducer]]
name = "test"
study = "test.toml"
build = "cp study.txt test.toml"
"""


def expecting(verdict: str) -> str:
    """A study that expects ``verdict`` where the right one is *differs*."""
    figure = f'[[expect.figure]]\nmetric = "involuntary-switches"\nverdict = ["{verdict}"]\n'
    return f"{SMALL}\n[expect]\nstalls = 0\n\n{figure}"


@pytest.mark.vm
def test_an_expectation_of_a_study_that_is_not_met_is_a_regression(ajuste: Shell) -> None:
    project = Project(ajuste)
    project.commit("one", ajuste_toml=REPRODUCER, study_txt=expecting("differs"))
    project.commit("two", study_txt=expecting("equivalent"))
    results = project.gate("--junit", "j.xml", "--markdown", "m.md", expect=3)
    assert [figure["verdict"] for figure in results["benchmarks"]] == ["pass", "regression"]
    broken = results["benchmarks"][1]
    assert (broken["name"], broken["found"]) == ("test", "differs")
    assert broken["expected"].endswith(": equivalent")
    failures = ElementTree.parse(project.directory / "j.xml").getroot().findall(".//failure")
    assert [("equivalent" in str(failure.get("message"))) for failure in failures] == [True]
    assert "found differs" in (project.directory / "m.md").read_text()
    assert project.left == []
    # The revision to judge is the head: the same trials meet what the first one expects.
    passed = project.gate("--head", "HEAD~1")
    assert (passed["result"], len(passed["benchmarks"])) == ("pass", 2)


@pytest.mark.parametrize(
    ("study", "message"),
    [
        (SMALL, "expects nothing"),
        (expecting("differs").replace("debian:5.10", "build:debian:6.1+NUMA=n"), "project file may not name"),
        (expecting("differs").replace("= 1\n", "= 2\n", 1), "schema"),
        (
            expecting("differs")
            + "\n[[scheduler]]\nname = 'scx_x'\nprogram = 'x'\nbuild = ['true']\nsource = { x = '' }\n",
            "project file may not name",
        ),
    ],
)
def test_a_study_that_a_gate_cannot_measure_is_named(ajuste: Shell, study: str, message: str) -> None:
    project = Project(ajuste)
    project.commit("one", ajuste_toml=REPRODUCER, study_txt=study)
    project.commit("two")
    (figure,) = project.gate(expect=1)["benchmarks"]
    assert (figure["verdict"], figure["name"]) == ("failed", "test")
    assert message in figure["reason"]
    assert project.left == []


def test_reproducers_alone_have_no_history(ajuste: Shell) -> None:
    project = Project(ajuste)
    for commit in ("one", "two", "three"):
        project.commit(commit, ajuste_toml=REPRODUCER, study_txt=SMALL)
    for command in (("history", "--last", "3"), ("gate", "--noop", "5")):
        _, complained = ajuste(*command, expect=2)
        assert "no [[benchmark]] found" in complained


def test_without_a_project_file_the_hint_names_the_harness_that_the_project_has(project: Project) -> None:
    project.git("rm", "--quiet", "ajuste.toml")
    project.commit("two", Cargo_toml='[dev-dependencies]\ncriterion = "0.5"\n')
    _, complained = project.ajuste("gate", "--base", "HEAD", expect=2)
    assert "ajuste.toml not found in" in complained
    assert "add --harness criterion" in complained
    _, complained = project.ajuste("gate", "--base", "HEAD", "--harness", "criterium", expect=2)
    assert '--harness "criterium": not supported; expected criterion, divan, libtest, go' in complained


COMMANDS = '[[benchmark]]\nharness = "hyperfine"\ncommands = "bench.txt"\nbuild = "sh build.sh"\n'


def test_a_list_of_commands_that_cannot_be_measured_is_one_failed_figure(project: Project) -> None:
    project.commit("two", ajuste_toml=COMMANDS)
    _, complained = project.ajuste("gate", "--base", "HEAD", expect=1)
    assert "benchmark hyperfine: bench.txt not found in HEAD (" in complained
    project.commit("three", bench_txt="# none yet\n")
    (figure,) = project.gate(expect=1)["benchmarks"]
    assert (figure["name"], figure["verdict"]) == ("hyperfine", "failed")
    project.commit("four")
    (figure,) = project.gate(expect=1)["benchmarks"]
    assert "hyperfine lists no benchmarks in HEAD~1 (" in figure["reason"]
    project.commit("five", build_sh="echo no compiler; exit 7\n")
    (figure,) = project.gate(expect=1)["benchmarks"]
    assert "does not build" in figure["reason"]
    assert project.left == []


def test_benchmarks_of_one_revision_alone_are_new_or_removed_and_no_regression(project: Project) -> None:
    project.commit("two", ajuste_toml=COMMANDS, bench_txt="./job 1\n")
    project.commit("three", bench_txt="./job 2\n")
    results = project.gate("--junit", "j.xml", "--markdown", "m.md")
    assert [(figure["name"], figure["verdict"]) for figure in results["benchmarks"]] == [
        ("./job 1", "removed"),
        ("./job 2", "new"),
    ]
    suite = ElementTree.parse(project.directory / "j.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "0", "0")
    assert project.ajuste("gate", "--base", "HEAD~1")[0].startswith(
        "No regression: 1 new benchmark and 1 removed bench"
    )
    assert project.left == []


@pytest.mark.parametrize("words", [("gate", "--noop", "5"), ("gate", "--base", "HEAD", "--bisect")])
def test_what_judges_commands_alone_refuses_a_harness(project: Project, words: tuple[str, ...]) -> None:
    project.commit("two", ajuste_toml=COMMANDS)
    _, complained = project.ajuste(*words, expect=2)
    assert 'does not support harness = "hyperfine"' in complained


GO_TESTS = """\
package tiny

import "testing"

var sink int

func BenchmarkGrown(b *testing.B) {
	for i := 0; i < b.N; i++ {
		sink += grown(1000)
	}
}

func BenchmarkSteady(b *testing.B) {
	for i := 0; i < b.N; i++ {
		sink += steady(1000)
	}
}
"""
GO_PROGRAM = """\
package tiny

// A variable, so that the code of both revisions is the same: with a constant the loop has another instruction.
var more = ROUNDS

//go:noinline
func grown(n int) int {
	x := 1
	n += more
	for i := 0; i < n; i++ {
		x = x*1664525 + i
	}
	return x
}

//go:noinline
func steady(n int) int {
	x := 1
	for i := 0; i < n; i++ {
		x = x*1664525 + i
	}
	return x
}
"""


@pytest.mark.vm
@pytest.mark.slow
@pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed")
def test_one_function_of_go_that_grows_is_the_only_regression(project: Project) -> None:
    project.git("rm", "--quiet", "ajuste.toml")
    names = {"go_mod": "module example.org/tiny\n\ngo 1.21\n", "tiny_go": GO_PROGRAM.replace("ROUNDS", "0")}
    project.commit("two", **names)
    (project.directory / "tiny_test.go").write_text(GO_TESTS)
    project.git("add", "tiny_test.go")
    project.commit("three")
    project.commit("four", tiny_go=GO_PROGRAM.replace("ROUNDS", "20"))
    output, _ = project.ajuste("gate", "--base", "HEAD~1", "--harness", "go", "--json", expect=3)
    grown, steady = json.loads(output)["benchmarks"]
    assert (grown["name"], grown["verdict"]) == ("BenchmarkGrown", "regression")
    assert grown["estimate"] == pytest.approx(1.02, abs=0.004), "the loop is nearly all of it"
    assert "grown" in grown["functions"][0]["name"]
    assert (steady["name"], steady["verdict"], steady["estimate"]) == (
        "BenchmarkSteady",
        "pass",
        pytest.approx(1, abs=0.002),
    )
