"""The example of how to extend Ajuste: a package that is installed beside it, whose commands work."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "how-to/extend.md").read_text()
EXAMPLE = DOCS / "examples/extend"
INSTALLED = "pip install docs/examples/extend"
EXPECTED = {
    "ajuste tunables show kernel.printk_ratelimit_burst": "Burst of rate-limited kernel messages",
    "ajuste compare --dry-run --set workload.file=true,false -- count-bytes": "wc.bytes",
    "ajuste plan printk": "Does the burst of kernel messages change",
    "ajuste export granularity --format environment": "run 'granularity' not found",
    "ajuste kernel prove debian:5.10 ksm": "ksm",
    "ajuste scaling --on 1,2 --kernel debian:5.10 --blocks 1 -- hackbench groups=1 loops=20": "Speed-up",
}


def install(package: Path, target: Path) -> Path:
    """The ``package``, installed in the directory ``target`` of its own."""
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or "uv"
    words = ["pip", "install", "--quiet", "--offline", "--no-deps", "--no-build-isolation", "--python", sys.executable]
    subprocess.run([uv, *words, "--target", str(target), str(package)], check=True, capture_output=True)
    return target


def run(words: list[str], home: Path, *installed: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": ":".join(map(str, installed)), "AJUSTE_HOME": str(home)}
    program = [sys.executable, "-c", "from ajuste.cli.main import main; main()", *words]
    return subprocess.run(program, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("extended")
    return install(Path(shutil.copytree(EXAMPLE, root / "source")), root / "installed")


def test_every_command_of_the_page_is_known() -> None:
    assert re.findall(r"^```sh\n(.*)\n```", PAGE, re.MULTILINE) == [INSTALLED, *EXPECTED]


@pytest.mark.vm
@pytest.mark.parametrize("command", EXPECTED)
def test_an_example_works(extended: Path, ajuste_home: Path, command: str) -> None:
    done = run(command.split()[1:], ajuste_home, extended)
    assert EXPECTED[command] in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert "plug-in" not in done.stderr
    assert done.returncode == (2 if "not found" in EXPECTED[command] else 0)


def test_help_lists_its_command_with_its_package(extended: Path, ajuste_home: Path) -> None:
    assert re.search(
        r"Other packages:\n +scaling +From ajuste-scaling 1.0\.", run(["--help"], ajuste_home, extended).stdout
    )


def changed(directory: Path, name: str, *replaced: tuple[str, str]) -> Path:
    """The example as a package ``name``, after replacing text in all of its files."""
    shutil.copytree(EXAMPLE, directory / "source")
    for file in (directory / "source").rglob("*.*"):
        if file.is_file():
            text = file.read_text().replace('"ajuste-scaling"', f'"{name}"')
            for old, new in replaced:
                text = text.replace(old, new)
            file.write_text(text)
    return install(directory / "source", directory / "installed")


# Each harm to the package, and what is printed of it.
HARMS = (
    ("a module that is not there", ("ajuste_scaling.command:", "ajuste_scaling.absent:"), "No module named"),
    ("an object that is not there", ("command:scaling", "command:absent"), "has no attribute"),
    ("code that fails", ('"""``ajuste scaling``', '1 / 0\n"""``ajuste scaling``'), "SyntaxError"),
    ("another version", ('dependencies = ["ajuste"]', 'dependencies = ["ajuste==9.9"]'), "is for Ajuste 9.9"),
)


@pytest.mark.parametrize(
    ("replaced", "message"),
    [
        *(pytest.param(*harm[1:], id=harm[0]) for harm in HARMS[2:]),
        *(pytest.param(*harm[1:], id=harm[0], marks=pytest.mark.slow) for harm in HARMS[:2]),
    ],
)
def test_a_broken_package_is_named_and_the_rest_works(replaced: tuple[str, str], message: str, tmp_path: Path) -> None:
    installed = changed(tmp_path, "ajuste-broken", replaced)
    done = run(["scaling", "--on", "1", "--", "true"], tmp_path / "home", installed)
    assert done.returncode == 2
    assert "ajuste-broken 1.0" in done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert run(["tunables", "show", "vm.swappiness"], tmp_path / "home", installed).returncode == 0


def test_two_packages_with_one_name_are_both_named_and_neither_is_used(extended: Path, tmp_path: Path) -> None:
    second = changed(tmp_path, "ajuste-second")
    done = run(["scaling", "--on", "1", "--", "true"], tmp_path / "home", extended, second)
    assert done.returncode == 2
    assert "command 'scaling' not found" in done.stderr
    assert {"ajuste-scaling 1.0", "ajuste-second 1.0"} <= set(re.findall(r"ajuste-\w+ 1\.0", done.stderr))
    assert run(["plan", "granularity"], tmp_path / "home", extended, second).returncode == 0


def test_a_facet_that_fails_is_named_and_the_run_has_all_else(tmp_path: Path, ajuste_home: Path) -> None:
    installed = changed(
        tmp_path, "ajuste-broken", ("    metric, configurations =", "    1 / 0\n    metric, configurations =")
    )
    words = ["compare", "--kernel", "debian:5.10", "--blocks", "1", "--json", "--", "true"]
    done = run(words, ajuste_home, installed)
    assert done.returncode == 0
    assert '"study": "compare"' in done.stdout
    assert "ajuste_scaling.facet, a plug-in, failed: ZeroDivisionError" in done.stderr
