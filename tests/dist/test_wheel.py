"""The wheel: it carries all that the program needs, and works outside of any source tree."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import zipfile
from pathlib import Path

import pytest
from setup.wheel import MANUAL

from ajuste.cli.main import COMMANDS
from ajuste.machine.home import AGENT, EXTRAS, LENS, SERVICE, WATCH, WORKLOADS, native_program
from installed import ROOT, Installed, build
from looped import each

ARM64 = 183
"""``e_machine`` of an ELF file for aarch64."""


def test_it_has_every_file_of_the_package_and_all_beside_it(wheel: Path) -> None:
    listed = subprocess.run(["git", "ls-files", "src/ajuste"], cwd=ROOT, capture_output=True, text=True, check=True)
    expected = {name.removeprefix("src/") for name in listed.stdout.splitlines()}
    expected |= {"ajuste/report/templates/plotly.min.js.gz", "ajuste/catalogue/parsed.txt"}  # which make setup writes
    expected |= {f"ajuste/native/{name}" for name in (AGENT, LENS, WORKLOADS, SERVICE, WATCH, "build.json")}
    expected |= {f"ajuste/native/{name}.symbols" for name in (AGENT, WORKLOADS, SERVICE, WATCH)}
    pages = (page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*.md"))
    expected |= {f"ajuste/manual/{page}" for page in pages if page.parts[0] in MANUAL}
    share = "ajuste-0.1.0.data/data/share"
    expected |= {f"{share}/man/man1/ajuste{name}.1" for name in ("", *(f"-{command}" for command in COMMANDS))}
    expected |= {f"{share}/bash-completion/completions/ajuste", f"{share}/zsh/site-functions/_ajuste"}
    expected |= {f"{share}/fish/vendor_completions.d/ajuste.fish"}
    with zipfile.ZipFile(wheel) as opened:
        names = {name for name in opened.namelist() if ".dist-info/" not in name}
        assert names == expected
        for name in (AGENT, LENS, WORKLOADS, SERVICE, WATCH):
            assert opened.getinfo(f"ajuste/native/{name}").external_attr >> 16 == 0o100755
            assert opened.read(f"ajuste/native/{name}") == native_program(name).read_bytes()


@each(sorted((ROOT / "packages").iterdir()))
def test_another_package_has_every_file_and_nothing_else(package: Path, wheel: Path) -> None:
    source = package / "src"
    listed = subprocess.run(["git", "ls-files", source], cwd=source, capture_output=True, text=True, check=True)
    (built,) = wheel.parent.glob(f"ajuste_{package.name}-0.1.0-py3-none-any.whl")
    with zipfile.ZipFile(built) as opened:
        names = {name for name in opened.namelist() if ".dist-info/" not in name}
    modules = ROOT / "native" / "module"
    carried = {f"ajuste_guest/module/{f.relative_to(modules)}" for f in modules.rglob("*") if f.is_file()}
    carried = {"guest": carried, "programs": {"ajuste_programs/parsed.txt"}}.get(package.name, set())
    assert names == set(listed.stdout.splitlines()) | carried


@pytest.mark.parametrize(
    ("command", "part"),
    [
        ("live", "live"),
        ("gate", "ci"),
        ("serve", "serve"),
        ("kernel", "kernels"),
        ("tune", "search"),
        ("ablate", "search"),
        ("cluster", "cluster"),
        ("reboots", "boots"),
        ("why", "guest"),
        ("export", "profiles"),
        ("doctor", "doctor"),
        ("analyse", "analyse"),
        ("bundle", "share"),
        ("import", "share"),
        ("verify", "share"),
    ],
)
def test_a_command_of_a_package_that_is_not_installed_names_what_adds_it(
    command: str, part: str, core: Installed
) -> None:
    done = core.run(command)
    assert (done.returncode, done.stdout) == (2, "")
    message, hint = done.stderr.splitlines()
    assert f"belongs to the optional part {part} of Ajuste" in message
    assert hint.strip() == f"install it: {core.prefix}/bin/python -I -m pip install 'ajuste[{part}]'"


@pytest.mark.parametrize(
    ("part", "package", "words"),
    [
        ("kernels", "ajuste_kernels", ("plan", "granularity", "--kernel", "build:debian:6.1+NUMA=n")),
        ("guest", "ajuste_guest", ("plan", "granularity", "--kernel", "mine:base")),
        ("guest", "ajuste_guest", ("run", "granularity")),
        ("guest", "ajuste_guest", ("compare", "--kernel", "debian:6.12", "--", "true")),
        ("profiles", "ajuste_profiles", ("compare", "--profile", "sysctl:system", "--", "true")),
        ("share", "ajuste_share", ("report", "compare", "--format", "lkml")),
        ("pictures", "ajuste_share", ("report", "compare", "--pictures", "figures")),
        ("boots", "ajuste_boots", ("compare", "--boot", "mitigations=default,off", "--", "true")),
        ("cluster", "ajuste_fleet", ("compare", "--cluster", "tls://lab1:8786", "--", "true")),
    ],
)
def test_what_another_package_does_for_a_command_of_the_core_names_it(
    part: str, package: str, words: tuple[str, ...], core: Installed
) -> None:
    done = core.run(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        f"ajuste: {package} is not installed; it belongs to the optional part {part} of Ajuste",
        f"  install it: {core.prefix}/bin/python -I -m pip install 'ajuste[{part}]'",
    ]


OF_STRESS_NG = """schema = 1
name = "study"
question = "Which?"
[[factor]]
name = "vm.swappiness"
levels = [60, 10]
[workload]
kind = "stress-ng"
[target]
kind = "host"
[analysis]
metrics = ["elapsed"]
"""


@pytest.mark.parametrize(
    "words",
    [
        ("plan", "io-scheduler"),
        ("plan", "../study.toml"),
        ("compare", "--dry-run", "--background", "sysbench-cpu", "--", "true"),
        ("compare", "--dry-run", "--", "sysbench-cpu", "threads=2"),
    ],
)
def test_a_benchmark_program_that_another_package_has_is_not_found_and_the_line_that_adds_it_is(
    words: tuple[str, ...], core: Installed
) -> None:
    (core.prefix.parent / "study.toml").write_text(OF_STRESS_NG)
    done = core.run(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert "not found" in done.stderr
    assert "pip install 'ajuste[programs]'" in " ".join(done.stderr.split())


@pytest.mark.parametrize("design", ['combine = "all"\nallocation = "refine"', 'combine = "ablation"'])
def test_a_study_of_a_kind_that_another_package_has_names_it(design: str, core: Installed, tmp_path: Path) -> None:
    levels = "60, 40, 20, 10" if "refine" in design else "60, 10"
    study = tmp_path / "study.toml"
    study.write_text(
        f"""schema = 1
