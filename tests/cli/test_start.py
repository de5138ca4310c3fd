"""Modules that a command loads before it does anything: everybody waits for them, each time."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from ajuste.cli.command_line import help_text
from ajuste.cli.main import application
from ajuste.model.plugins import plugins

SLOW = ("sklearn", "optuna", "cmaes", "matplotlib", "plotly", "cryptography")
LARGE = ("numpy", "sqlalchemy", "rich.table", "jinja2")
OF_GUESTS = ("ajuste_guest.executor.guest", "qemu", "elftools")


def loaded_by(*commands: str) -> set[str]:
    places = {command: f"ajuste.cli.{command}" for command in commands}
    places |= {name: plugin.module for name, plugin in plugins("commands").items() if name in places}
    modules = ", ".join(places.values())
    program = f"import sys, {modules}; print(*sys.modules)"
    return set(
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    )


def test_an_experiment_on_the_host_loads_nothing_of_guests_and_no_large_library_that_few_need() -> None:
    loaded = loaded_by("run", "compare", "report", "analyse")
    assert "ajuste.executor.host.host" in loaded
    assert not loaded.intersection((*SLOW, *OF_GUESTS))


def test_no_command_loads_a_database_before_it_opens_a_store() -> None:
    loaded = loaded_by(
        "run", "compare", "tune", "suite", "gate", "why", "transfer", "inventory", "kernel", "plan", "live"
    )
    assert "ajuste.run.experiment" in loaded
    assert not loaded.intersection(("sqlalchemy", "alembic"))


def test_a_run_that_is_only_shown_or_refused_loads_no_analysis() -> None:
    loaded = loaded_by("run", "compare")
    assert "ajuste.run.experiment" in loaded
    assert not loaded.intersection(("scipy", "ajuste.analysis.results", "ajuste.run.runner"))


def test_models_are_built_when_they_are_needed() -> None:
    program = (
        "import ajuste.cli.compare\n"
        "from ajuste.model.results import Results\n"
        "assert not Results.__pydantic_complete__\n"
        "assert Results.model_json_schema()\n"
        "assert Results.__pydantic_complete__\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def loaded_for(*words: str) -> set[str]:
    """Return the modules that are loaded when a command ends."""
    program = (
        "import os, sys\n"
        "os._exit = lambda code: (print(*sys.modules, file=sys.stderr), sys.stderr.flush(), os.kill(os.getpid(), 9))\n"
        "from ajuste.cli.main import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=False)
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.parametrize("words", [("--help",), ("compare", "--help"), ("kernel", "build", "--help"), ("no-command",)])
def test_help_and_a_wrong_command_load_nothing_large(words: tuple[str, ...]) -> None:
    loaded = loaded_for(*words)
    assert "ajuste.cli.main" in loaded
    assert not loaded.intersection((*SLOW, *LARGE))


def test_what_is_not_found_loads_no_tables_and_nothing_of_trials() -> None:
    loaded = loaded_for("tunables", "show", "no.such.name")
    assert "ajuste.catalogue.loader" in loaded
    assert not loaded.intersection((*SLOW, *LARGE, "rich.console", "ajuste.model.plan", "ajuste.model.workload"))


def test_a_comparison_loads_nothing_of_profiles_reboots_recordings_and_surfaces() -> None:
    loaded = loaded_by("compare")
    few = ("profile.placing", "model.explanation", "model.cost", "cli.plan")
    assert "ajuste.run.experiment" in loaded
    assert not loaded.intersection(
        (*(f"ajuste.{name}" for name in few), "ajuste_boots.session", "ajuste_search.surface.surfaces", "tomlkit")
    )


def test_the_list_of_settings_loads_nothing_that_asks_a_machine() -> None:
    loaded = loaded_for("tunables")
    assert "ajuste.catalogue.loader" in loaded
    assert not loaded.intersection((*SLOW, *OF_GUESTS, "ajuste.executor", "sqlalchemy", "numpy"))


def test_the_list_of_studies_reads_none_of_them_as_a_study() -> None:
    loaded = loaded_for("studies")
    assert "ajuste.study.builtin" in loaded
    assert not loaded.intersection((*SLOW, "ajuste.catalogue.loader", "ajuste.study.read", "numpy"))


def test_help_is_the_same_for_a_command_that_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    for columns in ("80", "40"):
        monkeypatch.setenv("COLUMNS", columns)
        for words in (["compare", "--help-all"], ["kernel", "build", "--help"]):
            itself = CliRunner().invoke(application(words), words, prog_name="ajuste").output
            assert itself == help_text(words[:-1], everything=words[-1] == "--help-all")


def test_a_first_experiment_loads_nothing_of_another_database_and_no_migrations() -> None:
    loaded = loaded_for("compare", "--quiet", "--blocks", "3", "--", "true")
    assert {"sqlalchemy", "ajuste.report.html"} <= loaded
    assert not loaded.intersection(("alembic", "mako", "sqlalchemy.dialects.postgresql"))
