"""The GitHub action, each step as GitHub runs it, with a stand-in for Ajuste."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
ZERO = "0" * 40

AJUSTE = """\
#!/bin/sh
printf '%s\\n' "$@" >"$RUNNER_TEMP/called"
for word; do case $word in --markdown=*|--junit=*|--badge=*) echo "# answer" >"${word#*=}";; esac; done
exit "$GATE_EXIT"
"""
PYTHON = """\
#!/bin/sh
mkdir -p "$4/bin"
printf '#!/bin/sh\\nprintf "%%s\\\\n" "$@" >>"$RUNNER_TEMP/pip"\\n' >"$4/bin/pip"
chmod +x "$4/bin/pip"
"""
GH = """\
#!/bin/sh
echo "$@" >>"$RUNNER_TEMP/gh"
case $* in *--edit-last*) exit 1;; esac
"""


def git(directory: Path, *words: str) -> str:
    identity = ("-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "init.defaultBranch=main")
    return subprocess.run(
        ["git", *identity, *words], cwd=directory, check=True, stdout=subprocess.PIPE, text=True
    ).stdout.strip()


@dataclass
class Runner:
    """GitHub's files, expressions and conditions, as far as the action uses them."""

    checkout: Path
    temp: Path
    event: dict[str, Any]
    inputs: dict[str, str] = field(default_factory=dict)
    gate_exit: int = 0

    def __post_init__(self) -> None:
        self.temp.mkdir()
        for name, text in {"ajuste": AJUSTE, "python3": PYTHON, "gh": GH}.items():
            program = self.temp / "bin" / name
            program.parent.mkdir(exist_ok=True)
            program.write_text(text)
            program.chmod(0o755)
        self.failed = 0
        self.uploads: list[dict[str, str]] = []
        defaults = {name: self.text(str(declared.get("default", ""))) for name, declared in ACTION["inputs"].items()}
        self.inputs = {**defaults, **self.inputs}

    def run(self) -> int:
        for step in ACTION["runs"]["steps"]:
            condition = str(step.get("if", "success()")).removeprefix("${{").removesuffix("}}")
            if (self.failed and "cancelled()" not in condition) or not self.value(condition):
                continue
            if "run" in step:
                assert "${{" not in step["run"], "what an input says is never part of a script"
                self.shell(step)
            elif "upload-artifact" in step["uses"]:
                self.uploads.append({name: self.text(str(value)) for name, value in step["with"].items()})
        return self.failed

    def shell(self, step: dict[str, Any]) -> None:
        files = {f"GITHUB_{name}": str(self.temp / name) for name in ("OUTPUT", "PATH", "STEP_SUMMARY")}
        environment = {name: self.text(value) for name, value in step["env"].items()}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.checkout / self.text(step.get("working-directory", ".")),
            env={
                **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
                **files,
                **environment,
                "PATH": f"{self.temp / 'bin'}:{os.environ['PATH']}",
                "RUNNER_TEMP": str(self.temp),
                "GITHUB_REPOSITORY": "you/project",
                "GATE_EXIT": str(self.gate_exit),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        self.failed = self.failed or done.returncode

    def read(self, name: str) -> str:
        file = self.temp / name
        return file.read_text() if file.exists() else ""

    @property
    def outputs(self) -> dict[str, str]:
        return dict(line.split("=", 1) for line in self.read("OUTPUT").splitlines())

    def text(self, template: str) -> str:
        return re.sub(r"\$\{\{(.*?)\}\}", lambda match: str(self.value(match[1])), template)

    def value(self, expression: str) -> Any:
        words = re.sub(r"\b(inputs|github|steps|runner)[\w.-]+", lambda match: repr(self.named(match[0])), expression)
        words = re.sub(r"!(?!=)", " not ", words.replace("&&", " and ").replace("||", " or "))
        return eval(words, {"success": lambda: True, "cancelled": lambda: False})  # noqa: S307 - the action's own text

    def named(self, name: str) -> str:
        if name.startswith("steps.gate.outputs."):
            return self.outputs.get(name.rpartition(".")[2], "")
        known: Any = {"inputs": self.inputs, "github": {"event": self.event, "token": "secret"}}
        for part in name.split("."):
            known = known.get(part, "") if isinstance(known, dict) else ""
        return str(known)


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    directory = tmp_path / "origin"
    directory.mkdir()
    git(directory, "init", "--quiet")
    git(directory, "commit", "--quiet", "--allow-empty", "-m", "one")
    git(directory, "checkout", "--quiet", "-b", "topic")
    git(directory, "commit", "--quiet", "--allow-empty", "-m", "two")
    git(directory, "checkout", "--quiet", "main")
    git(directory, "commit", "--quiet", "--allow-empty", "-m", "three")
    return directory


def clone(origin: Path, branch: str, *words: str) -> Path:
    checkout = origin.parent / "checkout"
    git(origin, "clone", "--quiet", "--single-branch", *words, f"--branch={branch}", origin.as_uri(), str(checkout))
    return checkout


def push(before: str) -> dict[str, Any]:
    return {"before": before, "repository": {"default_branch": "main"}}


@pytest.mark.parametrize(("words", "base"), [((), "main~1"), (("--depth=1",), "main")])
def test_the_first_push_of_a_branch_is_compared_with_the_default_branch(
    origin: Path, words: tuple[str, ...], base: str
) -> None:
    runner = Runner(clone(origin, "topic", *words), origin.parent / "temp", push(ZERO))
    assert runner.run() == 0
    assert f"--base={git(origin, 'rev-parse', base)}\n" in runner.read("called")


def test_the_first_push_of_the_default_branch_has_nothing_to_compare(origin: Path) -> None:
    runner = Runner(clone(origin, "main"), origin.parent / "temp", push(ZERO))
    assert runner.run() == 0
    assert runner.read("called") == ""
    assert "Nothing to compare" in runner.read("STEP_SUMMARY")
    assert runner.uploads == []


@pytest.mark.parametrize("words", [(), ("--depth=1",)])
def test_a_later_push_is_compared_with_what_was_there(origin: Path, words: tuple[str, ...]) -> None:
    before = git(origin, "rev-parse", "main~1")
    git(origin, "config", "uploadpack.allowAnySHA1InWant", "true")  # as at GitHub
    runner = Runner(clone(origin, "main", *words), origin.parent / "temp", push(before))
    assert runner.run() == 0
    assert f"--base={before}\n" in runner.read("called")


def test_a_regression_fails_the_job_after_everything_was_uploaded_and_summarised(origin: Path) -> None:
    event = {"pull_request": {"base": {"sha": git(origin, "rev-parse", "main~1")}, "number": 7}}
    inputs = {"comment": "true", "names": "one two", "undecided": "pass"}
    runner = Runner(clone(origin, "main"), origin.parent / "temp", event, inputs, gate_exit=3)
    assert runner.run() == 3
    assert runner.read("called").endswith("--\none\ntwo\n")
    assert "# answer" in runner.read("STEP_SUMMARY")
    assert set(runner.outputs) == set(ACTION["outputs"])
    (upload,) = runner.uploads
    assert upload["path"].split() == list(runner.outputs.values())
    assert runner.read("gh").splitlines()[-1].startswith("pr comment 7 --repo you/project --body-file")


def test_the_package_may_be_a_pattern_for_what_make_dist_makes(origin: Path) -> None:
    checkout = clone(origin, "main")
    wheels = ["ajuste-0.1.0-py3-none-manylinux_2_17_x86_64.whl", "ajuste_ci-0.1.0-py3-none-any.whl"]
    (checkout / "dist").mkdir()
    for wheel in wheels:
        (checkout / "dist" / wheel).touch()
    event = push(git(origin, "rev-parse", "main~1"))
    runner = Runner(checkout, origin.parent / "temp", event, {"package": "dist/ajuste*.whl"})
    assert runner.run() == 0
    assert runner.read("pip").splitlines()[-2:] == [f"dist/{wheel}" for wheel in wheels]
    assert runner.read("PATH").strip().endswith("ajuste/bin")
    other = Runner(
        checkout, origin.parent / "other", event, {"package": "https://example.org/a.whl https://example.org/b.whl"}
    )
    assert other.run() == 0
    assert other.read("pip").splitlines()[-2:] == ["https://example.org/a.whl", "https://example.org/b.whl"]


def test_the_documented_wheel_has_the_name_that_make_dist_gives() -> None:
    page = (ROOT / "docs" / "how-to" / "gate.md").read_text()
    assert re.search(r"ajuste-[\d.]+-py3-none-manylinux_2_17_x86_64\.whl", page)
