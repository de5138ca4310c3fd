"""The Kconfig tree of a source, read by a process of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ajuste.model.error import RequestError, RunError
from ajuste_guest.kernel.config import parse_config
from ajuste_kernels.kconfig import KconfigQuestion, ask, explain, source_version

NET = parse_config("CONFIG_NET=y\n")


def test_several_configurations_do_not_disturb_each_other(source: Path) -> None:
    first, second = ask(
        source, [KconfigQuestion(config={"NET": "y"}, values=True), KconfigQuestion(config={}, values=True)]
    )
    assert (first.values["NET"], second.values["NET"]) == ("y", "n")


def test_the_surroundings_of_the_process_stay_as_they_are(source: Path) -> None:
    before = dict(os.environ)
    explain(source, NET, {"NET": None})
    assert dict(os.environ) == before


def test_the_version_is_in_the_makefile(source: Path) -> None:
    assert source_version(source) == "6.1.9-rc1"


def test_a_directory_that_is_no_kernel_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="not a Linux kernel source"):
        explain(tmp_path, NET, {})


def test_a_kconfig_file_that_cannot_be_read_is_named(source: Path) -> None:
    (source / "net/Kconfig").write_text("config\n")
    with pytest.raises(RunError, match=r"net/Kconfig:1"):
        explain(source, NET, {"NET": None})


def test_reading_that_takes_too_long_is_given_up(source: Path) -> None:
    (source / "Kconfig").write_text("slow := $(shell,sleep 5)\n")
    with pytest.raises(RunError, match="longer than"):
        ask(source, [KconfigQuestion(config={})], longest_s=0.2)


CONDITIONAL = """
config MODULES
\tbool "Modules"
\tmodules
config A
\ttristate "A"
config B
\ttristate "B"
config PLAIN
\tdef_tristate y
\tdepends on A if B
config NEGATED
\tdef_tristate y
\tdepends on A if !B # with a remark
config TWO
\tdef_tristate y
\tdepends on A if (B = m || A)
"""


@pytest.mark.parametrize(
    ("a", "b", "values"),
    [
        # menu_add_dep of scripts/kconfig/menu.c: A where B is not n, y else.
        ("n", "n", "yny"),
        ("n", "m", "nnn"),
        ("n", "y", "nyy"),
        ("m", "n", "ymm"),
        ("m", "y", "mym"),
        ("y", "m", "yyy"),
    ],
)
def test_a_dependency_that_has_a_condition(source: Path, a: str, b: str, values: str) -> None:
    (source / "Kconfig").write_text(CONDITIONAL)
    config = {"MODULES": "y", "A": a, "B": b}
    answer = ask(source, [KconfigQuestion(config=config, values=True)])[0].values
    assert "".join(answer.get(name, "n") for name in ("PLAIN", "NEGATED", "TWO")) == values


@pytest.mark.skipif(os.geteuid() != 0, reason="only root refuses")
@pytest.mark.parametrize("whose", ["", "Kconfig", "Makefile"])
def test_root_runs_nothing_of_sources_that_another_user_can_change(source: Path, whose: str) -> None:
    mark = source / "mark"
    with (source / "Kconfig").open("a") as file:
        file.write(f"\nbegun := $(shell,touch {mark})\n")
    os.chown(source / whose, 65534, 65534)
    with pytest.raises(RequestError, match="another user"):
        explain(source, NET, {"NET": None})
    assert not mark.exists()
    os.chown(source / whose, 0, 0)
    explain(source, NET, {"NET": None})
    assert mark.exists()