name = "study"
question = "Which?"
[[factor]]
name = "vm.swappiness"
levels = [{levels}]
[workload]
command = ["true"]
[target]
kind = "host"
[analysis]
metrics = ["elapsed"]
[design]
{design}
"""
    )
    done = core.run("plan", str(study))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "ajuste: ajuste_search is not installed; it belongs to the optional part search of Ajuste",
        f"  install it: {core.prefix}/bin/python -I -m pip install 'ajuste[search]'",
    ]


@pytest.mark.usefixtures("machine_lock")
def test_the_core_alone_measures_and_reports(core: Installed) -> None:
    assert core.run("compare", "--blocks", "2", "--", "true").returncode == 0
    assert json.loads(core.run("report", "compare", "--json").stdout)["study"] == "compare"
    assert core.run("--help").returncode == 0


def test_its_name_says_for_which_machines_it_is(wheel: Path) -> None:
    assert wheel.name == "ajuste-0.1.0-py3-none-manylinux_2_17_x86_64.whl"


@pytest.mark.slow
def test_its_name_says_so_by_the_programs_that_it_has(tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in (AGENT, LENS, WORKLOADS, SERVICE, WATCH):
        for file in native_program(AGENT).parent.glob(f"{name}*"):
            shutil.copy(file, programs)
        for_arm64(programs / name)
    assert build(tmp_path / "wheel", programs).name == "ajuste-0.1.0-py3-none-manylinux_2_17_aarch64.whl"
    shutil.copy(native_program(AGENT), programs)
    with pytest.raises(subprocess.CalledProcessError) as caught:
        build(tmp_path / "mixed", programs)
    assert "has programs for several machines: aarch64, x86_64" in caught.value.stderr.decode()


def test_a_wheel_for_another_machine_is_refused_before_anything_is_built() -> None:
    done = subprocess.run(
        ["make", "--no-print-directory", "--dry-run", "dist", "ARCH=riscv64"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "ARCH is riscv64; expected x86_64 or aarch64" in done.stderr


def test_two_builds_have_the_same_bytes(wheel: Path, tmp_path: Path) -> None:
    assert build(tmp_path).read_bytes() == wheel.read_bytes()


def test_the_extras_are_those_whose_absence_is_explained(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        metadata = opened.read("ajuste-0.1.0.dist-info/METADATA").decode()
    offered = {line.split(": ")[1] for line in metadata.splitlines() if line.startswith("Provides-Extra")}
    assert offered == {*EXTRAS, "all"}
    assert "Requires-Python: >=3.11" in metadata


def test_it_says_what_it_is(installed: Installed) -> None:
    done = installed.run("--version", "--verbose", "--json")
    facts = json.loads(done.stdout)
    assert facts["agent"]["as_built"] is True
    assert Path(facts["agent"]["path"]) == installed.native / AGENT
    assert facts["installed"] == {"by": "pip", "in": str(installed.packages / "ajuste")}
    assert len(facts["commit"]) == 40
    assert all(facts["extras"].values())


def test_the_sources_of_modules_and_the_catalogue_are_found(installed: Installed) -> None:
    program = (
        "from ajuste_guest.kernel.own_module import module_source as m; "
        "print(sorted(p.name for p in m('ajuste_linpack').iterdir()))"
    )
    done = subprocess.run(
        [installed.prefix / "bin" / "python", "-c", program], capture_output=True, text=True, cwd="/", check=True
    )
    assert done.stdout.strip() == "['Kbuild', 'module.c', 'solve.c', 'solve.h']"
    assert installed.run("studies").returncode == 0


@pytest.mark.usefixtures("machine_lock")
def test_it_measures_outside_of_a_tree_and_names_what_a_picture_needs(installed: Installed) -> None:
    done = installed.run("compare", "--blocks", "2", "--json", "--", "true")
    assert json.loads(done.stdout)["study"] == "compare", done.stderr
    installed.without("matplotlib")
    done = installed.run("report", "compare", "--pictures", "pictures")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "ajuste: matplotlib is not installed; it belongs to the optional part pictures of Ajuste",
        f"  install it: {installed.prefix}/bin/python -I -m pip install 'ajuste[pictures]'",
    ]


@pytest.mark.parametrize(
    ("module", "package", "extra", "words"),
    [
        ("cryptography", "cryptography", "cluster", ("cluster", "keys")),
        (
            "optuna",
            "optuna",
            "search",
            ("tune", "granularity", "--objective", "involuntary-switches=lower", "--sampler", "tpe", "--trials", "20"),
        ),
        pytest.param(
            "perfetto",
            "perfetto",
            "perfetto",
            ("why", "granularity", "--divergence", "--perfetto", "granularity.pftrace"),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "sklearn",
            "sklearn",
            "search",
            ("tune", "granularity", "--objective", "involuntary-switches=lower", "--trials", "20"),
            marks=pytest.mark.slow,
        ),
        (
            "pydoe",
            "pydoe",
            "search",
            (
                "compare",
                "--screen",
                "--dry-run",
                *(
                    word
                    for name in ("mode=processes,threads", "fds=4,8", "loops=10,20", "size=100,1000")
                    for word in ("--set", f"workload.{name}")
                ),
                "--nice",
                "0,5",
                "--",
                "hackbench",
            ),
        ),
    ],
)
def test_a_missing_part_is_named_before_anything_is_changed(
    installed: Installed, module: str, package: str, extra: str, words: tuple[str, ...]
) -> None:
    installed.without(package)
    done = installed.run(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        f"ajuste: {module} is not installed; it belongs to the optional part {extra} of Ajuste",
        f"  install it: {installed.prefix}/bin/python -I -m pip install 'ajuste[{extra}]'",
    ]
    assert not (installed.prefix.parent / "home").exists()
    assert not list((installed.prefix.parent / "here").iterdir())


@pytest.mark.parametrize(("lost", "module"), [("numpy", "numpy"), ("ajuste/study/read.py", "ajuste.study.read")])
def test_a_module_that_every_installation_has_is_named_with_what_mends_it(
    installed: Installed, lost: str, module: str
) -> None:
    installed.without(lost)
    done = installed.run("run", "granularity")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        f"ajuste: Python module {module} not found; Ajuste requires it",
        f"  install Ajuste again: {installed.prefix}/bin/python -I -m pip install --force-reinstall WHEEL",
    ]


def for_arm64(program: Path) -> None:
    content = bytearray(program.read_bytes())
    struct.pack_into("<H", content, 18, ARM64)
    program.write_bytes(content)


@pytest.mark.parametrize(
    ("harm", "expected", "mended"),
    [
        (
            for_arm64,
            "{agent} is a program for aarch64; expected one for x86_64, this machine",
            "install the wheel for x86_64",
        ),
        (lambda program: program.unlink(), f"program {AGENT} not found in {{native}}", "install Ajuste again: "),
        pytest.param(
            lambda program: program.write_bytes(b""),
            *("{agent} is not a program of Linux", "install Ajuste again: "),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            lambda program: program.chmod(0o644),
            *(f"program {AGENT} not found in {{native}}", "install Ajuste again: "),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["of another machine", "missing", "empty", "not executable"],
)
def test_half_an_installation_is_one_message(installed: Installed, harm: object, expected: str, mended: str) -> None:
    agent = installed.native / AGENT
    assert callable(harm)
    harm(agent)
    done = installed.run("compare", "--", "true")
    assert (done.returncode, done.stdout) == (2, "")
    message, hint = done.stderr.splitlines()
    assert message == "ajuste: " + expected.format(agent=agent, native=installed.native)
    assert hint.strip().startswith(mended)
    assert not (installed.prefix.parent / "home" / "data").exists()


@pytest.mark.parametrize(
    ("of", "command"),
    [
        ("pipx", "pipx runpip ajuste install 'ajuste[cluster]'"),
        pytest.param("uv", "uv pip install --python {prefix} 'ajuste[cluster]'", marks=pytest.mark.slow),
    ],
)
def test_the_command_is_that_of_what_made_the_environment(installed: Installed, of: str, command: str) -> None:
    if of == "pipx":
        (installed.prefix / "pipx_metadata.json").write_text("{}")
    else:
        installed.without("pip")
    installed.without("cryptography")
    assert json.loads(installed.run("--version", "--verbose", "--json").stdout)["installed"]["by"] == of
    hint = installed.run("cluster", "keys").stderr.splitlines()[1]
    assert hint.strip() == "install it: " + command.format(prefix=installed.prefix)


@each([("compare", "--", "true"), ("run", "granularity"), ("report",), ("kernel", "list")])
@pytest.mark.slow
def test_a_home_that_cannot_be_written_is_one_message(words: tuple[str, ...], installed: Installed) -> None:
    done = installed.run(*words, environment={"AJUSTE_HOME": "/proc/ajuste"})
    assert (done.returncode, done.stdout) == (2, "")
    message, hint = done.stderr.splitlines()
    assert message.startswith("ajuste: cannot ")
    assert "/proc/ajuste" in message
    assert "Errno" not in message
    assert "AJUSTE_HOME" in hint
